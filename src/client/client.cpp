#include <algorithm>
#include <utility>

#include <holdfast/client.hpp>
#include <holdfast/version.hpp>

#include "client/client_access.hpp"
#include "client/client_state.hpp"
#include "client/counting.hpp"
#include "client/make_client.hpp"
#include "client/mutex_state.hpp"
#include "client/open_store.hpp"
#include "client/share_states.hpp"
#include "client/shown_status.hpp"
#include "client/value_or_throw.hpp"
#include "runtime/clock.hpp"
#include "stores/token_base.hpp"

namespace holdfast {

namespace {

using detail::value_or_throw;
using state = std::shared_ptr<detail::client_state>;

detail::client_state& usable(const state& s) {
  if (!s) throw error{{errc::invalid_argument, "this client object was moved from", {}}};
  value_or_throw(s->usable());
  return *s;
}

core::time_point deadline(const detail::client_state& of) {
  return core::after(runtime::now(), of.options.operation_timeout);
}

// What a handle is on: a lock, and how it is acquired.
template <class State>
std::shared_ptr<State> made(const state& of, std::string_view name, const core::lock_kind& kind,
                            lock_options options) {
  auto& s = usable(of);
  auto rule = value_or_throw(core::make_lease_rule(options, s.options.clock_drift_per_mille));
  auto lock = value_or_throw(s.open(name, kind));
  return std::make_shared<State>(of, std::move(lock),
                                 detail::lock_terms{rule, std::move(options.label)});
}

}  // namespace

std::string_view version() noexcept { return HOLDFAST_VERSION; }

observer::~observer() = default;

client::client(std::string_view url, client_options options) {
  const auto parsed = value_or_throw(detail::parse_url(url));
  value_or_throw(core::check(options));
  value_or_throw(detail::check_files(parsed));
  auto store_work = std::make_shared<runtime::background>(detail::store_threads_max);
  auto store = stores::with_token_base(value_or_throw(detail::open_store(parsed, store_work)),
                                       parsed.token_base);
  state_ = detail::client_state::make(std::move(store), std::move(store_work), std::move(options));
}

client::client(state s) noexcept : state_{std::move(s)} {}
client::client(client&&) noexcept = default;
client& client::operator=(client&&) noexcept = default;
client::~client() = default;

namespace detail {

client make_client(std::unique_ptr<stores::store> store, client_options options) {
  value_or_throw(core::check(options));
  return client_access::make(
      client_state::make(std::move(store), std::make_shared<runtime::background>(store_threads_max),
                         std::move(options)));
}

}  // namespace detail

mutex client::mutex(std::string_view name) {
  const auto& s = usable(state_);
  return mutex(name, s.options.lock);
}

mutex client::mutex(std::string_view name, lock_options options) {
  return holdfast::mutex{made<detail::mutex_state>(state_, name, {}, std::move(options))};
}

shared_mutex client::shared_mutex(std::string_view name) {
  const auto& s = usable(state_);
  return shared_mutex(name, s.options.lock);
}

shared_mutex client::shared_mutex(std::string_view name, lock_options options) {
  return holdfast::shared_mutex{made<detail::shared_mutex_state>(
      state_, name, {core::lock_kind::form::shared}, std::move(options))};
}

semaphore client::semaphore(std::string_view name, std::uint32_t permits) {
  const auto& s = usable(state_);
  return semaphore(name, permits, s.options.lock);
}

semaphore client::semaphore(std::string_view name, std::uint32_t permits, lock_options options) {
  value_or_throw(core::check_units(permits));
  return holdfast::semaphore{made<detail::semaphore_state>(
      state_, name, {core::lock_kind::form::permits, permits}, std::move(options))};
}

latch client::latch(std::string_view name, std::uint32_t count) {
  return latch(name, count, latch_options{});
}

latch client::latch(std::string_view name, std::uint32_t count, latch_options options) {
  static_cast<void>(usable(state_));
  value_or_throw(core::check_latch(count, options.keep));
  const core::counter_kind kind{core::counter_kind::form::latch, count, options.keep};
  return holdfast::latch{
      detail::counter_handle{value_or_throw(detail::open_counter(state_, name, kind))}};
}

recursive_mutex client::recursive_mutex(std::string_view name) {
  return holdfast::recursive_mutex{mutex(name)};
}

recursive_mutex client::recursive_mutex(std::string_view name, lock_options options) {
  return holdfast::recursive_mutex{mutex(name, std::move(options))};
}

lock_status client::status(std::string_view name) {
  auto& s = usable(state_);
  auto lock = value_or_throw(s.open(name));
  return detail::as_users_see_it(value_or_throw(lock->store->inspect(deadline(s))));
}

std::vector<lock_status> client::list(std::string_view pattern) {
  auto& s = usable(state_);
  auto all = value_or_throw(s.store().list(pattern, s.options.operation_timeout));
  std::transform(all.begin(), all.end(), all.begin(),
                 [](lock_status& one) { return detail::as_users_see_it(std::move(one)); });
  return all;
}

void client::break_lock(std::string_view name, fencing_token token) {
  auto& s = usable(state_);
  auto lock = value_or_throw(s.open(name));
  value_or_throw(lock->store->break_with(token, deadline(s)));
}

std::chrono::milliseconds client::recall_lock(std::string_view name, fencing_token token) {
  auto& s = usable(state_);
  auto lock = value_or_throw(s.open(name));
  const auto left = value_or_throw(lock->store->recall(token, deadline(s)));
  if (left == core::duration::max()) return std::chrono::milliseconds::max();
  return std::chrono::ceil<std::chrono::milliseconds>(left);
}

guarantees client::guarantees() const { return usable(state_).store().describe(); }

counters client::counters() const noexcept {
  return state_ ? state_->counts.read() : holdfast::counters{};
}

void client::stop() noexcept {
  if (state_ && !state_->forked()) state_->request_stop();
}

}  // namespace holdfast
