#include <algorithm>
#include <utility>

#include <holdfast/redisson/counters.hpp>

#include "client/client_access.hpp"
#include "client/counting.hpp"
#include "client/value_or_throw.hpp"

namespace holdfast::redisson {

namespace {

using detail::counter_ptr;
using detail::fail;
using detail::value_or_throw;
using form = core::counter_kind::form;
using verb = core::counter_request::verb;

detail::counter_handle open(client& on, std::string_view name, form what) {
  const auto& s = detail::client_access::state_of(on);
  if (!s) throw error{{errc::invalid_argument, "this client object was moved from", {}}};
  return detail::counter_handle{value_or_throw(detail::open_counter(s, name, {what, 0, {}}))};
}

result<core::counter_answer> ask(const counter_ptr& of, verb what, std::int64_t amount = 1) {
  if (auto ok = core::check_redisson_count(amount); !ok) return fail(std::move(ok.error()));
  return detail::request(of, {what, amount, {}});
}

result<void> done(const result<core::counter_answer>& said) {
  if (!said) return fail(said.error());
  return {};
}

result<void> acquire_within(const counter_ptr& of, std::uint32_t permits,
                            std::optional<any_nanoseconds> wait, const std::stop_token& stop) {
  if (auto ok = core::check_redisson_count(permits); !ok) return ok;
  return detail::wait_out(of, {verb::take, permits, {}}, wait, stop);
}

}  // namespace

// ---- rsemaphore --------------------------------------------------------------------------------

rsemaphore::rsemaphore(client& on, std::string_view name)
    : handle_{open(on, name, form::redisson_semaphore)} {}

bool rsemaphore::try_acquire(std::uint32_t permits) {
  return value_or_throw(ask(handle_.state(), verb::take, permits)).done;
}
bool rsemaphore::try_acquire(std::uint32_t permits, any_nanoseconds wait,
                             const std::stop_token& stop) {
  value_or_throw(core::check_redisson_count(permits));
  return value_or_throw(detail::wait_for(handle_.state(), {verb::take, permits, {}}, wait, stop));
}

void rsemaphore::acquire(std::uint32_t permits, const std::stop_token& stop) {
  value_or_throw(acquire_result(permits, stop));
}
result<void> rsemaphore::acquire_result(std::uint32_t permits, const std::stop_token& stop) {
  return acquire_within(handle_.state(), permits, {}, stop);
}
result<void> rsemaphore::acquire_result(std::uint32_t permits, any_nanoseconds wait,
                                        const std::stop_token& stop) {
  return acquire_within(handle_.state(), permits, wait, stop);
}

void rsemaphore::release(std::uint32_t permits) { value_or_throw(release_result(permits)); }
result<void> rsemaphore::release_result(std::uint32_t permits) {
  return done(ask(handle_.state(), verb::add, permits));
}

std::int64_t rsemaphore::available_permits() {
  return value_or_throw(ask(handle_.state(), verb::look)).value;
}

bool rsemaphore::try_set_permits(std::uint32_t permits) {
  return value_or_throw(ask(handle_.state(), verb::set, permits)).done;
}

void rsemaphore::add_permits(std::int64_t permits) {
  const auto more = std::max(permits, -core::redisson_count_max - 1);  // has an opposite
  value_or_throw(core::check_redisson_count(more < 0 ? -more : more));
  value_or_throw(done(detail::request(handle_.state(), {verb::add, permits, {}})));
}

std::int64_t rsemaphore::drain_permits() {
  return value_or_throw(ask(handle_.state(), verb::drain)).value;
}

// ---- rcount_down_latch -------------------------------------------------------------------------

rcount_down_latch::rcount_down_latch(client& on, std::string_view name)
    : handle_{open(on, name, form::redisson_latch)} {}

bool rcount_down_latch::try_set_count(std::uint32_t count) {
  return value_or_throw(ask(handle_.state(), verb::set, count)).done;
}

std::int64_t rcount_down_latch::count_down() { return value_or_throw(count_down_result()); }
result<std::int64_t> rcount_down_latch::count_down_result() {
  auto said = ask(handle_.state(), verb::subtract);
  if (!said) return fail(std::move(said.error()));
  return said->value;
}

std::int64_t rcount_down_latch::count() {
  return value_or_throw(ask(handle_.state(), verb::look)).value;
}

void rcount_down_latch::wait(const std::stop_token& stop) { value_or_throw(wait_result(stop)); }
bool rcount_down_latch::wait(any_nanoseconds wait, const std::stop_token& stop) {
  return value_or_throw(detail::wait_for(handle_.state(), {verb::watch, 0, {}}, wait, stop));
}
result<void> rcount_down_latch::wait_result(const std::stop_token& stop) {
  return detail::wait_out(handle_.state(), {verb::watch, 0, {}}, {}, stop);
}
result<void> rcount_down_latch::wait_result(any_nanoseconds wait, const std::stop_token& stop) {
  return detail::wait_out(handle_.state(), {verb::watch, 0, {}}, wait, stop);
}

}  // namespace holdfast::redisson
