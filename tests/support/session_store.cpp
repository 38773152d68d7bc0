#include "support/session_store.hpp"

#include <fnmatch.h>
#include <unistd.h>

#include <array>
#include <limits>

#include "runtime/clock.hpp"
#include "stores/blocking_store.hpp"
#include "support/session_link.hpp"
#include "support/session_server.hpp"

namespace holdfast::test {

namespace {

using core::duration;
using core::owner_id;
using core::time_point;
using detail::fail;
using stores::removal;

duration milliseconds_of(const std::string& word) {
  return std::chrono::milliseconds{std::stoll(word)};
}

std::string text(const owner_id& id) { return std::string{id.text()}; }

// host, pid, label and since, as one word.
std::string who_am_i(const std::string& label) {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  const auto since = runtime::wall_now().time_since_epoch();
  const auto since_us = std::chrono::duration_cast<std::chrono::microseconds>(since).count();
  return to_hex(to_hex(host.data()) + " " + std::to_string(::getpid()) + " " + to_hex(label) + " " +
                std::to_string(since_us));
}

holder who_is(const std::string& word, fencing_token token) {
  const auto parts = split_words(from_hex(word));
  holder who;
  who.host = from_hex(parts.at(0));
  who.pid = std::stoll(parts.at(1));
  who.label = from_hex(parts.at(2));
  who.since =
      std::chrono::system_clock::time_point{std::chrono::microseconds{std::stoll(parts.at(3))}};
  who.token = token;
  return who;
}

stores::renewal refused(loss why) { return {false, why, {}, {}, {}}; }

fencing_token token_of(const std::string& word) { return fencing_token{std::stoull(word)}; }

removal removal_of(const std::string& word) {
  if (word == "released") return removal::released;
  return word == "free" ? removal::gone : removal::taken;
}

class session_lock final : public stores::blocking::store_lock {
 public:
  session_lock(std::shared_ptr<session_link> link, std::string name)
      : link_{std::move(link)}, name_{std::move(name)}, word_{to_hex(name_)} {}

  result<core::answer> ask(stores::blocking::attempt& who, time_point until) override {
    while (true) {
      const auto session = link_->open_session(who.ttl, until);
      if (!session) return fail(session.error());
      link_->expect_turn(who.id);
      const time_point sent = runtime::now();
      const auto answer = link_->call("create " + std::to_string(session->id) + " " + word_ + " " +
                                          text(who.id) + " " + who_am_i(who.label),
                                      until);
      if (!answer) return fail(answer.error());
      if (answer->at(0) == "granted") {
        link_->now_held(who.id);
        return core::grant{token_of(answer->at(1)), milliseconds_of(answer->at(2)), sent};
      }
      if (answer->at(0) == "busy") {
        return core::busy{who_is(answer->at(2), token_of(answer->at(1))),
                          milliseconds_of(answer->at(3)), true, std::chrono::seconds{1}};
      }
      link_->session_gone(session->id);
    }
  }

  void wait(stores::blocking::attempt& who, time_point until,
            const std::stop_token& stop) override {
    link_->await_turn(who.id, until, stop);
  }

  result<removal> withdraw(stores::blocking::attempt& who, time_point until) override {
    return release(who.id, until);
  }

  result<removal> release(const owner_id& id, time_point until) override {
    bool asked_before = false;
    while (true) {
      const auto answer = link_->call(removal_request(id), until);
      if (!answer && answer.error().code == errc::outcome_unknown && runtime::now() < until) {
        asked_before = true;  // the connection went: ask again on the next one
        continue;
      }
      if (!answer) {
        return fail(asked_before ? errc::outcome_unknown : answer.error().code,
                    answer.error().message);
      }
      link_->not_held(id);
      const removal how = removal_of(answer->at(0));
      return how != removal::released && asked_before ? removal::unsure : how;
    }
  }

  void release_later(const owner_id& id, time_point give_up) noexcept override {
    link_->not_held(id);
    link_->post(removal_request(id), give_up);
  }

  result<lock_status> inspect(time_point until) override {
    const auto answer = link_->call("look " + word_, until);
    if (!answer) return fail(errc::store_unreachable, answer.error().message);
    lock_status status;
    status.name = name_;
    if (answer->at(0) == "free") return status;
    status.holder = who_is(answer->at(2), token_of(answer->at(1)));
    status.remaining = std::chrono::milliseconds{std::stoll(answer->at(3))};
    constexpr std::size_t words_each = 3;
    for (std::size_t i = 1 + words_each; i + words_each <= answer->size(); i += words_each) {
      auto who = who_is(answer->at(i + 1), {});
      status.waiters.push_back({who.host, who.pid, who.label, who.since});
    }
    status.waiting = status.waiters.size();
    return status;
  }

