// Leases that their owner may take again.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <holdfast/lease.hpp>
#include <holdfast/result.hpp>

namespace holdfast::detail {

// Thread-safe.
class recursive_leases {
 public:
  // A thread, or, with none, a numbered owner.
  using owner = std::pair<std::thread::id, std::uint64_t>;

  // True: the owner has it, and has it once more. A failure if what it has is lost, or if that is
  // too often.
  [[nodiscard]] result<bool> take_again(const owner& who, const std::string& name,
                                        std::size_t depth_max);
  void put(const owner& who, lease first);
  enum class left { nothing, one_of_several, the_last };
  // `last` gets the lease with the owner's last level.
  [[nodiscard]] left leave(const owner& who, std::optional<lease>& last);

  // Null if it has none. Valid until the owner leaves its last level.
  [[nodiscard]] lease* of(const owner& who);
  [[nodiscard]] std::size_t depth(const owner& who);

 private:
  struct held {
    lease what;
    std::size_t depth;
  };
  std::mutex m_;
  std::map<owner, held> all_;  // protected by m_
};

}  // namespace holdfast::detail
