// How people look at a redlock_lock, and break it.
#include "stores/redis/layout.hpp"
#include "stores/redlock/redlock_lock.hpp"

namespace holdfast::stores::redlock {

result<lock_status> redlock_lock::inspect(core::time_point until) {
  return judge_status(key_.substr(set_->config.prefix.size()), set_->inspect({&key_, 1}, until)[0]);
}

result<void> redlock_lock::break_with(fencing_token token, core::time_point until) {
  // Who it is first: nodes that were not raised know it by another token.
  const auto views = set_->inspect({&key_, 1}, until)[0];
  auto status = judge_status({}, views);
  if (!status) return fail(std::move(status.error()));
  if (!status->holder) return fail(errc::not_held, "nobody holds the lock; nothing was changed");
  if (status->holder->foreign) {
    return fail(errc::not_held,
                "the lock is held by another kind of client, which has no token; nothing was "
                "changed: release it there, or delete the keys by hand");
  }
  if (status->holder->token != token) {
    return fail(errc::not_held, "the lock is held with token " + to_string(status->holder->token) +
                                    ", not " + to_string(token) + "; nothing was changed");
  }
  std::optional<core::owner_id> owner;
  for (const auto& one : views) {
    const auto holder = redis::parse_holder(one.value);
    if (holder && holder->token == token) owner = owner_in(one.value);
  }
  if (!owner) return fail(errc::not_held, "the lock has changed hands; nothing was changed");
  auto said = wait_here<result<removal>>(
      [&](caller& by, auto done) { release(*owner, until, by, std::move(done)); });
  if (!said) return fail(std::move(said.error()));
  return {};
}

}  // namespace holdfast::stores::redlock
