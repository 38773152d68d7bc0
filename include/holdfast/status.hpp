// Who holds what.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/export.hpp>
#include <holdfast/token.hpp>

namespace holdfast {

// Everything here was written by the lock's holder: untrusted bytes, to be shown through
// untrusted::escape() only.
struct holder {
  bool foreign = false;  ///< not written by Holdfast: only `value` is known
  std::string host{};
  std::int64_t pid = 0;
  std::string label{};
  fencing_token token{};
  std::chrono::system_clock::time_point since{};
  std::string value{};      ///< a foreign holder's raw value, cut at 256 bytes
  std::uint32_t units = 1;  ///< of lock_status::capacity
};

// One that waits for a lock. Of the threads of one client that want the same lock, one waits
// at the store for all of them, and only that one is seen. Untrusted bytes, too.
struct waiter {
  std::string host{};
  std::int64_t pid = 0;
  std::string label{};
  std::chrono::system_clock::time_point since{};  ///< by its own clock
};

// What one node of a quorum says of a lock, for a person who wants to know why.
struct lock_on_node {
  enum class state {
    held,         ///< by the lock's holder
    other,        ///< by another attempt, which is under way or which no majority granted
    free,         ///< nobody has it here
    quarantined,  ///< may have lost locks, so it does not vote yet
    refused,      ///< answers, but not this: `reason` says why
    unreachable,  ///< no answer
  };
  std::string node{};  ///< as in the store's URL
  state status = state::unreachable;
  std::optional<holdfast::holder> holder{};  ///< held, other
  // held, other: until the node lets go by itself; empty: never. quarantined: until it may vote.
  std::optional<std::chrono::milliseconds> remaining{};
  std::string reason{};  ///< why it is quarantined, refused or unreachable
};
[[nodiscard]] HOLDFAST_API std::string_view to_string(lock_on_node::state status) noexcept;

struct lock_status {
  enum class form {
    mutex,         ///< one holder
    shared_mutex,  ///< any number of readers, with a unit each, or one writer, who has all of them
    semaphore,     ///< so many permits
    latch,         ///< its units are those that have to count; in use: those that have not yet
  };
  std::string name{};
  form kind = form::mutex;     ///< what the name stands for now; a free name may be any
  std::uint32_t capacity = 1;  ///< units that there are
  std::uint32_t units_in_use = 0;
  std::size_t holding = 0;                   ///< how many holders there are
  std::vector<holdfast::holder> holders{};   ///< those, first come first; at most 100
  std::optional<holdfast::holder> holder{};  ///< the first of them; empty: free
  // How long until the store lets go by itself, of all of them. Empty while held: it never does.
  std::optional<std::chrono::milliseconds> remaining{};
  std::size_t waiting = 0;        ///< how many wait, some of them perhaps gone without a word
  std::vector<waiter> waiters{};  ///< those, first come first; at most 100
  // On a quorum: every node, as the URL names them. Empty for a store that has no nodes.
  std::vector<lock_on_node> nodes{};
};

[[nodiscard]] HOLDFAST_API std::string_view to_string(lock_status::form kind) noexcept;

}  // namespace holdfast
