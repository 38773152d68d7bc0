// Decides, for one release, when to ask again and what the answer means.
#pragma once

#include <optional>

#include <holdfast/result.hpp>

#include "core/backoff.hpp"
#include "core/types.hpp"

namespace holdfast::core {

// What became of the lock when its release was asked for.
enum class removal {
  released,  // it was held by this id, and now is not
  gone,      // nobody holds it
  taken,     // another holds it
  unsure,    // not held by this id now, but an earlier, unanswered release may have done that
};

// No I/O, no clock. Not thread-safe. A release is safe to repeat: it names an id that is used for
// one attempt only. But once one went unanswered, "nobody holds it" no longer says who freed it.
class release_machine {
 public:
  release_machine(time_point give_up, std::uint64_t seed) noexcept;

  // How long to wait for the answer to the next one: not all the time there is, because another
  // connection may work where this one is dead.
  [[nodiscard]] time_point patience(time_point now) const noexcept;
  [[nodiscard]] removal on_answer(removal said) const noexcept;
  // When to ask again; nothing: give up with this failure.
  [[nodiscard]] std::optional<time_point> on_failure(errc code, time_point now) noexcept;
  [[nodiscard]] bool went_unanswered() const noexcept { return unanswered_; }

 private:
  time_point give_up_;
  backoff pause_;
  bool unanswered_ = false;
};

}  // namespace holdfast::core
