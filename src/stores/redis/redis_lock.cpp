#include "stores/redis/redis_lock.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/foreign.hpp"
#include "core/planted.hpp"
#include "runtime/clock.hpp"
#include "runtime/random.hpp"
#include "stores/redis/redis_attempt.hpp"
#include "stores/redis/release_by_id.hpp"
#include "stores/redis/script_replies.hpp"
#include "stores/redis/script_values.hpp"

namespace holdfast::stores::redis {

redis_lock::redis_lock(std::shared_ptr<server> on, std::string key, const core::lock_kind& kind)
    : server_{std::move(on)},
      keys_{std::move(key)},
      kind_{kind},
      capacity_{core::capacity_of(kind) > 0 ? std::to_string(core::capacity_of(kind)) : ""} {}

std::string redis_lock::renewed_as(const core::owner_id& id) const {
  return (core::is_shared(kind_) ? "#" : "") + std::string{id.text()};
}

std::array<std::string_view, 4> redis_lock::keys() const noexcept {
  return {keys_.lock, keys_.slot, keys_.queue, keys_.waiters};
}

script_call redis_lock::release_script(std::string_view whose, std::string_view entry,
                                       std::string_view spared) const {
  // Other clients do not know these locks: there is nobody to leave room for.
  if (core::is_shared(kind_)) {
    const std::array<std::string_view, 5> args{whose, entry, spared, kind_name(kind_.what),
                                               capacity_};
    return {scripts::share_release, keys(), args};
  }
  if (!server_->share_with_foreign) {
    const std::array<std::string_view, 3> args{whose, entry, spared};
    return {scripts::release, keys(), args};
  }
  static const auto hands = std::to_string(core::share_after_hands);
  static const auto time = milliseconds_text(core::share_after);
  const auto room = milliseconds_text(core::room_for_foreign(runtime::random_bits()));
  const std::array<std::string_view, 6> args{whose, entry, spared, hands, time, room};
  return {scripts::release, keys(), args};
}

const scripts::script& redis_lock::renew_script() const noexcept { return scripts::renew; }

redis_lock::unanswered_releases redis_lock::pending_releases() {
  const std::lock_guard guard{m_};
  if (last_release_.answered()) last_release_ = {};
  return {last_release_, releasing_};
}

std::unique_ptr<attempt> redis_lock::begin(attempt_spec what) {
  return std::make_unique<redis_attempt>(*this, std::move(what));
}

// ---- giving back -------------------------------------------------------------------------------

void redis_lock::release(const core::owner_id& id, core::time_point until, caller& by,
                         on_removal done) {
  release_by_id(*server_, release_script(id.text(), {}), until, false, by, std::move(done));
}

// A release that nobody waits for. Keeps the lock's object: a caller that opens the name again
// meanwhile must find what is under way.
struct redis_lock::posted_release {
  posted_release(std::shared_ptr<redis_lock> of, const core::owner_id& whose, script_call call,
                 core::time_point until)
      : lock{std::move(of)}, id{whose}, script{std::move(call)}, give_up{until} {}
  posted_release(const posted_release&) = delete;
  posted_release& operator=(const posted_release&) = delete;
  // Whatever drops it without an answer gives it up: the client was closed, and its queues with it.
  ~posted_release() {
    if (over) return;
    const failure why{errc::stopped,
                      "the client was closed before the server answered the release: the lock is "
                      "free when its TTL ends, if not before",
                      {}};
    lock->release_over(*this, &why);
  }

