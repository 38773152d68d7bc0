#include "core/backoff.hpp"

#include <algorithm>

namespace holdfast::core {

namespace {

// splitmix64: one multiplication chain, good enough to spread waiters, and replayable.
std::uint64_t mix(std::uint64_t& state) noexcept {
  state += 0x9e3779b97f4a7c15ULL;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

}  // namespace

backoff::backoff(bounds limits, std::uint64_t seed) noexcept
    : limits_{limits}, step_{limits.first}, state_{seed} {}

duration backoff::next() noexcept {
  const auto full = step_;
  step_ = std::min(limits_.most, step_ * 2);
  const auto half = full.count() / 2;
  const auto spread = static_cast<std::uint64_t>(full.count() - half) + 1;
  return duration{half + static_cast<std::int64_t>(mix(state_) % spread)};
}

}  // namespace holdfast::core
