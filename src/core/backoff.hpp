// Waiting a little longer each time, never in step with others.
#pragma once

#include <cstdint>

#include "core/types.hpp"

namespace holdfast::core {

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
