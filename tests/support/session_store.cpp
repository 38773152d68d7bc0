#include "support/session_store.hpp"

#include <fnmatch.h>
#include <unistd.h>

#include <array>
#include <limits>

#include "runtime/clock.hpp"
#include "runtime/random.hpp"
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

class session_lock final : public stores::store_lock {
 public:
  session_lock(std::shared_ptr<session_link> link, std::string name)
      : link_{std::move(link)}, name_{std::move(name)}, word_{to_hex(name_)} {}

  std::unique_ptr<stores::attempt> begin(stores::attempt_spec what) override;

  void release(const owner_id& id, time_point until, stores::caller& by, on_removal done) override {
    remove(id, until, false, by, std::move(done));
  }

  void release_later(const owner_id& id, time_point give_up) noexcept override {
    link_->not_held(id);
    link_->post(removal_request(id), give_up);
  }

  void remove(const owner_id& id, time_point until, bool asked_before, stores::caller& by,
              on_removal done) {
    link_->call(removal_request(id), until, by,
                [this, id, until, asked_before, &by,
                 done = std::move(done)](result<session_link::words> answer) {
                  if (answer) {
                    link_->not_held(id);
                    const removal how = removal_of(answer->at(0));
                    return done(how != removal::released && asked_before ? removal::unsure : how);
                  }
                  const bool unknown = answer.error().code == errc::outcome_unknown;
                  // The connection went: ask again on the next one.
                  if (unknown && runtime::now() < until) return remove(id, until, true, by, done);
                  done(fail(asked_before ? errc::outcome_unknown : answer.error().code,
                            answer.error().message));
                });
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

  void extend(const owner_id& id, fencing_token token, duration ttl, time_point until,
              stores::caller& by, on_renewal done) override {
    link_->open_session(ttl, until, by, [=, this, &by](result<session_link::session> session) {
      if (!session) return done(fail(session.error()));
      const time_point sent = runtime::now();
      const auto request = "touch " + std::to_string(session->id) + " " + word_ + " " + text(id);
      link_->call(request, until, by, [=, this, &by](result<session_link::words> answer) {
        if (!answer) return done(fail(answer.error()));
        if (answer->at(0) == "granted") {
          link_->now_held(id);
          return done(stores::renewal{true, loss::none, milliseconds_of(answer->at(2)), sent,
                                      token_of(answer->at(1))});
        }
        if (answer->at(0) != "gone") {
          return done(refused(answer->at(0) == "free" ? loss::deleted : loss::taken));
        }
        link_->session_gone(session->id);
        extend(id, token, ttl, until, by, done);
      });
    });
  }

  [[nodiscard]] session_link& link() const noexcept { return *link_; }
  [[nodiscard]] const std::string& word() const noexcept { return word_; }

 private:
  [[nodiscard]] std::string removal_request(const owner_id& id) const {
    return "delete " + word_ + " " + text(id);
  }

  const std::shared_ptr<session_link> link_;
  const std::string name_;
  const std::string word_;
};

class session_attempt final : public stores::attempt {
 public:
  session_attempt(session_lock& at, stores::attempt_spec what)
      : lock_{at}, link_{at.link()}, spec_{std::move(what)}, id_{runtime::fresh_owner()} {}

  owner_id id() const override { return id_; }

  void ask(time_point until, stores::caller& by, on_answer done) override {
    link_.open_session(spec_.ttl, until, by, [=, this, &by](result<session_link::session> session) {
      if (!session) return done(fail(session.error()));
      link_.expect_turn(id_);
      const time_point sent = runtime::now();
      const auto request = "create " + std::to_string(session->id) + " " + lock_.word() + " " +
                           text(id_) + " " + who_am_i(spec_.label);
      link_.call(request, until, by, [=, this, &by](result<session_link::words> answer) {
        if (!answer) return done(fail(answer.error()));
        if (answer->at(0) == "granted") {
          link_.now_held(id_);
          return done(core::grant{token_of(answer->at(1)), milliseconds_of(answer->at(2)), sent});
        }
        if (answer->at(0) == "busy") {
          return done(core::busy{who_is(answer->at(2), token_of(answer->at(1))),
                                 milliseconds_of(answer->at(3)), true, std::chrono::seconds{1}});
        }
        link_.session_gone(session->id);
        ask(until, by, done);
      });
    });
  }

  void wait(time_point until, stores::caller& by, on_woken done) override {
    link_.await_turn(id_, until, by, [done = std::move(done)] { done(std::nullopt); });
  }
  void wake() override { link_.wake(id_); }

  void withdraw(time_point until, stores::caller& by, on_removal done) override {
    lock_.remove(id_, until, false, by, std::move(done));
  }

 private:
  session_lock& lock_;
  session_link& link_;
  const stores::attempt_spec spec_;
  const owner_id id_;
};

std::unique_ptr<stores::attempt> session_lock::begin(stores::attempt_spec what) {
  return std::make_unique<session_attempt>(*this, std::move(what));
}

class session_store final : public stores::store {
 public:
  explicit session_store(std::string path)
      : link_{std::make_shared<session_link>(std::move(path))} {}

  void on_events(stores::store_events events) override { link_->on_events(std::move(events)); }

  result<std::shared_ptr<stores::store_lock>> open(std::string_view name,
                                                   const core::lock_kind& kind) override {
    if (auto ok = core::check_exclusive(kind, "this test's store has mutexes only"); !ok) {
      return fail(std::move(ok.error()));
    }
    return std::make_shared<session_lock>(link_, std::string{name});
  }

  std::size_t renewal_batch_max() const noexcept override {
    return std::numeric_limits<std::size_t>::max();
  }

  void renew(std::vector<stores::held> leases, time_point until, stores::caller& by,
             on_renewals done) override {
    const auto ttl = leases.front().ttl;
    link_->open_session(ttl, until, by, [=, this, &by](result<session_link::session> session) {
      if (!session) return done(fail(session.error()));
      const time_point sent = runtime::now();
      const auto request = "alive " + std::to_string(session->id);
      link_->call(request, until, by, [=, this](result<session_link::words> answer) {
        if (!answer) return done(fail(answer.error()));
        const bool gone = answer->at(0) == "gone";
        if (gone) link_->session_gone(session->id);
        std::vector<stores::renewal> all;
        for (const auto& lease : leases) {
          const loss why = gone ? loss::session : link_->lost(lease.id);
          all.push_back(why == loss::none
                            ? stores::renewal{true, why, milliseconds_of(answer->at(0)), sent, {}}
                            : refused(why));
        }
        done(std::move(all));
      });
    });
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
  return std::make_unique<session_store>(std::move(socket_path));
}

}  // namespace holdfast::test
