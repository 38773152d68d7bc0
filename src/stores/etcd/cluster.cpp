#include "stores/etcd/cluster.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/fail.hpp"
#include "runtime/clock.hpp"
#include "runtime/password_file.hpp"
#include "stores/etcd/messages.hpp"
#include "stores/pause.hpp"

namespace holdfast::stores::etcd {

namespace {

// Of what gRPC calls codes.
enum grpc : std::uint8_t {
  invalid_argument = 3,
  not_found = 5,
  permission_denied = 7,
  resource_exhausted = 8,
  failed_precondition = 9,
  unavailable = 14,
  unauthenticated = 16,
};

constexpr std::string_view lease_missing = "requested lease not found";
constexpr long http_not_found = 404;
// A server gets at least this much of the time there is.
constexpr core::duration server_patience_min = std::chrono::milliseconds{200};

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool is_token_refused(const refusal& why) {
  return why.code == unauthenticated || has(why.message, "invalid auth token");
}

// Another server may do better, and this one may have done it.
bool is_passing_there(const refusal& why) {
  return why.code == unavailable || why.code == 0 || has(why.message, "request timed out") ||
         has(why.message, "leader changed");
}

errc code_of(const refusal& why) {
  if (has(why.message, "user name is empty") || has(why.message, "authentication failed") ||
      has(why.message, "authentication is not enabled") || is_token_refused(why)) {
    return errc::not_authenticated;
  }
  switch (why.code) {
    case permission_denied:
      return errc::not_permitted;
    case resource_exhausted:
      return has(why.message, "space exceeded") ? errc::out_of_memory : errc::store_busy;
    default:
      return errc::store_refused;
  }
}

failure refused(const std::string& node, const refusal& why) {
  auto message = node + " says: " + escape(why.message);
  const auto code = code_of(why);
  if (has(why.message, "user name is empty")) {
    message += ": the cluster wants a user and a password, etcd://user:password@host";
  }
  if (has(why.message, "authentication is not enabled")) {
    message += ": leave the user and the password out of the URL";
  }
  return {code, std::move(message), {}};
}

}  // namespace

bool is_lease_missing(const failure& why) noexcept {
  return why.code == errc::store_refused && has(why.message, lease_missing);
}

// One call, on its way from server to server.
struct cluster::round {
  request what;
  core::time_point until;
  on_answer done;
  std::size_t first = 0;
  std::size_t asked = 0;
  bool is_unanswered = false;
  bool has_logged_in = false;
  std::optional<failure> worst{};  // what a server said; kept over what the network did
  std::vector<node_answer> nodes{};
};

cluster::cluster(const component_config& config)
    : user_{config.user},
      password_{config.password},
      password_file_{config.password_file},
      http_{config.servers, config.has_tls, config.tls} {}

std::string cluster::token() const {
  const std::lock_guard guard{m_};
  return token_;
}

void cluster::set_token(std::string token) {
  const std::lock_guard guard{m_};
  token_ = std::move(token);
}

result<std::string> cluster::password() const {
  if (password_file_.empty()) return password_;
  return runtime::read_password(password_file_);
}

void cluster::call(request what, core::time_point until, on_answer done) {
  auto in = std::make_shared<round>();
  in->what = std::move(what);
  in->until = until;
  in->done = std::move(done);
  in->first = preferred_;
  if (needs_login() && token().empty()) return log_in(in);
  ask_next(in);
}

// etcd gives out a token for a name and a password; it is sent along from then on.
void cluster::log_in(const std::shared_ptr<round>& in) {
  auto secret = password();
  if (!secret) return in->done(fail(std::move(secret.error())));
  auto login = std::make_shared<round>();
  login->what = {"/v3/auth/authenticate", credentials_json(user_, *secret), false};
  login->until = in->until;
  login->first = in->first;
  login->has_logged_in = true;
  login->done = [this, in](const result<answer>& got) {
    if (!got) return in->done(fail(got.error()));
    auto fresh = read_token(got->body);
    if (!fresh) return in->done(fail(std::move(fresh.error())));
    set_token(std::move(*fresh));
    in->has_logged_in = true;
    ask_next(in);
  };
  ask_next(login);
}

void cluster::ask_next(const std::shared_ptr<round>& in) {
  const auto servers = http_.servers();
  const auto now = runtime::now();
  if (in->asked >= servers || now >= in->until) return finish(in);
  const auto server = (in->first + in->asked++) % servers;
  // The first ones leave time for the others.
  const auto left = in->until - now;
  const auto rest = static_cast<std::int64_t>(servers - in->asked + 1);
  const auto part = std::max<core::duration>(server_patience_min, left / rest);
  const bool is_login = in->what.path == "/v3/auth/authenticate";
  http_.send({server, in->what.path, in->what.body, is_login ? std::string{} : token(),
              std::min(in->until, now + part)},
             [this, in, server](http_reply got) { replied(in, server, std::move(got)); });
}

void cluster::replied(const std::shared_ptr<round>& in, std::size_t server, http_reply got) {
  const auto node = http_.name_of(server);
  in->is_unanswered = in->is_unanswered || (got.is_repeated && in->what.changes);
  switch (got.how) {
    case http_reply::outcome::answered:
      break;
    case http_reply::outcome::untrusted:
      return in->done(fail(errc::not_trusted, node + ": " + got.why +
                                                  ": name the authority with ca=, our certificate "
                                                  "with cert= and key=, and the name that the "
                                                  "server shows with server_name="));
    case http_reply::outcome::unanswered:
      in->is_unanswered = in->is_unanswered || in->what.changes;
      [[fallthrough]];
    case http_reply::outcome::unsent:
      in->nodes.push_back({node, got.why});
      return ask_next(in);
  }
  if (got.status == 200) {
    // Where a server answers, others are asked no more.
    preferred_ = server;
    return in->done(answer{std::move(got.body), in->is_unanswered});
  }
  const auto why = read_refusal(got.body);
  if (got.status == http_not_found && why.message.empty()) {
    return in->done(fail(errc::incompatible, node + " answers, but has no " + in->what.path +
                                                 ": it is not etcd of version 3.4 or newer"));
  }
  if (needs_login() && is_token_refused(why) && !in->has_logged_in) {
    in->has_logged_in = true;
    --in->asked;
    return log_in(in);
  }
  if (is_passing_there(why)) {
    in->is_unanswered = in->is_unanswered || in->what.changes;
    in->nodes.push_back({node, escape(why.message)});
    return ask_next(in);
  }
  in->done(fail(refused(node, why)));
}

// No server has answered.
void cluster::finish(const std::shared_ptr<round>& in) {
  preferred_ = (in->first + 1) % http_.servers();
  failure why{in->is_unanswered ? errc::outcome_unknown : errc::store_unreachable,
              "no server of the cluster answered", std::move(in->nodes)};
  for (const auto& one : why.nodes)
    why.message += "; " + one.node + ": " + one.answer;
  in->done(fail(std::move(why)));
}

void cluster::call(request what, core::time_point until, caller& by, on_answer done) {
  struct pending {
    std::mutex m;
    std::optional<result<answer>> got;
    bool is_taken = false;
  };
  const auto shared = std::make_shared<pending>();
  const bool changes = what.changes;
  const auto wait = std::make_shared<pause>(until, [shared, changes, done = std::move(done)] {
    std::optional<result<answer>> got;
    {
      const std::lock_guard guard{shared->m};
      got = std::move(shared->got);
      shared->is_taken = true;
    }
    if (got) return done(std::move(*got));
    done(fail(changes ? errc::outcome_unknown : errc::store_unreachable,
              "the cluster did not answer in time"));
  });
  call(std::move(what), std::max(until - last_moment, core::time_point{}),
       [shared, wait](result<answer> got) {
         {
           const std::lock_guard guard{shared->m};
           if (shared->is_taken) return;
           shared->got.emplace(std::move(got));
         }
         wait->end();
       });
  by.wait_for(wait);
}

result<answer> cluster::call(request what, core::time_point until) {
  return wait_here<result<answer>>(
      [&](auto& by, auto done) { call(std::move(what), until, by, std::move(done)); });
}

std::uint64_t cluster::open_stream(request what, transport::on_line line,
                                   std::function<void()> end) {
  const auto servers = http_.servers();
  const std::size_t server = preferred_ % servers;
  return http_.open_stream(
      {server, std::move(what.path), std::move(what.body), token()}, std::move(line),
      [this, server, end = std::move(end)](const http_reply&) {
        auto expected = server;
        preferred_.compare_exchange_strong(expected, (server + 1) % http_.servers());
        end();
      });
}

}  // namespace holdfast::stores::etcd
