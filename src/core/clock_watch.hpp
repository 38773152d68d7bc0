// Notices when a store's wall clock jumps against ours.
#pragma once

#include <optional>

#include "core/types.hpp"

namespace holdfast::core {

// Redis expires keys by its wall clock. If that jumps, leases end early or late; fencing survives
// it, and a person should hear of it. A value type.
class clock_watch {
 public:
  // Between two looks both clocks advance alike, but for delays of a request.
  static constexpr duration step_noticed = std::chrono::seconds{1};

  // `theirs` was read between `sent` and `received`. Gives how far it has moved against ours since
  // the last look; zero if that is no more than delays explain.
  [[nodiscard]] duration look(duration theirs, time_point sent, time_point received) noexcept {
    const auto offset = theirs - sent.time_since_epoch();
    const auto step = offset_ ? offset - *offset_ : duration::zero();
    const auto doubt = received - sent;
    const auto tolerated = step_noticed + doubt + doubt_;
    offset_ = offset;
    doubt_ = doubt;
    return step > tolerated || step < -tolerated ? step : duration::zero();
  }

 private:
  std::optional<duration> offset_;  // how far theirs is ahead of ours, and how sure that is
  duration doubt_{};
};

}  // namespace holdfast::core