  result<void> break_with(fencing_token token, time_point until) override {
    const auto answer = link_->call("break " + word_ + " " + to_string(token), until);
    if (!answer) return fail(answer.error());
    if (answer->at(0) == "ok") return {};
    return fail(errc::not_held, "the lock is not held with token " + to_string(token));
  }

  result<stores::renewal> extend(const owner_id& id, fencing_token /*token*/, duration ttl,
                                 time_point until) override {
    while (true) {
      const auto session = link_->open_session(ttl, until);
      if (!session) return fail(session.error());
      const time_point sent = runtime::now();
      const auto answer =
          link_->call("touch " + std::to_string(session->id) + " " + word_ + " " + text(id), until);
      if (!answer) return fail(answer.error());
      if (answer->at(0) == "granted") {
        link_->now_held(id);
        return stores::renewal{true, loss::none, milliseconds_of(answer->at(2)), sent,
                               token_of(answer->at(1))};
      }
      if (answer->at(0) != "gone") {
        return refused(answer->at(0) == "free" ? loss::deleted : loss::taken);
      }
      link_->session_gone(session->id);
    }
  }

 private:
  [[nodiscard]] std::string removal_request(const owner_id& id) const {
    return "delete " + word_ + " " + text(id);
  }

  const std::shared_ptr<session_link> link_;
  const std::string name_;
  const std::string word_;
};

class session_store final : public stores::blocking::store {
 public:
  explicit session_store(std::string path)
      : link_{std::make_shared<session_link>(std::move(path))} {}

  void on_events(stores::store_events events) override { link_->on_events(std::move(events)); }

  result<std::shared_ptr<stores::blocking::store_lock>> open(std::string_view name) override {
    return std::make_shared<session_lock>(link_, std::string{name});
  }

  std::size_t renewal_batch_max() const noexcept override {
    return std::numeric_limits<std::size_t>::max();
  }

  result<std::vector<stores::renewal>> renew(std::span<const stores::blocking::held> leases,
                                             time_point until) override {
    const auto session = link_->open_session(leases.front().ttl, until);
    if (!session) return fail(session.error());
    const time_point sent = runtime::now();
    const auto answer = link_->call("alive " + std::to_string(session->id), until);
    if (!answer) return fail(answer.error());
    const bool gone = answer->at(0) == "gone";
    if (gone) link_->session_gone(session->id);
    std::vector<stores::renewal> all;
    for (const stores::blocking::held& lease : leases) {
      const loss why = gone ? loss::session : link_->lost(lease.id);
      all.push_back(why == loss::none
                        ? stores::renewal{true, why, milliseconds_of(answer->at(0)), sent, {}}
                        : refused(why));
    }
    return all;
  }

  result<std::vector<lock_status>> list(std::string_view pattern, duration timeout) override {
    const auto until = [&] { return runtime::now() + timeout; };
    const auto answer = link_->call("names", until());
    if (!answer) return fail(errc::store_unreachable, answer.error().message);
    std::vector<lock_status> all;
    for (const std::string& word : *answer) {
      if (word.empty()) continue;
      const std::string name = from_hex(word);
      if (::fnmatch(std::string{pattern}.c_str(), name.c_str(), 0) != 0) continue;
      auto one = session_lock{link_, name}.inspect(until());
      if (!one) return fail(one.error());
      if (one->holder) all.push_back(std::move(*one));
    }
    return all;
  }

  guarantees describe() const override {
    guarantees g;
    g.storage = guarantees::storage_kind::session;
    g.shared_between_processes = true;
    g.tokens_survive_data_loss = true;
    g.fifo = true;
    g.summary = "a session server inside a test";
    return g;
  }

  void flush(time_point until) noexcept override { link_->await_posted(until); }

  void close() noexcept override { link_->close(); }

 private:
  const std::shared_ptr<session_link> link_;
};

}  // namespace

std::unique_ptr<stores::store> make_session_store(std::string socket_path) {
  return stores::blocking::told_by_events(std::make_unique<session_store>(std::move(socket_path)));
}

}  // namespace holdfast::test
