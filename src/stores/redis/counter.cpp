#include "stores/redis/counter.hpp"

#include <array>
#include <span>
#include <utility>

#include "stores/redis/counter_attempt.hpp"
#include "stores/redis/layout.hpp"
#include "stores/redis/redisson/layout.hpp"
#include "stores/redis/script_values.hpp"

namespace holdfast::stores::redis {

namespace {

using verb = core::counter_request::verb;
using form = core::counter_kind::form;

std::string channel_of(const core::counter_kind& kind, const std::string& key) {
  switch (kind.what) {
    case form::latch:
      return latch_channel(key);
    case form::redisson_latch:
      return redisson::latch_channel(key);
    case form::redisson_semaphore:
      break;
  }
  return redisson::key_for("redisson_sc", key);
}

}  // namespace

redis_counter::redis_counter(std::shared_ptr<server> on, std::shared_ptr<channel_listener> messages,
                             std::string key, const core::counter_kind& kind)
    : server_{std::move(on)},
      messages_{std::move(messages)},
      key_{std::move(key)},
      kind_{kind},
      channel_{channel_of(kind, key_)} {}

std::unique_ptr<counter_attempt> redis_counter::begin(core::counter_request what, bool may_wait) {
  return std::make_unique<redis_counter_attempt>(shared_from_this(), std::move(what), may_wait);
}

script_call redis_counter::script_of(const core::counter_request& what, const core::owner_id& id,
                                     std::string_view round) const {
  return kind_.what == form::latch ? latch_script(what, id, round) : redisson_script(what);
}

script_call redis_counter::latch_script(const core::counter_request& what, const core::owner_id& id,
                                        std::string_view round) const {
  const auto count = std::to_string(kind_.count);
  const auto keep = milliseconds_text(kind_.keep);
  const std::array<std::string_view, 1> keys{key_};
  if (what.what == verb::subtract) {
    const auto amount = std::to_string(what.amount);
    const auto part = what.part.empty() ? std::string{id.text()} : "=" + what.part;
    const std::array<std::string_view, 6> args{count, amount, part, id.text(), keep, channel_};
    return {scripts::latch_count, keys, args};
  }
  if (what.what == verb::start_anew) {
    const std::array<std::string_view, 4> args{count, id.text(), keep, channel_};
    return {scripts::latch_start_anew, keys, args};
  }
  const std::string_view kept_for = what.what == verb::watch ? std::string_view{keep} : "0";
  const std::array<std::string_view, 3> args{count, round, kept_for};
  return {scripts::latch_look, keys, args};
}

script_call redis_counter::redisson_script(const core::counter_request& what) const {
  const auto publish_command = server_->publish_command();
  const auto amount = std::to_string(what.amount);
  const bool is_latch = kind_.what == form::redisson_latch;
  const std::array<std::string_view, 2> keys{key_, channel_};
  const auto only_key = std::span{keys}.first(1);
  switch (what.what) {
    case verb::subtract: {
      const std::array<std::string_view, 2> args{publish_command, redisson::latch_is_open};
      return {scripts::redisson_latch_count, keys, args};
    }
    case verb::take: {
      const std::array<std::string_view, 1> args{amount};
      return {scripts::redisson_semaphore_take, only_key, args};
    }
    case verb::add: {
      const std::array<std::string_view, 2> args{amount, publish_command};
      return {scripts::redisson_semaphore_add, keys, args};
    }
    case verb::set: {
      const std::array<std::string_view, 3> args{
          amount, publish_command, is_latch ? redisson::latch_is_new : std::string_view{amount}};
      return {scripts::redisson_counter_set, keys, args};
    }
    case verb::drain:
      return {scripts::redisson_semaphore_drain, only_key, {}};
    case verb::look:
    case verb::watch:
    case verb::start_anew:  // of a latch of ours only
      break;
  }
  return {scripts::redisson_counter_look, only_key, {}};
}

}  // namespace holdfast::stores::redis
