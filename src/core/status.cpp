#include <holdfast/status.hpp>

namespace holdfast {

std::string_view to_string(lock_on_node::state status) noexcept {
  switch (status) {
    case lock_on_node::state::held:
      return "held";
    case lock_on_node::state::other:
      return "other";
    case lock_on_node::state::free:
      return "free";
    case lock_on_node::state::quarantined:
      return "quarantined";
    case lock_on_node::state::refused:
      return "refused";
    case lock_on_node::state::unreachable:
      break;
  }
  return "unreachable";
}

std::string_view to_string(lock_status::form kind) noexcept {
  switch (kind) {
    case lock_status::form::mutex:
      break;
    case lock_status::form::shared_mutex:
      return "shared_mutex";
    case lock_status::form::semaphore:
      return "semaphore";
    case lock_status::form::latch:
      return "latch";
  }
  return "mutex";
}

}  // namespace holdfast
