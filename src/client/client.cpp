#include <utility>

#include <holdfast/client.hpp>
#include <holdfast/version.hpp>

#include "client/client_access.hpp"
#include "client/client_state.hpp"
#include "client/make_client.hpp"
#include "client/mutex_state.hpp"
#include "client/open_store.hpp"
#include "client/value_or_throw.hpp"
#include "runtime/clock.hpp"

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

}  // namespace

std::string_view version() noexcept { return HOLDFAST_VERSION; }

observer::~observer() = default;

client::client(std::string_view url, client_options options) {
  const auto parsed = value_or_throw(detail::parse_url(url));
  value_or_throw(core::check(options));
  auto store_work = std::make_shared<runtime::background>(detail::store_threads_max);
  auto store = detail::open_store(parsed, store_work);
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
  auto& s = usable(state_);
  auto rule = value_or_throw(core::make_lease_rule(options, s.options.clock_drift_per_mille));
  auto lock = value_or_throw(s.open(name));
  return holdfast::mutex{std::make_shared<detail::mutex_state>(
      state_, std::move(lock), detail::lock_terms{rule, std::move(options.label)})};
}

lock_status client::status(std::string_view name) {
  auto& s = usable(state_);
  auto lock = value_or_throw(s.open(name));
  return value_or_throw(lock->store->inspect(deadline(s)));
}

std::vector<lock_status> client::list(std::string_view pattern) {
  auto& s = usable(state_);
  return value_or_throw(s.store().list(pattern, s.options.operation_timeout));
}

void client::break_lock(std::string_view name, fencing_token token) {
  auto& s = usable(state_);
  auto lock = value_or_throw(s.open(name));
  value_or_throw(lock->store->break_with(token, deadline(s)));
}

guarantees client::guarantees() const { return usable(state_).store().describe(); }

counters client::counters() const noexcept {
  return state_ ? state_->counts.read() : holdfast::counters{};
}

void client::stop() noexcept {
  if (state_ && !state_->forked()) state_->request_stop();
}

}  // namespace holdfast
