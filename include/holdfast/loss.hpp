// Why a lease was lost.
#pragma once

#include <string_view>

#include <holdfast/export.hpp>

namespace holdfast {

enum class loss {
  none,
  expired,      ///< the store could not be reached in time to renew, or renewal is off
  deleted,      ///< the lock's key is gone: deleted, evicted, flushed, or expired early
  taken,        ///< another holder has the lock
  max_hold,     ///< held for as long as lock_options::max_hold allows
  no_progress,  ///< lease::progress() was not called in time
  recalled,     ///< the holder was asked to give the lock back: client::recall_lock()
  session,      ///< the store ended our session
};
[[nodiscard]] HOLDFAST_API std::string_view to_string(loss why) noexcept;

}  // namespace holdfast
