#include "stores/redis/redisson/fair_lock.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "core/queue_place.hpp"
#include "stores/redis/layout.hpp"
#include "stores/redis/redisson/layout.hpp"
#include "stores/redis/script_values.hpp"

namespace holdfast::stores::redis::redisson {

namespace {

// A waiter that is gone without a word keeps its place for two TTLs when it comes to the front, and
// never longer than those of Redisson do by default, which do not say that they are still there.
// It is also by how much a Java process's clock may be ahead of the server's without costing ours
// their places.
constexpr int ttls_of_a_place = 2;
constexpr core::duration place_max = std::chrono::minutes{5};
constexpr std::string_view waiters_max = "10000";

core::duration place_kept(core::duration ttl) {
  return ttl < place_max / ttls_of_a_place ? ttl * ttls_of_a_place : place_max;
}

}  // namespace

fair_lock::fair_lock(std::shared_ptr<server> at, std::shared_ptr<channel_listener> messages,
                     std::string name)
    : hash_lock{std::move(at), std::move(messages), std::move(name),
                std::string_view{"redisson_lock__channel"}},
      queue_{key_for("redisson_lock_queue", key())},
      places_{key_for("redisson_lock_timeout", key())} {}

std::string fair_lock::channel_of(std::string_view entry) const {
  return channel() + ':' + std::string{entry};
}

std::string fair_lock::entry_of(const core::owner_id& id, core::duration ttl,
                                std::string_view holder) const {
  return std::string{id.text()} + ";holdfast=1;place=" + milliseconds_text(place_kept(ttl)) + ';' +
         std::string{holder};
}

core::duration fair_lock::ask_within(core::duration ttl) const {
  return std::min(hash_lock::ask_within(ttl), core::ask_within(place_kept(ttl)));
}

script_call fair_lock::acquire_script(const ask_details& ask) const {
  const auto ttl = milliseconds_text(ask.wants.ttl);
  const auto number = std::to_string(ask.number);
  const auto since_last = milliseconds_text(ask.since_last);
  const std::array<std::string_view, 3> keys{key(), queue_, places_};
  const std::array<std::string_view, 9> args{
      ask.id.text(),          ttl,      number, ask.holder, ask.entry, since_last, waiters_max,
      on().publish_command(), channel()};
  return {scripts::redisson_fair_acquire, keys, args};
}

script_call fair_lock::release_call(const release_details& what) const {
  const std::array<std::string_view, 4> keys{key(), queue_, places_, what.latch};
  const std::array<std::string_view, 6> args{
      what.whose, what.spared, what.entry, on().publish_command(), channel(), what.latch_kept_ms};
  return {scripts::redisson_fair_release, std::span{keys}.first(what.latch.empty() ? 3 : 4), args};
}

script_call fair_lock::inspect_script() const {
  const auto shown = std::to_string(waiters_shown_max);
  const std::array<std::string_view, 2> keys{key(), queue_};
  const std::array<std::string_view, 1> args{shown};
  return {scripts::redisson_fair_inspect, keys, args};
}

script_call fair_lock::break_script(std::string_view token) const {
  const std::array<std::string_view, 3> keys{key(), queue_, places_};
  const std::array<std::string_view, 3> args{token, on().publish_command(), channel()};
  return {scripts::redisson_fair_break, keys, args};
}

result<lock_status> fair_lock::read_inspected(reply_elements said) const {
  auto status = hash_lock::read_inspected(said);
  if (!status) return status;
  status->waiters.clear();  // ours may look like entries of a mutex's queue
  for (const auto* one : elements_of(*said[3])) {
    auto who = parse_holder(text_of(*one));
    if (!who) return fail(std::move(who.error()));
    // Of others only the entry is known.
    status->waiters.push_back({std::move(who->host), who->pid,
                               who->foreign ? std::move(who->value) : std::move(who->label),
                               who->since});
  }
  return status;
}

}  // namespace holdfast::stores::redis::redisson
