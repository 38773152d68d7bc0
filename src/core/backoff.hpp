// Waiting a little longer each time, never in step with others.
#pragma once

#include <cstdint>

#include "core/types.hpp"

namespace holdfast::core {

// Anywhere from `least` to `most`, as these random bits decide: for those who must not be in step.
[[nodiscard]] constexpr duration between(duration least, duration most,
                                         std::uint64_t random) noexcept {
  const auto span = static_cast<std::uint64_t>((most - least).count());
  return least + duration{static_cast<duration::rep>(random % (span + 1))};
}

// A value type. Deterministic from its seed, so that a simulation can replay it.
class backoff {
 public:
  struct bounds {
    duration first;
    duration most;
  };
  backoff(bounds limits, std::uint64_t seed) noexcept;

  // The next pause: doubles up to the bound, then anywhere between half and all of that. Half, not
  // nothing, so that a crowd thins out; not a fixed time, so that it does not come back as one.
  [[nodiscard]] duration next() noexcept;
  void reset() noexcept { step_ = limits_.first; }

 private:
  bounds limits_;
  duration step_;
  std::uint64_t state_;
};

}  // namespace holdfast::core
