#include "stores/redis/redisson/hash_lock.hpp"

#include <array>
#include <span>
#include <utility>

#include "runtime/clock.hpp"
#include "runtime/random.hpp"
#include "stores/redis/redisson/hash_attempt.hpp"
#include "stores/redis/redisson/layout.hpp"
#include "stores/redis/release_by_id.hpp"
#include "stores/redis/script_replies.hpp"
#include "stores/redis/script_values.hpp"

namespace holdfast::stores::redis::redisson {

namespace {

// Redisson's spin lock shares the hash and publishes nothing, and messages can be lost.
constexpr core::duration quiet_max = std::chrono::seconds{5};
// Beyond the last moment at which the release may be sent again.
constexpr core::duration latch_slack = std::chrono::seconds{1};

}  // namespace

hash_lock::hash_lock(std::shared_ptr<server> at, std::shared_ptr<channel_listener> messages,
                     std::string name, const core::lock_kind& kind)
    : redis_lock{std::move(at), std::move(name), kind},
      messages_{std::move(messages)},
      channel_{key_for("redisson_lock__channel", key())},
      latch_prefix_{key_for("redisson_unlock_latch", key()) + ":"},
      counter_{kind.what == core::lock_kind::form::redisson_fenced
                   ? key_for("redisson_lock_token", key())
                   : std::string{}} {}

hash_lock::hash_lock(std::shared_ptr<server> at, std::shared_ptr<channel_listener> messages,
                     std::string name, std::string_view channel_for)
    : redis_lock{std::move(at), std::move(name)},
      messages_{std::move(messages)},
      channel_{key_for(channel_for, key())},
      latch_prefix_{key_for("redisson_unlock_latch", key()) + ":"} {}

std::string hash_lock::channel_of(std::string_view) const { return channel_; }
std::string hash_lock::entry_of(const core::owner_id&, core::duration, std::string_view) const {
  return {};
}
core::duration hash_lock::ask_within(core::duration) const { return quiet_max; }

script_call hash_lock::acquire_script(const ask_details& ask) const {
  const auto ttl = milliseconds_text(ask.wants.ttl);
  const auto number = std::to_string(ask.number);
  const std::array<std::string_view, 2> keys{key(), counter_};
  const std::array<std::string_view, 4> args{ask.id.text(), ttl, number, ask.holder};
  return {scripts::redisson_acquire, std::span{keys}.first(counter_.empty() ? 1 : 2), args};
}

std::unique_ptr<attempt> hash_lock::begin(attempt_spec what) {
  return std::make_unique<hash_attempt>(*this, std::move(what));
}

script_call hash_lock::release_script(std::string_view whose, std::string_view entry,
                                      std::string_view spared) const {
  return release_call({.whose = whose, .entry = entry, .spared = spared});
}

script_call hash_lock::release_call(const release_details& what) const {
  const std::array<std::string_view, 3> keys{key(), channel_, what.latch};
  const std::array<std::string_view, 5> args{what.whose, what.spared, on().publish_command(),
                                             wakes_one, what.latch_kept_ms};
  return {scripts::redisson_release, std::span{keys}.first(what.latch.empty() ? 2 : 3), args};
}

const scripts::script& hash_lock::renew_script() const noexcept { return scripts::redisson_renew; }

void hash_lock::release(const core::owner_id& id, core::time_point until, caller& by,
                        on_removal done) {
  const auto latch = latch_prefix_ + std::string{runtime::fresh_owner().text()};
  const auto kept =
      milliseconds_text(core::after(until, latch_slack) - std::min(until, runtime::now()));
  release_by_id(on(), release_call({.whose = id.text(), .latch = latch, .latch_kept_ms = kept}),
                until, false, by,
                [self = shared_from_this(), latch, done = std::move(done)](result<removal> said) {
                  if (said && *said == removal::released) {
                    command drop{2};
                    drop.arg("DEL").arg(latch);
                    // If it cannot be sent now, its TTL ends it.
                    static_cast<void>(
                        self->on().calls.post(script_call{drop.bytes(), latch}, {}, nullptr, {}));
                    self->on().watch_replies();
                  }
                  done(std::move(said));
                });
}

script_call hash_lock::inspect_script() const {
  const std::array<std::string_view, 1> keys{key()};
  return {scripts::redisson_inspect, keys, {}};
}

script_call hash_lock::break_script(std::string_view token) const {
  const std::array<std::string_view, 2> keys{key(), channel_};
  const std::array<std::string_view, 3> args{token, on().publish_command(), wakes_one};
  return {scripts::redisson_break, keys, args};
}

result<lock_status> hash_lock::read_inspected(reply_elements said) const {
  return read_status(key().substr(on().prefix.size()), said);
}

result<lock_status> hash_lock::inspect(core::time_point until) {
  auto answer = wait_here<result<reply>>([&](auto& by, auto done) {
    on().calls.look(inspect_script(), until, pending_releases().last, by, std::move(done));
  });
  if (!answer) return fail(std::move(answer.error()));
  const auto fields = elements_of(**answer);
  if (fields.size() < status_elements) return fail(strange_answer(on().calls.node()));
  return read_inspected(fields);
}

result<void> hash_lock::break_with(fencing_token token, core::time_point until) {
  const auto text = to_string(token);
  auto answer = wait_here<result<reply>>([&](auto& by, auto done) {
    on().calls.run(break_script(text), until, pending_releases().last, by,
                   [done](auto said, const auto&) { done(std::move(said)); });
  });
  if (!answer) return fail(std::move(answer.error()));
  const auto fields = elements_of(**answer);
  if (fields.empty()) return fail(strange_answer(on().calls.node()));
  switch (break_reply{fields[0]->integer}) {
    case break_reply::broken:
      return {};
    case break_reply::not_held:
      return fail(errc::not_held, "nobody holds the lock; nothing was changed");
    case break_reply::held_otherwise:
      break;
  }
  return fail(errc::not_held, "the lock is not held with token " + text + "; nothing was changed");
}

}  // namespace holdfast::stores::redis::redisson
