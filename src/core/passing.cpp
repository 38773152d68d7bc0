#include "core/passing.hpp"

namespace holdfast::core {

bool is_passing(errc code) noexcept {
  switch (code) {
    // The caller's wait is over: to go on is the caller's decision.
    case errc::timed_out:
    case errc::stopped:
    // To ask again would add to the load that was too much.
    case errc::overloaded:
      return false;
    // Its caller must look before it acts, but a machine repeats a request under the same id, which
    // the store answers as one.
    case errc::outcome_unknown:
      return true;
    default:
      return make_error_code(code) == condition::try_again;
  }
}

// Too many requests now are fewer in a moment, and no other client gives the lock back.
bool is_passing_for_release(errc code) noexcept {
  return is_passing(code) || code == errc::overloaded;
}

}  // namespace holdfast::core
