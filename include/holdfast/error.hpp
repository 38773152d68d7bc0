// What can go wrong, and what to do about it.
#pragma once

#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <holdfast/export.hpp>
#include <holdfast/status.hpp>

namespace holdfast {

enum class errc {
  timed_out = 1,      ///< the wait is over and another holder still has the lock
  stopped,            ///< the stop token or client::stop() ended the wait; nothing is held
  lease_lost,         ///< the lease ended before this call: expired, broken or deleted
  outcome_unknown,    ///< no reply came; what was asked may have happened, for at most one TTL
  store_unreachable,  ///< no connection to the store, or it does not answer; nothing is held
  store_loading,      ///< the store is starting up and not ready
  store_busy,         ///< the store is running a long script
  out_of_memory,      ///< the store has reached its memory limit and refuses writes
  read_only,          ///< the store is a replica, or refuses writes because it cannot persist
  not_authenticated,  ///< the store wants a password, or refused the one in the URL
  not_permitted,      ///< the store's access rules refuse a command or key that locking needs
  wrong_type,         ///< the lock's key holds something that is not a lock
  moved,              ///< the key lives on another node: this is a cluster member
  incompatible,       ///< not a store we can talk to: another protocol, too old, too new a layout
  store_refused,      ///< the store answered with an error that has no code of its own
  store_missing,      ///< `local:` needs redis-server on this machine and there is none
  unsafe_folder,      ///< `local:` will not use its folder: wrong owner, mode or kind
  overloaded,         ///< a limit of this client was reached (see docs/limits.md)
  not_held,           ///< the lock is not held with that token; nothing was changed
  invalid_argument,   ///< the call's arguments make no sense; nothing was sent
  would_deadlock,     ///< this thread holds the lock already and would wait for itself
  unsupported,        ///< this store cannot carry that kind of lock; the message says why
  forked,             ///< the handle was made before fork(); make a new client in the child
  not_trusted,        ///< TLS: the store's certificate is refused, or the store refuses ours
};

// Conditions name what to do next: `if (e.code() == holdfast::condition::try_again) …`.
enum class condition {
  try_again = 1,    ///< passing: the same call may succeed later
  give_up,          ///< will not pass by itself: a person must change something
  lease_lost,       ///< stop the protected work now
  outcome_unknown,  ///< it may have happened; wait one TTL or look before acting again
  misuse,           ///< a bug in the calling program
};

[[nodiscard]] HOLDFAST_API const std::error_category& error_category() noexcept;
[[nodiscard]] HOLDFAST_API const std::error_category& condition_category() noexcept;
[[nodiscard]] HOLDFAST_API std::error_code make_error_code(errc code) noexcept;
[[nodiscard]] HOLDFAST_API std::error_condition make_error_condition(condition c) noexcept;

// What one node of the store answered: printable text that never holds a secret.
struct node_answer {
  std::string node;  ///< host:port, or the path of a unix socket
  std::string answer;
};

// A failure as a value: core, runtime and stores return it, the blocking API throws it as `error`.
struct failure {
  errc code{};
  std::string message;  ///< what happened and what to do; printable, never holds a secret
  std::vector<node_answer> nodes{};
  // timed_out: who had the lock when the store was asked last. Empty if another thread of the same
  // client had it, or if it was granted too late to be relied on.
  std::optional<holdfast::holder> holder{};
};

// Thrown by the blocking API: a failure as an exception. try_acquire() does not throw it for
// contention, but returns an empty optional.
class HOLDFAST_API error : public std::system_error {
 public:
  explicit error(failure why);
  ~error() override;
  error(const error&) = default;
  error& operator=(const error&) = default;

  // What happened and what to do. Without the words of code(), which say the same less exactly;
  // those alone where there is nothing more to say.
  [[nodiscard]] const char* what() const noexcept override;

  // What each node of the store answered, where nodes were asked.
  [[nodiscard]] const std::vector<node_answer>& nodes() const noexcept { return nodes_; }

  // Who has the lock, as failure::holder.
  [[nodiscard]] const std::optional<holdfast::holder>& holder() const noexcept { return holder_; }

 private:
  std::string message_;
  std::vector<node_answer> nodes_;
  std::optional<holdfast::holder> holder_;
};

}  // namespace holdfast

template <>
struct std::is_error_code_enum<holdfast::errc> : std::true_type {};
template <>
struct std::is_error_condition_enum<holdfast::condition> : std::true_type {};