  const std::shared_ptr<redis_lock> lock;
  const core::owner_id id;
  const script_call script;
  const core::time_point give_up;
  bool over = false;
};

void redis_lock::release_over(posted_release& what, const failure* why) {
  what.over = true;
  {
    const std::lock_guard guard{m_};
    std::erase(releasing_, what.id);
  }
  if (why != nullptr && server_->events.release_given_up) {
    const std::string_view key = keys_.lock;
    const bool ours = key.starts_with(server_->prefix);  // who sends to an inbox may name any key
    server_->events.release_given_up(ours ? key.substr(server_->prefix.size()) : key, *why);
  }
  server_->release_ended();
}

// Whatever keeps the quick way from working, the slow way is tried in the background.
void redis_lock::try_again(const std::shared_ptr<posted_release>& what, bool unanswered) {
  server_->in_background([what, unanswered](caller& by) {
    release_by_id(*what->lock->server_, what->script, what->give_up, unanswered, by,
                  [what](const result<removal>& said) {
                    what->lock->release_over(*what, said ? nullptr : &said.error());
                  });
  });
}

void redis_lock::on_release_reply(const std::shared_ptr<posted_release>& what,
                                  const result<reply>& answer) {
  const bool answered = answer && (*answer)->type == reply_kind::integer;
  const auto said = answered ? release_reply{(*answer)->integer} : release_reply::gone;
  others_wait_ = said == release_reply::handed_over;
  if (answered && !is_unfinished(said)) {
    release_over(*what, nullptr);
  } else {
    try_again(what, !answer && answer.error().code == errc::outcome_unknown);
  }
  server_->room_was_made();
}

bool redis_lock::send(const std::shared_ptr<posted_release>& what) {
  sent_position behind;
  {
    const std::lock_guard guard{m_};
    behind = last_release_;
  }
  // A server writes replies in the order in which it first had something for each connection, the
  // latest first. With a word for us before it, the next holder's message comes before our reply.
  static const auto word = [] {
    command ping{1};
    ping.arg("PING");
    return ping.bytes();
  }();
  auto sent = server_->calls.post(
      what->script, behind,
      [what](const result<reply>& answer) { what->lock->on_release_reply(what, answer); },
      others_wait_ ? std::string_view{word} : std::string_view{});
  if (!sent.on) {
    try_again(what, false);
    return true;
  }
  if (sent.position == 0) return false;
  {
    const std::lock_guard guard{m_};
    last_release_ = std::move(sent);
  }
  server_->watch_replies();
  return true;
}

void redis_lock::release_later(const core::owner_id& id, core::time_point give_up) noexcept {
  post(std::make_shared<posted_release>(shared_from_this(), id, release_script(id.text(), {}),
                                        give_up));
}

void redis_lock::give_back(const core::owner_id& id, fencing_token token,
                           core::time_point give_up) noexcept {
  const auto whose = core::planted(core::planted_bug::stray_token) ? std::string{id.text()}
                                                                   : value_begins(id, token);
  post(
      std::make_shared<posted_release>(shared_from_this(), id, release_script(whose, {}), give_up));
}

void redis_lock::post(const std::shared_ptr<posted_release>& what) {
  server_->release_began();
  {
    const std::lock_guard guard{m_};
    releasing_.push_back(what->id);
  }
  if (server_->others_wait_their_turn() || !send(what)) {
    server_->wait_turn([what] { return what->lock->send(what); });
  }
}

// ---- extending and looking ---------------------------------------------------------------------

void redis_lock::extend(const core::owner_id& id, fencing_token token, core::duration ttl,
                        core::time_point until, caller& by, on_renewal done) {
  const auto ttl_text = milliseconds_text(ttl);
  const auto token_text = to_string(token);
  const std::array<std::string_view, 1> one{renewed_key()};
  const auto whose = renewed_as(id);
  const std::array<std::string_view, 3> args{whose, ttl_text, token_text};
  const auto counted_from = runtime::now();
  server_->calls.run({renew_script(), one, args}, until, pending_releases().last, by,
                     [node = server_->calls.node(), ttl, counted_from, done = std::move(done)](
                         result<reply> answer, const auto&) {
                       if (!answer) return done(fail(std::move(answer.error())));
                       const auto fields = elements_of(**answer);
                       if (fields.size() < 3) return done(fail(strange_answer(node)));
                       done(read_renewal(*fields[2], ttl, counted_from));
                     });
}

void redis_lock::downgrade(const core::owner_id& id, fencing_token token, core::duration ttl,
                           core::time_point until, caller& by, on_renewal done) {
  const auto ttl_text = milliseconds_text(ttl);
  const auto token_text = to_string(token);
  const std::array<std::string_view, 3> args{id.text(), ttl_text, token_text};
  downgrade({scripts::share_downgrade, keys(), args}, 0, ttl, until, by, std::move(done));
}

void redis_lock::downgrade(script_call script, int calls, core::duration ttl,
                           core::time_point until, caller& by, on_renewal done) {
  const auto counted_from = runtime::now();
  server_->calls.run(script, until, pending_releases().last, by,
                     [this, script, calls, ttl, until, &by, counted_from, done = std::move(done)](
                         result<reply> answer, const auto&) {
                       if (!answer) return done(fail(std::move(answer.error())));
                       const auto fields = elements_of(**answer);
                       if (fields.size() < 2)
                         return done(fail(strange_answer(server_->calls.node())));
                       if (fields[1]->integer == 1 && calls < hand_over_calls_max) {
                         return downgrade(script, calls + 1, ttl, until, by, done);
                       }
                       done(read_renewal(*fields[0], ttl, counted_from));
                     });
}

result<void> redis_lock::resize(std::uint32_t permits, core::time_point until) {
  const auto text = std::to_string(permits);
  const std::array<std::string_view, 1> args{text};
  for (int i = 0; i < hand_over_calls_max; ++i) {
    auto answer = wait_here<result<reply>>([&](auto& by, auto done) {
      server_->calls.run({scripts::share_resize, keys(), args}, until, {}, by,
                         [done](auto said, const auto&) { done(std::move(said)); });
    });
    if (!answer) return fail(std::move(answer.error()));
    if (resize_reply{(*answer)->integer} != resize_reply::unfinished) break;
  }
  return {};
}

result<fencing_token> redis_lock::count(const core::owner_id& id, std::string_view counter,
                                        core::time_point until) {
  if (kind_.what != core::lock_kind::form::exclusive) return store_lock::count(id, counter, until);
  const auto counter_key = server_->prefix + std::string{counter};
  if (auto ok = check_key(counter_key); !ok) return fail(std::move(ok.error()));
  const std::array<std::string_view, 2> both{keys_.lock, counter_key};
  const std::array<std::string_view, 1> args{id.text()};
  auto answer = wait_here<result<reply>>([&](auto& by, auto done) {
    server_->calls.run({scripts::count_token, both, args}, until, {}, by,
                       [done](auto said, const auto&) { done(std::move(said)); });
  });
  if (!answer) return fail(std::move(answer.error()));
  const auto counted = read_number(text_of(**answer));
  if (counted > 0) return fencing_token{counted};
  return fail(errc::lease_lost, "the lease has ended, so no token was counted for it");
}

result<lock_status> redis_lock::inspect(core::time_point until) {
  const std::array<std::string_view, 2> both{keys_.lock, keys_.queue};
  const auto shown = std::to_string(waiters_shown_max);
  const std::array<std::string_view, 1> args{shown};
  auto answer = wait_here<result<reply>>([&](auto& by, auto done) {
    server_->calls.look({scripts::inspect, both, args}, until, pending_releases().last, by,
                        std::move(done));
  });
  if (!answer) return fail(std::move(answer.error()));
  const auto fields = elements_of(**answer);
  if (fields.size() < status_elements) return fail(strange_answer(server_->calls.node()));
  return read_status(keys_.lock.substr(server_->prefix.size()), fields);
}

// By what break.lua and recall.lua say: nothing, or why nothing was done.
result<void> redis_lock::check_held_with(std::string_view token, reply_elements said) const {
  if (said.empty()) return fail(strange_answer(server_->calls.node()));
  if (break_reply{said[0]->integer} == break_reply::broken) return {};
  if (said.size() < 2) return fail(errc::not_held, "nobody holds the lock; nothing was changed");
  auto other = parse_holder(text_of(*said[1]));
  if (!other) return fail(std::move(other.error()));
  if (other->foreign) {
    return fail(errc::not_held,
                "the lock is held by another kind of client, which has no token; nothing was "
                "changed: release it there, or delete the key by hand");
  }
  return fail(errc::not_held, "the lock is held with token " + to_string(other->token) + ", not " +
                                  std::string{token} + "; nothing was changed");
}

result<void> redis_lock::break_with(fencing_token token, core::time_point until) {
  const auto text = to_string(token);
  const std::array<std::string_view, 1> args{text};
  auto answer = wait_here<result<reply>>([&](auto& by, auto done) {
    server_->calls.run({scripts::break_, keys(), args}, until, {}, by,
                       [done](auto said, const auto&) { done(std::move(said)); });
  });
  if (!answer) return fail(std::move(answer.error()));
  return check_held_with(text, elements_of(**answer));
}

result<core::duration> redis_lock::recall(fencing_token token, core::time_point until) {
  if (core::is_redissons(kind_)) return store_lock::recall(token, until);
  const auto text = to_string(token);
  const std::array<std::string_view, 1> key{keys_.lock};
  const std::array<std::string_view, 1> args{text};
  auto answer = wait_here<result<reply>>([&](auto& by, auto done) {
    server_->calls.run({scripts::recall, key, args}, until, {}, by,
                       [done](auto said, const auto&) { done(std::move(said)); });
  });
  if (!answer) return fail(std::move(answer.error()));
  const auto said = elements_of(**answer);
  if (auto ok = check_held_with(text, said); !ok) return fail(std::move(ok.error()));
  if (said.size() < 2) return fail(strange_answer(server_->calls.node()));
  // Without an expiry: a foreign hand has taken that away.
  return read_pttl(*said[1]).value_or(core::duration::max());
}

namespace {

// What inspect.lua says of a lock that several may hold.
result<void> read_shares(reply_elements said, lock_status& to) {
  constexpr std::size_t before_holders = 5;
  if (said.size() < before_holders) return {};
  to.kind = kind_called(text_of(*said[0]));
  to.capacity = static_cast<std::uint32_t>(said[1]->integer);
  to.units_in_use = static_cast<std::uint32_t>(said[2]->integer);
  to.holding = static_cast<std::size_t>(said[3]->integer);
  for (std::size_t i = before_holders; i + 1 < said.size(); i += 2) {
    auto one = parse_holder(text_of(*said[i + 1]));
    if (!one) return fail(std::move(one.error()));
    one->units = static_cast<std::uint32_t>(read_number(text_of(*said[i])));
    to.holders.push_back(std::move(*one));
  }
  if (to.holders.empty()) return {};
  to.holder = to.holders.front();
  to.remaining = std::chrono::milliseconds{said[4]->integer};
  return {};
}

}  // namespace

result<lock_status> read_status(std::string name, reply_elements said) {
  const auto& value = *said[0];
  const auto& pttl = *said[1];
  lock_status status;
  status.name = std::move(name);
  status.waiting = static_cast<std::size_t>(std::max(0LL, said[2]->integer));
  for (const auto* one : elements_of(*said[3])) {
    if (const auto entry = queue_entry::parse(text_of(*one))) {
      status.waiters.push_back(describe_waiter(entry->holder, entry->joined));
    }
  }
  if (value.type == reply_kind::array) {
    if (auto ok = read_shares(elements_of(value), status); !ok) return fail(std::move(ok.error()));
    return status;
  }
  if (value.type != reply_kind::text) {
    constexpr long long no_such_key = -2;
    if (pttl.integer == no_such_key) return status;
    return fail(
        errc::wrong_type,
        "the lock's key holds something that is not a lock: choose another name or a prefix");
  }
  auto holder = parse_holder(text_of(value));
  if (!holder) return fail(std::move(holder.error()));
  status.holder = std::move(*holder);
  if (const auto left = read_pttl(pttl)) {
    status.remaining = std::chrono::duration_cast<std::chrono::milliseconds>(*left);
  }
  return status;
}

renewal read_renewal(const reply_value& answer, core::duration ttl, core::time_point counted_from) {
  if (answer.type == reply_kind::text) {
    const auto from = core::planted(core::planted_bug::early_count) ? runtime::now() : counted_from;
    return {true, loss::none, ttl, from, fencing_token{read_number(text_of(answer))}};
  }
  switch (renew_reply{answer.integer}) {
    case renew_reply::gone:
      return {false, loss::deleted, {}, {}, {}};
    case renew_reply::recalled:
      return {false, loss::recalled, {}, {}, {}};
    case renew_reply::taken:
      break;
  }
  return {false, loss::taken, {}, {}, {}};
}

}  // namespace holdfast::stores::redis
