// Where a waiter hears that it is its turn on a node.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "runtime/background.hpp"
#include "runtime/fd.hpp"
#include "runtime/wake_fd.hpp"
#include "stores/redis/resp.hpp"
#include "stores/redlock/line.hpp"

namespace holdfast::stores::redlock {

// Thread-safe. One subscription for each node, made when a waiter first needs it. One of the
// waiting threads reads them for all: a thread of its own would be woken first, and then wake
// another. Messages may be lost: a waiter asks again in time anyway.
class turn_inbox {
 public:
  // Nodes tell the same waiter within a moment of each other, as a release reaches them. A waiter
  // that hears from a few nodes gives the others this long before it asks: well below a turn.
  static constexpr core::duration gathering_max = std::chrono::milliseconds{10};

  turn_inbox(std::vector<std::shared_ptr<line>> nodes,
             std::shared_ptr<runtime::background> connecting);
  turn_inbox(const turn_inbox&) = delete;
  turn_inbox& operator=(const turn_inbox&) = delete;
  ~turn_inbox() = default;

  // 32 hexadecimal digits: the end of the channel's name.
  [[nodiscard]] std::string_view inbox() const noexcept { return name_.text(); }
  // Begins to subscribe wherever that is not done.
  void open();
  void close();

  void expect(const core::owner_id& waiter);
  void forget(const core::owner_id& waiter);
  // What was heard so far is used up: the waiter asks all nodes now.
  void asks(const core::owner_id& waiter);
  // Returns when it is the waiter's turn on so many nodes, or on fewer and the others took too
  // long; at `until`, or on stop; also when a majority can tell that could not when it last asked:
  // who could not be told was passed over.
  void wait(const core::owner_id& waiter, std::size_t nodes, core::time_point until,
            const std::stop_token& stop);

 private:
  struct subscription {
    std::shared_ptr<runtime::stream> over;
    redis::reply_reader reader;
    bool under_way = false;
    core::time_point not_before{};
  };
  void subscribe(std::size_t node);
  // Returns when something has happened, or at `end`.
  void listen(std::unique_lock<std::mutex>& held, core::time_point end);
  void read(std::size_t node);
  void hear(std::size_t node, std::string_view message);
  [[nodiscard]] bool most_can_tell() const;

  const core::owner_id name_;
  const std::vector<std::shared_ptr<line>> nodes_;
  const std::shared_ptr<runtime::background> connecting_;
  const runtime::wake_fd wake_;  // wakes the one who listens

  std::mutex m_;
  std::condition_variable_any changed_;
  // Protected by m_.
  std::vector<subscription> subscriptions_;
  struct expectation {
    std::uint64_t turns = 0;  // nodes where it is its turn: a bit for each
    core::time_point gathered_by = core::time_point::max();  // once the first has told
    bool could_be_told = false;                              // when it last asked
  };
  std::map<core::owner_id, expectation> waiters_;
  bool someone_listens_ = false;
  bool closed_ = false;
};

}  // namespace holdfast::stores::redlock
