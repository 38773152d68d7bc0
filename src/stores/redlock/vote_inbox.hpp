// Where a waiter hears that it is its turn.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "runtime/background.hpp"
#include "runtime/bell.hpp"
#include "runtime/fd.hpp"
#include "stores/redis/resp.hpp"
#include "stores/redlock/line.hpp"

namespace holdfast::stores::redlock {

// Thread-safe. One subscription for each node, made when somebody first waits. They are read by one
// of those who wait, for all of them: a thread for it would be woken first, and then wake another.
// Hints may be lost: whoever waits asks again in time anyway.
class hints {
 public:
  // After the first hint: how long to wait for a majority of them. The release that sent it has
  // reached one node; asking before it has reached a majority would be for nothing.
  static constexpr core::duration gather_max = std::chrono::milliseconds{2};

  hints(std::vector<std::shared_ptr<line>> nodes, std::size_t majority,
        std::shared_ptr<runtime::background> connecting);
  hints(const hints&) = delete;
  hints& operator=(const hints&) = delete;
  ~hints() = default;

  // 32 hexadecimal digits: the end of the channel's name.
  [[nodiscard]] std::string_view inbox() const noexcept { return name_.text(); }
  // Begins to subscribe wherever that is not done.
  void open();
  void close();

  void expect(const core::owner_id& waiter);
  void forget(const core::owner_id& waiter);
  // Returns when a majority of nodes, or one node a moment ago, said that it is its turn, at
  // `until`, or on stop.
  void wait(const core::owner_id& waiter, core::time_point until, const std::stop_token& stop);

 private:
  struct subscription {
    std::shared_ptr<runtime::unique_fd> fd;
    redis::reply_reader reader;
    bool under_way = false;
    core::time_point not_before{};
  };
  void subscribe(std::size_t node);
  // Returns when something has happened, or at `end`.
  void listen(std::unique_lock<std::mutex>& held, core::time_point end);
  void read(std::size_t node);

  const core::owner_id name_;
  const std::vector<std::shared_ptr<line>> nodes_;
  const std::size_t majority_;
  const std::shared_ptr<runtime::background> connecting_;
  const runtime::bell bell_;  // wakes the one who listens

  std::mutex m_;
  std::condition_variable_any changed_;
  // Protected by m_.
  std::vector<subscription> subscriptions_;
  std::map<core::owner_id, std::set<std::size_t>> waiters_;  // which nodes have called
  bool someone_listens_ = false;
  bool closed_ = false;
};

}  // namespace holdfast::stores::redlock
