#include <holdfast/loss.hpp>

namespace holdfast {

std::string_view to_string(loss why) noexcept {
  switch (why) {
    case loss::none:
      return "not lost";
    case loss::expired:
      return "it could not be renewed in time";
    case loss::deleted:
      return "the lock was deleted in the store, or expired there early";
    case loss::taken:
      return "another holder has the lock";
    case loss::max_hold:
      return "it was held for as long as max_hold allows";
    case loss::no_progress:
      return "its holder made no progress";
    case loss::recalled:
      return "its holder was asked to give the lock back";
    case loss::session:
      return "the store ended the session";
  }
  return "unknown";
}

}  // namespace holdfast
