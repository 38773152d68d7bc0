#include "stores/redis/redisson/permit_lock.hpp"

#include <array>
#include <utility>

#include "stores/redis/redisson/layout.hpp"
#include "stores/redis/release_by_id.hpp"
#include "stores/redis/script_values.hpp"

namespace holdfast::stores::redis::redisson {

permit_lock::permit_lock(std::shared_ptr<server> at, std::shared_ptr<channel_listener> messages,
                         std::string name, std::uint32_t permits)
    : hash_lock{std::move(at), std::move(messages), std::move(name),
                std::string_view{"redisson_sc"}},
      timeouts_{key_of(key(), "timeout")},
      permits_{std::to_string(permits)} {}

script_call permit_lock::acquire_script(const ask_details& ask) const {
  const auto ttl = milliseconds_text(ask.wants.ttl);
  const std::array<std::string_view, 3> keys{key(), timeouts_, channel()};
  const std::array<std::string_view, 4> args{ask.id.text(), ttl, permits_, on().publish_command()};
  return {scripts::redisson_permit_acquire, keys, args};
}

script_call permit_lock::release_script(std::string_view whose, std::string_view,
                                        std::string_view) const {
  const std::array<std::string_view, 3> keys{key(), timeouts_, channel()};
  const std::array<std::string_view, 2> args{whose, on().publish_command()};
  return {scripts::redisson_permit_release, keys, args};
}

const scripts::script& permit_lock::renew_script() const noexcept {
  return scripts::redisson_permit_renew;
}

void permit_lock::release(const core::owner_id& id, core::time_point until, caller& by,
                          on_removal done) {
  redis_lock::release(id, until, by, std::move(done));
}

result<lock_status> permit_lock::inspect(core::time_point) {
  return fail(errc::unsupported, "a semaphore of Redisson has no single holder to be shown");
}

result<void> permit_lock::break_with(fencing_token, core::time_point) {
  return fail(errc::unsupported, "a permit of a Redisson semaphore has no token to break it by");
}

}  // namespace holdfast::stores::redis::redisson
