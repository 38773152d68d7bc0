// Which bug is planted in the shipped code, in this thread's world.
#pragma once

#include <bitset>
#include <initializer_list>

#include "core/planted.hpp"

namespace holdfast::sim {

using core::planted_bug;

// Rules that a mutant leaves out: of shipped code by core::planted(), of how the simulator uses it
// by the flags.
struct left_out {
  left_out() = default;
  left_out(std::initializer_list<planted_bug> all) {
    for (const auto one : all)
      bugs.set(static_cast<std::size_t>(one));
  }
  std::bitset<static_cast<std::size_t>(planted_bug::none)> bugs;
  bool drift = false;       // allowing for clocks that run differently
  bool half_drift = false;  // allowing for the drift of both clocks, not of one
};

// For as long as it lives.
class planting {
 public:
  explicit planting(const left_out& rules);
  planting(const planting&) = delete;
  planting& operator=(const planting&) = delete;
  ~planting();
};

}  // namespace holdfast::sim
