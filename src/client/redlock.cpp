#include <holdfast/redlock.hpp>

#include "client/open_store.hpp"
#include "client/url.hpp"
#include "runtime/clock.hpp"
#include "stores/redlock/admin.hpp"

namespace holdfast::redlock {

namespace {

using detail::fail;

result<stores::redlock::redlock_config> set_of(std::string_view url) {
  const auto parsed = detail::parse_url(url);
  if (!parsed) return fail(parsed.error());
  if (parsed->what != detail::store_url::kind::redlock) {
    return fail(errc::invalid_argument, "this is for redlock:// URLs only");
  }
  if (auto ok = detail::check_files(*parsed); !ok) return fail(std::move(ok.error()));
  return detail::redlock_config_of(*parsed);
}

core::time_point end_of(std::chrono::milliseconds timeout) {
  return core::after(runtime::now(), timeout);
}

}  // namespace

result<std::vector<node_status>> status(std::string_view url, std::chrono::milliseconds timeout) {
  auto set = set_of(url);
  if (!set) return fail(std::move(set.error()));
  return stores::redlock::look_at_set(std::move(*set), end_of(timeout));
}

result<void> init(std::string_view url, std::chrono::milliseconds timeout) {
  auto set = set_of(url);
  if (!set) return fail(std::move(set.error()));
  return stores::redlock::init_set(std::move(*set), end_of(timeout));
}

result<void> move(std::string_view from, std::string_view to, std::chrono::milliseconds timeout) {
  auto old_set = set_of(from);
  if (!old_set) return fail(std::move(old_set.error()));
  auto new_set = set_of(to);
  if (!new_set) return fail(std::move(new_set.error()));
  return stores::redlock::move_set(std::move(*old_set), std::move(*new_set), end_of(timeout));
}

}  // namespace holdfast::redlock
