#include "stores/redis/redis_lock.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "core/foreign.hpp"
#include "core/queue_place.hpp"
#include "runtime/clock.hpp"
#include "runtime/random.hpp"
#include "runtime/sleep.hpp"
#include "stores/redis/layout.hpp"
#include "stores/redis/script_values.hpp"

namespace holdfast::stores::redis {

namespace {

// Entries in one lock's queue; beyond it an acquisition fails with errc::overloaded.
constexpr std::string_view queue_entries_max = "10000";
// What an attempt that was not granted at once has to remember.
struct waiting {
  waiting(std::shared_ptr<server> at, const core::owner_id& as) : on{std::move(at)}, id{as} {}
  waiting(const waiting&) = delete;
  waiting& operator=(const waiting&) = delete;
  // However the attempt ended: a grant that comes now is for nobody.
  ~waiting() {
    if (!entry.empty()) on->grants.forget(id);
  }

  const std::shared_ptr<server> on;
  const core::owner_id id;
  // Asks that were sent and not answered: a release must follow each of them, on its own
  // connection, where it cannot overtake.
  std::vector<trace> unanswered;
  // Its entry in the queue; empty: not joined.
  std::string entry;
  core::queue_place place;
};

waiting& memory_of(blocking::attempt& who, server& on) {
  if (!who.memory) who.memory = std::make_shared<waiting>(on.shared_from_this(), who.id);
  return *static_cast<waiting*>(who.memory.get());
}

fencing_token read_token(std::string_view text) noexcept {
  return fencing_token{read_number(text)};
}

}  // namespace

redis_lock::redis_lock(std::shared_ptr<server> on, std::string key)
    : server_{std::move(on)}, keys_{std::move(key)} {}

std::array<std::string_view, 4> redis_lock::keys() const noexcept {
  return {keys_.lock, keys_.slot, keys_.queue, keys_.waiters};
}

script_call redis_lock::release_script(std::string_view whose, std::string_view entry,
                                       std::string_view spared) const {
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

redis_lock::unanswered_releases redis_lock::pending_releases() {
  const std::lock_guard guard{m_};
  if (last_release_.answered()) last_release_ = {};
  return {last_release_, releasing_};
}

void redis_lock::release_answered(const core::owner_id& id) {
  const std::lock_guard guard{m_};
  std::erase(releasing_, id);
}

result<core::answer> redis_lock::ask(blocking::attempt& who, core::time_point until) {
  auto answer = ask_or_take(who, until);
  const auto* granted = answer ? std::get_if<core::grant>(&*answer) : nullptr;
  // An earlier ask that arrives only after this grant was given back must not take the lock again.
  if (granted != nullptr && who.memory) {
    static_cast<void>(follow_unanswered(who, value_begins(who.id, granted->token)));
  }
  return answer;
}

result<core::answer> redis_lock::ask_or_take(blocking::attempt& who, core::time_point until) {
  if (auto granted = take_delivered(who)) return core::answer{*granted};
  bool joining = who.may_wait && server_->grants.is_open();
  for (int calls = 0; calls < hand_over_calls_max; ++calls) {
    auto got = ask_once(who, joining, until);
    if (!got) return fail(std::move(got.error()));
    if (got->call_again) continue;
    if (got->in_the_way) {
      // Our own release did not get through yet. To the caller the lock is free: see to it.
      const auto script = release_script(got->in_the_way->text(), {});
      auto freed = release_by_id(*server_, script, until, false);
      if (!freed) return fail(std::move(freed.error()));
      continue;
    }
    if (joining || !who.may_wait || std::holds_alternative<core::grant>(got->answer)) {
      return std::move(got->answer);
    }
    // Busy, and we are to wait. If there can be no inbox, that is by polling.
    if (!server_->grants.open(until)) return std::move(got->answer);
    joining = true;
  }
  return fail(errc::store_busy, "the lock's queue is full of waiters that are gone");
}

// A grant that was sent to our inbox.
std::optional<core::grant> redis_lock::take_delivered(blocking::attempt& who) {
  if (!who.memory || memory_of(who, *server_).entry.empty()) return std::nullopt;
  const auto message = server_->grants.take(who.id);
  if (!message) return std::nullopt;
  auto granted =
      memory_of(who, *server_).place.accept(message->token, message->claim, message->block);
  if (granted) server_->grants.forget(who.id);
  return granted;
}

result<redis_lock::asked> redis_lock::ask_once(blocking::attempt& who, bool joining,
                                               core::time_point until) {
  const auto ttl = milliseconds_text(who.ttl);
  const auto block = std::to_string(who.block);
  static const auto written = std::to_string(layout_written);
  static const auto readable = std::to_string(layout_readable_max);
  const auto holder_text = describe_holder(server_->host, ::getpid(), who.label);
  if (joining && memory_of(who, *server_).entry.empty()) {
    using std::chrono::milliseconds;
    const auto joined =
        std::chrono::duration_cast<milliseconds>(runtime::wall_now().time_since_epoch());
    memory_of(who, *server_).entry =
        queue_entry{who.id,    std::chrono::ceil<milliseconds>(who.claim_ttl),
                    who.block, server_->grants.name(),
                    joined,    holder_text}
            .text();
    server_->grants.expect(who.id);
  }
  const std::string_view entry = joining ? memory_of(who, *server_).entry : std::string_view{};
  const std::array<std::string_view, 8> args{who.id.text(), ttl,   written,           readable,
                                             holder_text,   entry, queue_entries_max, block};
  const script_call script{scripts::acquire, keys(), args};

  ++who.asks;
  trace used;
  // As of now: they may be answered before our own answer is read, and "busy" is outdated then.
  const auto releases = pending_releases();
  // Sent right behind our own release, the ask would be run before the next holder is told. On a
  // connection that is stuck that would never be, and there are others.
  if (wanted_ && releases.last.on && !releases.last.on->suspect()) {
    const auto soon = core::after(runtime::now(), channel::posted_reply_max);
    releases.last.on->await(releases.last.position, std::min(until, soon));
  }
  const auto counted_from = runtime::now();
  auto answer = server_->calls.run(script, until, releases.last, &used);
  if (!answer) {
    if (answer.error().code == errc::outcome_unknown) {
      memory_of(who, *server_).unanswered.push_back(std::move(used));
      server_->watch_replies();
    }
    return fail(std::move(answer.error()));
  }
  return read_answer(who, **answer, counted_from, releases.ids, *server_);
}

result<redis_lock::asked> redis_lock::read_answer(blocking::attempt& who, const reply_value& answer,
                                                  core::time_point counted_from,
                                                  const std::vector<core::owner_id>& releasing,
                                                  server& on) {
  const auto fields = elements_of(answer);
  const auto kind = fields.empty() ? -1 : fields[0]->integer;
  asked got;
  if (kind == 3) {
    got.call_again = true;
    return got;
  }
  if (kind == 1 && fields.size() >= 2) {
    const auto token = read_token(text_of(*fields[1]));
    const bool granted_before = fields.size() > 2;
    if (who.memory && granted_before) {
      on.grants.settle(who.id, token);
    } else if (who.memory) {
      on.grants.forget(who.id);
    }
    got.answer = core::grant{token, who.ttl, counted_from, who.block};
    return got;
  }
  const bool queued = kind == 2;
  if (fields.size() < (queued ? 5U : 3U)) return fail(strange_answer(on.calls.node()));
  const auto value = text_of(*fields[2]);
  auto holder = parse_holder(value);
  if (!holder) return fail(std::move(holder.error()));
  core::busy busy{std::move(*holder), read_pttl(*fields[1]), queued, {}};
  if (queued) {
    memory_of(who, on).place.queued(counted_from, read_token(text_of(*fields[3])).value());
    const bool must_look = fields[4]->integer == 1;
    if (!must_look) busy.ask_within = core::ask_within(who.claim_ttl);
  } else {
    const auto id = core::owner_id::parse(value.substr(0, core::owner_id::digits));
    const bool ours = id && std::find(releasing.begin(), releasing.end(), *id) != releasing.end();
    if (ours) got.in_the_way = id;
  }
  got.answer = std::move(busy);
  return got;
}

void redis_lock::wait(blocking::attempt& who, core::time_point until, const std::stop_token& stop) {
  const bool joined = who.memory && !memory_of(who, *server_).entry.empty();
  if (joined && server_->grants.is_open()) {
    server_->grants.wait(who.id, until, stop);
  } else {
    runtime::sleep_until(until, stop);
  }
}

std::size_t redis_lock::follow_unanswered(blocking::attempt& who, std::string_view spared) {
  auto& mine = memory_of(who, *server_);
  if (mine.unanswered.empty()) return 0;
  const auto script = release_script(who.id.text(), mine.entry, spared);
  std::size_t open = 0;
  for (const auto& one : mine.unanswered) {
    if (one.answered() && !one.on->broken()) continue;
    ++open;
    // As source: nobody is there to send it again if the server does not know its hash.
    if (!one.on->broken()) static_cast<void>(one.on->post(script.by_source(), nullptr));
  }
  if (open > 0) server_->watch_replies();
  return open;
}

result<removal> redis_lock::withdraw(blocking::attempt& who, core::time_point until) {
  const auto open = follow_unanswered(who, {});
  const auto script = release_script(who.id.text(), memory_of(who, *server_).entry);
  auto said = release_by_id(*server_, script, until, false);
  server_->grants.forget(who.id);
  if (!said) return said;
  const bool sure = core::surely_withdrawn(who.asks, open, *said == removal::released);
  return sure ? *said : removal::unsure;
}

result<removal> redis_lock::release(const core::owner_id& id, core::time_point until) {
  return release_by_id(*server_, release_script(id.text(), {}), until, false);
}

// A release that nobody waits for. Keeps the lock's object: whoever opens the name again meanwhile
// must find what is under way.
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
  release_answered(what.id);
  if (why != nullptr && server_->events.release_given_up) {
    const std::string_view key = keys_.lock;
    const bool ours = key.starts_with(server_->prefix);  // who sends to an inbox may name any key
    server_->events.release_given_up(ours ? key.substr(server_->prefix.size()) : key, *why);
  }
  server_->release_ended();
}

// Whatever keeps the quick way from working, the slow way is tried in the background.
void redis_lock::try_again(const std::shared_ptr<posted_release>& what, bool unanswered) {
  server_->in_background([what, unanswered] {
    auto& self = *what->lock;
    const auto said = release_by_id(*self.server_, what->script, what->give_up, unanswered);
    self.release_over(*what, said ? nullptr : &said.error());
  });
}

void redis_lock::on_release_reply(const std::shared_ptr<posted_release>& what,
                                  const result<reply>& answer) {
  const bool answered = answer && (*answer)->type == reply_kind::integer;
  wanted_ = answered && (*answer)->integer == handed_over;
  if (answered && (*answer)->integer != hand_over_unfinished &&
      (*answer)->integer != hand_over_unfinished_not_ours) {
    release_over(*what, nullptr);
  } else {
    try_again(what, !answer && answer.error().code == errc::outcome_unknown);
  }
  server_->room_was_made();
}

bool redis_lock::send(const std::shared_ptr<posted_release>& what) {
  trace behind;
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
      wanted_ ? std::string_view{word} : std::string_view{});
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
  post(std::make_shared<posted_release>(shared_from_this(), id,
                                        release_script(value_begins(id, token), {}), give_up));
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

result<lock_status> redis_lock::inspect(core::time_point until) {
  const std::array<std::string_view, 2> both{keys_.lock, keys_.queue};
  const auto shown = std::to_string(waiters_shown_max);
  const std::array<std::string_view, 1> args{shown};
  auto answer = server_->calls.look({scripts::inspect, both, args}, until, pending_releases().last);
  if (!answer) return fail(std::move(answer.error()));
  const auto fields = elements_of(**answer);
  if (fields.size() < status_elements) return fail(strange_answer(server_->calls.node()));
  return read_status(keys_.lock.substr(server_->prefix.size()), fields);
}

result<void> redis_lock::break_with(fencing_token token, core::time_point until) {
  const auto text = to_string(token);
  const std::array<std::string_view, 1> args{text};
  auto answer = server_->calls.run({scripts::break_, keys(), args}, until);
  if (!answer) return fail(std::move(answer.error()));
  const auto fields = elements_of(**answer);
  if (fields.empty()) return fail(strange_answer(server_->calls.node()));
  if (fields[0]->integer == 1) return {};
  if (fields.size() < 2) return fail(errc::not_held, "nobody holds the lock; nothing was changed");
  auto other = parse_holder(text_of(*fields[1]));
  if (!other) return fail(std::move(other.error()));
  if (other->foreign) {
    return fail(errc::not_held,
                "the lock is held by another kind of client, which has no token; nothing was "
                "changed: release it there, or delete the key by hand");
  }
  return fail(errc::not_held, "the lock is held with token " + to_string(other->token) + ", not " +
                                  text + "; nothing was changed");
}

result<renewal> redis_lock::extend(const core::owner_id& id, fencing_token token,
                                   core::duration ttl, core::time_point until) {
  const auto ttl_text = milliseconds_text(ttl);
  const auto token_text = to_string(token);
  const std::array<std::string_view, 1> one{keys_.lock};
  const std::array<std::string_view, 3> args{id.text(), ttl_text, token_text};
  const auto counted_from = runtime::now();
  auto answer = server_->calls.run({scripts::renew, one, args}, until, pending_releases().last);
  if (!answer) return fail(std::move(answer.error()));
  const auto fields = elements_of(**answer);
  if (fields.size() < 3) return fail(strange_answer(server_->calls.node()));
  return read_renewal(*fields[2], ttl, counted_from);
}

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
    return {true, loss::none, ttl, counted_from, read_token(text_of(answer))};
  }
  return {false, answer.integer == 0 ? loss::deleted : loss::taken, {}, {}, {}};
}

}  // namespace holdfast::stores::redis
