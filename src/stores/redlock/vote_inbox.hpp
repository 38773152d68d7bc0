// Where a waiter hears that nodes have voted for it.
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
#include "runtime/bell.hpp"
#include "runtime/fd.hpp"
#include "stores/redis/resp.hpp"
#include "stores/redlock/line.hpp"

namespace holdfast::stores::redlock {

// Thread-safe. One subscription for each node, made when somebody first waits. They are read by one
// of those who wait, for all of them: a thread for it would be woken first, and then wake another.
// Calls may be lost: whoever waits asks again in time anyway.
class vote_inbox {
 public:
  // A vote of a node, given by itself.
  struct call {
    std::size_t node;
    std::uint64_t token;
  };

  vote_inbox(std::vector<std::shared_ptr<line>> nodes,
             std::shared_ptr<runtime::background> connecting);
  vote_inbox(const vote_inbox&) = delete;
  vote_inbox& operator=(const vote_inbox&) = delete;
  ~vote_inbox() = default;

  // 32 hexadecimal digits: the end of the channel's name.
  [[nodiscard]] std::string_view inbox() const noexcept { return name_.text(); }
  // Begins to subscribe wherever that is not done.
  void open();
  void close();

  void expect(const core::owner_id& attempt);
  void forget(const core::owner_id& attempt);
  // Returns when so many nodes have called it, at `until`, or on stop; also when a majority can
  // call that could not when it was last asked for: who could not be called was passed over.
  void wait(const core::owner_id& attempt, std::size_t nodes, core::time_point until,
            const std::stop_token& stop);
  // What has come for it since they were last taken: as it asks.
  [[nodiscard]] std::vector<call> take(const core::owner_id& attempt);

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
  void hear(std::size_t node, std::string_view message);
  [[nodiscard]] bool most_can_call() const;

  const core::owner_id name_;
  const std::vector<std::shared_ptr<line>> nodes_;
  const std::shared_ptr<runtime::background> connecting_;
  const runtime::bell bell_;  // wakes the one who listens

  std::mutex m_;
  std::condition_variable_any changed_;
  // Protected by m_.
  std::vector<subscription> subscriptions_;
  struct waiter {
    std::vector<call> calls{};  // one for each node
    std::size_t wanted = 0;
    bool could_be_called = false;  // when it last asked
  };
  std::map<core::owner_id, waiter> waiters_;
  bool someone_listens_ = false;
  bool closed_ = false;
};

}  // namespace holdfast::stores::redlock
