// What all locks on one Redis server share.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "runtime/background.hpp"
#include "stores/redis/inbox.hpp"
#include "stores/redis/link.hpp"
#include "stores/redis/redis_store.hpp"
#include "stores/store.hpp"

namespace holdfast::stores::redis {

// Thread-safe. Locks keep it alive.
class server : public std::enable_shared_from_this<server> {
 public:
  server(redis_config config, std::shared_ptr<runtime::background> background);

  // Requests of callers, and the connection of its own that renewals have: they must not queue
  // behind anything.
  link calls;
  link renewals;
  inbox grants;
  const std::string prefix;
  const guarantees promises;
  const std::string host;
  store_events events;

  // A release that nobody waits for is under way, until the matching release_ended().
  void release_began() noexcept;
  void release_ended() noexcept;
  // Waits for those.
  void flush(core::time_point until) noexcept;

  // Somebody must read the replies that nobody waits for: looks after them soon, once for many.
  void watch_replies();
  [[nodiscard]] bool in_background(runtime::background::task work);

 private:
  void sweep();
  void give_back(const grant_message& grant);

  const std::shared_ptr<runtime::background> background_;
  std::atomic<bool> sweep_planned_{false};
  std::mutex m_;
  std::condition_variable ended_;
  std::size_t releases_ = 0;  // protected by m_
};

// What the release script says when it has not found the next holder yet.
inline constexpr long long hand_over_unfinished = 2;
inline constexpr long long hand_over_unfinished_not_ours = -2;
// And when somebody who waited has it now.
inline constexpr long long handed_over = 3;
// Calls it takes to pass over a full queue of dead entries, five hundred at a time, and some.
inline constexpr int hand_over_calls_max = 25;

// Asks for the release until it is answered or the machine gives up.
// A release that could not name the next holder in one go is asked for again.
[[nodiscard]] result<removal> release_by_id(server& on, const script_call& script,
                                            core::time_point until, bool unanswered_before);

}  // namespace holdfast::stores::redis
