#include "stores/redis/dialer.hpp"

#include <utility>

#include "runtime/password_file.hpp"
#include "runtime/tls_stream.hpp"
#include "stores/redis/channel.hpp"
#include "stores/redis/layout.hpp"
#include "stores/redis/server_error.hpp"

namespace holdfast::stores::redis {

namespace {

constexpr const char* no_master = " is a replica: another server is the master now, or will be";

bool is_error(const reply_value& r) { return r.type == reply_kind::error; }

// Some servers repeat the arguments of a command they refuse, and those of AUTH are secrets.
std::string_view without_arguments(std::string_view said) {
  said = said.substr(0, said.find_first_of("'`\""));
  return said.substr(0, said.find("args"));
}

class login {
 public:
  explicit login(const endpoint& where) : where_{where} {}

  [[nodiscard]] result<std::unique_ptr<runtime::stream>> open(core::time_point until) const;

 private:
  [[nodiscard]] result<std::unique_ptr<runtime::stream>> secure(runtime::unique_fd fd,
                                                                core::time_point until) const;
  [[nodiscard]] result<void> greet(channel& fresh, core::time_point until) const;
  [[nodiscard]] result<void> check(reply_elements fields) const;
  [[nodiscard]] result<void> check_role(channel& fresh, core::time_point until) const;
  [[nodiscard]] result<void> check_no_voter(channel& fresh, core::time_point until) const;
  [[nodiscard]] result<void> watch_keys(channel& fresh, core::time_point until) const;

