#include "stores/redis/redis_lock.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "runtime/clock.hpp"
#include "runtime/sleep.hpp"
#include "stores/redis/layout.hpp"

namespace holdfast::stores::redis {

namespace {

using views = std::array<std::string_view, 0>;

// Asks of an attempt that were sent and not answered: a release must follow each of them, on its
// own connection, where it cannot overtake.
struct trail {
  std::vector<trace> unanswered;
};

std::string milliseconds_text(core::duration value) {
  // Rounded up: the store must not let go before we think it does.
  return std::to_string(std::chrono::ceil<std::chrono::milliseconds>(value).count());
}

fencing_token read_token(std::string_view text) noexcept {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return fencing_token{value};
}

failure strange_answer(const std::string& node) {
  return {errc::incompatible, node + " gave an answer that makes no sense for our script", {}};
}

std::optional<core::duration> read_pttl(const redisReply& pttl) {
  if (pttl.type != REDIS_REPLY_INTEGER || pttl.integer < 0) return std::nullopt;
  // Another client may have set any expiry; beyond this, nanoseconds overflow.
  constexpr long long longest_ms = 1000LL * 3600 * 24 * 365 * 100;
  return std::chrono::milliseconds{std::min(pttl.integer, longest_ms)};
}

}  // namespace

redis_lock::redis_lock(std::shared_ptr<server> on, std::string key)
    : server_{std::move(on)}, key_{std::move(key)}, slot_key_{slot_key(key_)} {}

script_call redis_lock::release_script(const core::owner_id& id) const {
  const std::array<std::string_view, 1> keys{key_};
  const std::array<std::string_view, 1> args{id.text()};
  return {scripts::release, keys, args};
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

result<core::answer> redis_lock::ask(attempt& who, core::time_point until) {
  auto answer = ask_once(who, until);
  if (!answer || !answer->in_the_way) return std::move(answer).map(&asked::answer);
  // Our own release did not get through yet. To the caller the lock is free: see to it.
  auto freed = release_by_id(*server_, release_script(*answer->in_the_way), until, false);
  if (!freed) return fail(std::move(freed.error()));
  answer = ask_once(who, until);
  return std::move(answer).map(&asked::answer);
}

result<redis_lock::asked> redis_lock::ask_once(attempt& who, core::time_point until) {
  const auto ttl = milliseconds_text(who.ttl);
  static const auto written = std::to_string(layout_written);
  static const auto readable = std::to_string(layout_readable_max);
  const auto holder_text = describe_holder(server_->host, ::getpid(), who.label);
  const std::array<std::string_view, 2> keys{key_, slot_key_};
  const std::array<std::string_view, 5> args{who.id.text(), ttl, written, readable, holder_text};
  const script_call script{scripts::acquire, keys, args};

  ++who.asks;
  const auto counted_from = runtime::now();
  trace used;
  // As of now: they may be answered before our own answer is read, and "busy" is outdated then.
  const auto releases = pending_releases();
  auto answer = server_->calls.run(script, until, releases.last, &used);
  if (!answer) {
    if (answer.error().code == errc::outcome_unknown) {
      if (!who.memory) who.memory = std::make_shared<trail>();
      static_cast<trail*>(who.memory.get())->unanswered.push_back(std::move(used));
      server_->watch_replies();
    }
    return fail(std::move(answer.error()));
  }
  const auto fields = elements_of(**answer);
  if (fields.size() < 2) return fail(strange_answer(server_->calls.node()));
  if (fields[0]->integer == 1) {
    return asked{core::grant{read_token(text_of(*fields[1])), who.ttl, counted_from}, {}};
  }
  if (fields.size() < 3) return fail(strange_answer(server_->calls.node()));
  const auto value = text_of(*fields[2]);
  auto holder = parse_holder(value);
  if (!holder) return fail(std::move(holder.error()));
  const auto id = core::owner_id::parse(value.substr(0, core::owner_id::digits));
  const bool ours =
      id && std::find(releases.ids.begin(), releases.ids.end(), *id) != releases.ids.end();
  return asked{core::busy{std::move(*holder), read_pttl(*fields[1]), false},
               ours ? id : std::nullopt};
}

void redis_lock::wait(attempt& who, core::time_point until, const std::stop_token& stop) {
  static_cast<void>(who);
  runtime::sleep_until(until, stop);
}

result<removal> redis_lock::withdraw(attempt& who, core::time_point until) {
  const auto script = release_script(who.id);
  std::size_t open = 0;
  if (const auto* asks = static_cast<trail*>(who.memory.get())) {
    for (const auto& one : asks->unanswered) {
      if (one.answered() && !one.on->broken()) continue;
      ++open;
      // As source: nobody is there to send it again if the server does not know its hash.
      if (!one.on->broken()) static_cast<void>(one.on->post(script.by_source(), nullptr));
    }
    server_->watch_replies();
  }
  auto said = release_by_id(*server_, script, until, false);
  if (!said || open == 0) return said;
  // An ask is still on its way, or went down with its connection. Only having found its lock, and
  // no other's, proves that it will not arrive after this.
  const bool caught = who.asks == 1 && *said == removal::released;
  return caught ? *said : removal::unsure;
}

result<removal> redis_lock::release(const core::owner_id& id, core::time_point until) {
  return release_by_id(*server_, release_script(id), until, false);
}

void redis_lock::release_later(const core::owner_id& id, core::time_point give_up) noexcept {
  auto script = std::make_shared<const script_call>(release_script(id));
  // Keeps this object: whoever opens the name again meanwhile must find what is under way.
  const auto ended = [self = shared_from_this(), id] {
    self->release_answered(id);
    self->server_->release_ended();
  };
  // Whatever keeps the quick way from working, the slow way is tried in the background.
  const auto try_again = [on = server_, script, give_up, ended](bool unanswered) {
    const bool queued = on->in_background([on, script, give_up, unanswered, ended] {
      static_cast<void>(release_by_id(*on, *script, give_up, unanswered));
      ended();
    });
    if (!queued) ended();  // the TTL frees it
  };
  auto done = [ended, try_again](const result<reply>& answer) {
    if (answer && (*answer)->type == REDIS_REPLY_INTEGER) {
      ended();
    } else {
      try_again(!answer && answer.error().code == errc::outcome_unknown);
    }
  };
  server_->release_began();
  trace behind;
  {
    const std::lock_guard guard{m_};
    releasing_.push_back(id);
    behind = last_release_;
  }
  auto sent = server_->calls.post(*script, behind, std::move(done));
  if (!sent.on) {
    try_again(false);
    return;
  }
  {
    const std::lock_guard guard{m_};
    last_release_ = std::move(sent);
  }
  server_->watch_replies();
}

result<lock_status> redis_lock::inspect(core::time_point until) {
  const std::array<std::string_view, 1> keys{key_};
  auto answer =
      server_->calls.look({scripts::inspect, keys, views{}}, until, pending_releases().last);
  if (!answer) return fail(std::move(answer.error()));
  const auto fields = elements_of(**answer);
  if (fields.size() < 2) return fail(strange_answer(server_->calls.node()));
  return read_status(key_.substr(server_->prefix.size()), *fields[0], *fields[1]);
}

result<void> redis_lock::break_with(fencing_token token, core::time_point until) {
  const auto text = to_string(token);
  const std::array<std::string_view, 1> keys{key_};
  const std::array<std::string_view, 1> args{text};
  auto answer = server_->calls.run({scripts::break_, keys, args}, until);
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

result<renewal> redis_lock::extend(const core::owner_id& id, core::duration ttl,
                                   core::time_point until) {
  const auto ttl_text = milliseconds_text(ttl);
  const std::array<std::string_view, 1> keys{key_};
  const std::array<std::string_view, 2> args{id.text(), ttl_text};
  const auto counted_from = runtime::now();
  auto answer = server_->calls.run({scripts::renew, keys, args}, until, pending_releases().last);
  if (!answer) return fail(std::move(answer.error()));
  const auto fields = elements_of(**answer);
  if (fields.size() < 3) return fail(strange_answer(server_->calls.node()));
  return read_renewal(*fields[2], ttl, counted_from);
}

result<lock_status> read_status(std::string name, const redisReply& value, const redisReply& pttl) {
  lock_status status;
  status.name = std::move(name);
  if (value.type != REDIS_REPLY_STRING) return status;
  auto holder = parse_holder(text_of(value));
  if (!holder) return fail(std::move(holder.error()));
  status.holder = std::move(*holder);
  if (const auto left = read_pttl(pttl)) {
    status.remaining = std::chrono::duration_cast<std::chrono::milliseconds>(*left);
  }
  return status;
}

renewal read_renewal(const redisReply& answer, core::duration ttl, core::time_point counted_from) {
  if (answer.type == REDIS_REPLY_STRING) {
    return {true, loss::none, ttl, counted_from, read_token(text_of(answer))};
  }
  return {false, answer.integer == 0 ? loss::deleted : loss::taken, {}, {}, {}};
}

}  // namespace holdfast::stores::redis
