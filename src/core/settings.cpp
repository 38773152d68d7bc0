#include "core/settings.hpp"

#include <algorithm>
#include <string>

#include "core/lock_kind.hpp"

namespace holdfast::core {

namespace {

using std::chrono::milliseconds;

// Options are milliseconds and stay so until they are checked: as nanoseconds a large one would
// overflow and look like a small one.
std::string text(milliseconds value) {
  const auto hours = std::chrono::duration_cast<std::chrono::hours>(value);
  if (hours != hours.zero() && hours == value) return std::to_string(hours.count()) + " h";
  return std::to_string(value.count()) + " ms";
}

constexpr milliseconds in_ms(duration value) {
  return std::chrono::duration_cast<milliseconds>(value);
}

auto bad(std::string message) { return fail(errc::invalid_argument, std::move(message)); }

// Every duration that is a limit of some operation: positive, and not so long that it is a mistake.
result<void> check_limit(std::string_view name, milliseconds value) {
  constexpr milliseconds longest = std::chrono::hours{24};
  if (value > milliseconds::zero() && value <= longest) return {};
  return bad(std::string{name} + " must be between 1 ms and " + text(longest) + ", not " +
             text(value));
}

}  // namespace

result<lease_rule> make_lease_rule(const lock_options& options, unsigned drift_per_mille) {
  if (options.ttl < in_ms(ttl_min) || options.ttl > in_ms(ttl_max)) {
    return bad("ttl must be between " + text(in_ms(ttl_min)) + " and " + text(in_ms(ttl_max)) +
               ", not " + text(options.ttl));
  }
  const auto margin = options.margin.value_or(options.ttl / 10);
  if (margin < milliseconds::zero() || margin > options.ttl / 2) {
    return bad("margin must be between 0 and half of the ttl (" + text(options.ttl / 2) +
               "), not " + text(margin));
  }
  if (options.max_hold < milliseconds::zero()) {
    return bad("max_hold must not be negative; 0 means none");
  }
  if (options.progress_within < milliseconds::zero()) {
    return bad("progress_within must not be negative; 0 means none");
  }
  if (options.progress_within > milliseconds::zero() && !options.renew) {
    return bad("progress_within only makes sense for a lease that is renewed: set renew");
  }
  if (options.label.size() > label_bytes_max) {
    return bad("label must be at most " + std::to_string(label_bytes_max) + " bytes, not " +
               std::to_string(options.label.size()));
  }
  // Longer than anybody holds a lock is as good as for ever, and does not overflow.
  constexpr milliseconds longest = std::chrono::hours{24 * 365 * 100};
  lease_rule rule;
  rule.ttl = options.ttl;
  rule.renew = options.renew;
  rule.max_hold = std::min<milliseconds>(options.max_hold, longest);
  rule.progress_within = std::min<milliseconds>(options.progress_within, longest);
  rule.validity.drift_per_mille = drift_per_mille;
  rule.validity.margin = margin;
  return rule;
}

duration lease_rule::claim_ttl() const noexcept {
  // Nobody would extend it.
  if (!renew) return ttl;
  constexpr duration least = std::chrono::seconds{1};
  return std::min(ttl, std::max(least, validity.margin * 5 / 2));
}

result<void> check(const client_options& options) {
  if (options.wait_limit < duration::zero()) {
    return bad("wait_limit must not be negative; holdfast::forever means none");
  }
  if (auto ok = check_limit("operation_timeout", options.operation_timeout); !ok) return ok;
  if (options.unreachable_limit != as_long_as_waiting) {
    if (auto ok = check_limit("unreachable_limit", options.unreachable_limit); !ok) return ok;
  }
  if (auto ok = check_limit("release_budget", options.release_budget); !ok) return ok;
  if (options.clock_drift_per_mille > drift_per_mille_max) {
    return bad("clock_drift_per_mille must be at most " + std::to_string(drift_per_mille_max) +
               ", not " + std::to_string(options.clock_drift_per_mille));
  }
  if (auto rule = make_lease_rule(options.lock, options.clock_drift_per_mille); !rule) {
    return fail(std::move(rule.error()));
  }
  return {};
}

duration unreachable_limit(const client_options& options) noexcept {
  if (options.unreachable_limit == as_long_as_waiting) return duration::max();
  return options.unreachable_limit;
}

result<void> check_units(std::uint32_t permits) {
  if (permits >= 1 && permits <= units_max) return {};
  return bad("permits must be between 1 and " + std::to_string(units_max) + ", not " +
             std::to_string(permits));
}

result<void> check_name(std::string_view name) {
  if (name.empty()) return bad("a lock's name must not be empty");
  if (name.size() > name_bytes_max) {
    return bad("a lock's name must be at most " + std::to_string(name_bytes_max) + " bytes, not " +
               std::to_string(name.size()));
  }
  return {};
}

}  // namespace holdfast::core