  const endpoint& where_;
};

result<std::unique_ptr<runtime::stream>> login::secure(runtime::unique_fd fd,
                                                       core::time_point until) const {
  if (!where_.tls) return runtime::socket_stream(std::move(fd));
  auto over = runtime::connect_tls(*where_.tls, std::move(fd), where_.host, until);
  if (!over && over.error().code != errc::store_unreachable) {
    over.error().message = where_.node + ": " + over.error().message;
  }
  return over;
}

result<std::unique_ptr<runtime::stream>> login::open(core::time_point until) const {
  auto fd = where_.connect(until);
  if (!fd) return fail(std::move(fd.error()));
  auto over = secure(std::move(*fd), until);
  if (!over) return over;
  if (where_.keep_in) *over = where_.keep_in(std::move(*over));
  const auto& bytes = **over;
  channel fresh{std::move(*over), where_.node, core::duration::zero()};
  auto ok = greet(fresh, until);
  if (ok) return fresh.take();
  // A server may refuse a client's certificate once the client believes that it is connected.
  if (auto why = bytes.trouble()) {
    why->message = where_.node + ": " + why->message;
    return fail(std::move(*why));
  }
  if (fresh.broken() && !where_.tls && !where_.host.empty()) {
    ok.error().message += " (if it wants TLS at this port, write rediss:// or redlock+tls://)";
  }
  return fail(std::move(ok.error()));
}

// HELLO says in one round trip whether this is Redis, 6.0 or newer, and logs in.
result<void> login::greet(channel& fresh, core::time_point until) const {
  auto password = where_.password;
  if (!where_.password_file.empty()) {
    auto read = runtime::read_password(where_.password_file);
    if (!read) return fail(std::move(read.error()));
    password = std::move(*read);
  }
  const bool log_in = !password.empty() || !where_.user.empty();
  const std::string user = where_.user.empty() ? "default" : where_.user;
  const auto say = [&](const command& text) { return fresh.call(text.bytes(), until, true); };

  const auto say_hello = [&](std::string_view version) {
    command hello{log_in ? 7U : 4U};
    hello.arg("HELLO").arg(version);
    if (log_in) hello.arg("AUTH").arg(user).arg(password);
    hello.arg("SETNAME").arg("holdfast");
    return say(hello);
  };
  // Only in its third version has the protocol a place for what a server tells unasked.
  bool may_tell = where_.tells_changes;
  auto answer = say_hello(may_tell ? "3" : "2");
  if (may_tell && answer && text_of(**answer).starts_with("NOPROTO")) {
    may_tell = false;
    answer = say_hello("2");
  }
  if (!answer) return fail(std::move(answer.error()));
  auto said = text_of(**answer);
  if (is_error(**answer) && said.starts_with("NOPERM") && !log_in) {
    // A default user that may not say HELLO may still lock.
    answer = reply{};
    may_tell = false;
  } else if (is_error(**answer) && said.starts_with("NOPERM")) {
    command auth{3};
    auth.arg("AUTH").arg(user).arg(password);
    may_tell = false;
    answer = say(auth);
    if (!answer) return fail(std::move(answer.error()));
    said = text_of(**answer);
  }
  if (*answer && is_error(**answer)) {
    auto why = translate_error(without_arguments(said), where_.node);
    if (said.starts_with("ERR unknown command")) {
      why.message = where_.node + " is older than Redis 6.0, or no Redis: 6.0 or newer is needed";
    }
    return fail(std::move(why));
  }
  auto ok = *answer ? check(elements_of(**answer)) : check_role(fresh, until);
  if (!ok) return ok;
  if (where_.database != 0) {
    command select{2};
    select.arg("SELECT").arg(static_cast<long long>(where_.database));
    answer = say(select);
    if (!answer) return fail(std::move(answer.error()));
    if (is_error(**answer)) return fail(translate_error(text_of(**answer), where_.node));
  }
  if (may_tell) {
    if (auto ok = watch_keys(fresh, until); !ok) return ok;
  }
  return where_.refuse_voters ? check_no_voter(fresh, until) : result<void>{};
}

// What the server says to it makes no difference: without, changes are noticed later.
result<void> login::watch_keys(channel& fresh, core::time_point until) const {
  command tracking{4};
  tracking.arg("CLIENT").arg("TRACKING").arg("ON").arg("NOLOOP");
  const auto answer = fresh.call(tracking.bytes(), until, true);
  if (!answer) return fail(answer.error());
  return {};
}

// What HELLO says of the server, as name, value, name, value.
result<void> login::check(reply_elements fields) const {
  bool is_sentinel = false;
  bool is_cluster = false;
  for (std::size_t i = 0; i + 1 < fields.size(); i += 2) {
    const auto name = text_of(*fields[i]);
    const auto value = text_of(*fields[i + 1]);
    is_cluster = is_cluster || (name == "mode" && value == "cluster");
    if (name == "role" && value == "replica" && where_.wanted == endpoint::role::master) {
      return fail(errc::read_only, where_.node + no_master);
    }
    is_sentinel = is_sentinel || (name == "mode" && value == "sentinel");
  }
  if (is_sentinel && where_.wanted != endpoint::role::sentinel) {
    return fail(errc::incompatible, where_.node +
                                        " is a Sentinel, not a server that keeps data: name the "
                                        "master, or write redis+sentinel://");
  }
  if (!is_sentinel && where_.wanted == endpoint::role::sentinel) {
    return fail(errc::incompatible,
                where_.node +
                    " is no Sentinel: redis+sentinel:// names Sentinels (port 26379 as a rule), "
                    "and servers are named by redis://");
  }
  if (is_cluster && !where_.in_cluster) {
    return fail(errc::incompatible, where_.node +
                                        " is part of a Redis cluster: use the URL "
                                        "redis+cluster://, or rediss+cluster:// with TLS");
  }
  if (!is_cluster && where_.in_cluster) {
    return fail(errc::incompatible, where_.node +
                                        " is part of no cluster (cluster-enabled is off): use "
                                        "the URL redis://, or rediss:// with TLS");
  }
  return {};
}

// For a user that may not say HELLO.
result<void> login::check_role(channel& fresh, core::time_point until) const {
  if (where_.wanted != endpoint::role::master) return {};
  command role{1};
  role.arg("ROLE");
  const auto answer = fresh.call(role.bytes(), until, true);
  if (!answer) return fail(answer.error());
  const auto fields = elements_of(**answer);
  // A user that may not ask for it either learns it from what a replica refuses.
  if (fields.empty() || text_of(*fields[0]) == "master") return {};
  return fail(errc::read_only, where_.node + no_master);
}

result<void> login::check_no_voter(channel& fresh, core::time_point until) const {
  // Not whether there is a record: a client that took this server for a node leaves one.
  command voted{3};
  voted.arg("HEXISTS").arg(quorum_record_key).arg("config");
  const auto answer = fresh.call(voted.bytes(), until, true);
  if (!answer) return fail(answer.error());
  // A user that may not look may lock all the same: access rules name the keys of locks.
  if ((*answer)->type != reply_kind::integer || (*answer)->integer == 0) return {};
  return fail(errc::incompatible,
              where_.node +
                  " is a node of a quorum, and a lock on it alone excludes no user of the "
                  "quorum: use the redlock:// URL, or a server of its own");
}

}  // namespace

result<std::unique_ptr<runtime::stream>> open_connection(const endpoint& where,
                                                         core::time_point until) {
  return login{where}.open(until);
}

namespace {

class login_dialer final : public dialer {
 public:
  explicit login_dialer(endpoint where) : dialer{where.node}, where_{std::move(where)} {}
  void dial(core::time_point until, on_connected done) override {
    done(open_connection(where_, until));
  }

 private:
  const endpoint where_;
};

}  // namespace

std::shared_ptr<dialer> make_dialer(endpoint where) {
  return std::make_shared<login_dialer>(std::move(where));
}

}  // namespace holdfast::stores::redis
