#include "stores/redis/redisson/read_write_lock.hpp"

#include <array>
#include <span>
#include <utility>

#include "runtime/clock.hpp"
#include "stores/redis/redisson/layout.hpp"
#include "stores/redis/script_replies.hpp"
#include "stores/redis/script_values.hpp"

namespace holdfast::stores::redis::redisson {

namespace {

const std::string readers_max = std::to_string(core::units_max);

}  // namespace

read_write_lock::read_write_lock(std::shared_ptr<server> at,
                                 std::shared_ptr<channel_listener> messages, std::string name)
    : hash_lock{std::move(at), std::move(messages), std::move(name),
                std::string_view{"redisson_rwlock"}} {}

script_call read_write_lock::acquire_script(const ask_details& ask) const {
  const auto ttl = milliseconds_text(ask.wants.ttl);
  const auto number = std::to_string(ask.number);
  const std::string_view mode = ask.wants.units == core::whole ? "write" : "read";
  const std::array<std::string_view, 1> keys{key()};
  const std::array<std::string_view, 6> args{ask.id.text(), ttl,  number,
                                             ask.holder,    mode, readers_max};
  return {scripts::redisson_rw_acquire, keys, args};
}

script_call read_write_lock::release_call(const release_details& what) const {
  const std::array<std::string_view, 3> keys{key(), channel(), what.latch};
  const std::array<std::string_view, 4> args{what.whose, what.spared, on().publish_command(),
                                             what.latch_kept_ms};
  return {scripts::redisson_rw_release, std::span{keys}.first(what.latch.empty() ? 2 : 3), args};
}

const scripts::script& read_write_lock::renew_script() const noexcept {
  return scripts::redisson_rw_renew;
}

script_call read_write_lock::inspect_script() const {
  const auto shown = std::to_string(waiters_shown_max);
  const std::array<std::string_view, 1> keys{key()};
  const std::array<std::string_view, 2> args{shown, readers_max};
  return {scripts::redisson_rw_inspect, keys, args};
}

script_call read_write_lock::break_script(std::string_view token) const {
  const std::array<std::string_view, 2> keys{key(), channel()};
  const std::array<std::string_view, 2> args{token, on().publish_command()};
  return {scripts::redisson_rw_break, keys, args};
}

void read_write_lock::downgrade(const core::owner_id& id, fencing_token, core::duration ttl,
                                core::time_point until, caller& by, on_renewal done) {
  const auto ttl_text = milliseconds_text(ttl);
  const std::array<std::string_view, 2> keys{key(), channel()};
  const std::array<std::string_view, 3> args{id.text(), ttl_text, on().publish_command()};
  const auto counted_from = runtime::now();
  on().calls.run({scripts::redisson_rw_downgrade, keys, args}, until, pending_releases().last, by,
                 [node = on().calls.node(), ttl, counted_from, done = std::move(done)](
                     result<reply> answer, const auto&) {
                   if (!answer) return done(fail(std::move(answer.error())));
                   const auto fields = elements_of(**answer);
                   if (fields.size() < 1) return done(fail(strange_answer(node)));
                   done(read_renewal(*fields[0], ttl, counted_from));
                 });
}

}  // namespace holdfast::stores::redis::redisson
