// What all locks on one Redis server share, or on one cluster.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "runtime/background.hpp"
#include "stores/delayed_task.hpp"
#include "stores/redis/redis_store.hpp"
#include "stores/redis/topology.hpp"
#include "stores/store.hpp"

namespace holdfast::stores::redis {

// Thread-safe. Locks keep it alive.
class server : public std::enable_shared_from_this<server> {
 private:
  const std::shared_ptr<runtime::background> background_;  // first: the nodes use it

 public:
  server(const redis_config& config, std::shared_ptr<runtime::background> background);

  const std::unique_ptr<topology> nodes;
  // Requests of callers, and the connections of their own that renewals have: they must not queue
  // behind anything.
  request_carrier& calls;
  request_carrier& renewals;
  const std::string prefix;
  const bool hears_changes;
  const bool share_with_foreign;
  const replica_rule replicas;
  const guarantees promises;
  const std::string host;
  store_events events;

  // Of Redisson's messages.
  [[nodiscard]] std::string_view publish_command() const noexcept {
    return nodes->has_sharded_channels() ? "SPUBLISH" : "PUBLISH";
  }

  // Where grants of this lock arrive, as far as is known; null: not known.
  [[nodiscard]] std::shared_ptr<inbox> inbox_of(std::string_view key);

  // Waits until `wake_fd` can be read (nothing), others have changed keys that a renewal has read,
  // or a connection has ended (all).
  [[nodiscard]] changed_keys await_changes(int wake_fd);

  // A release that nobody waits for is under way, until the matching release_ended().
  void release_began() noexcept;
  void release_ended() noexcept;
  // Waits for such releases.
  void flush(core::time_point until) noexcept;

  // Replies come that nobody waits for: they are read soon.
  void watch_replies() { sweeps_.plan(*this); }
  void in_background(std::function<void(caller&)> begin);

  // Releases for which the connection had no room when they came. `send` is called, in order, when
  // there may be room, until it says true. Bounded by the leases that there were.
  void wait_turn(std::function<bool()> send);
  [[nodiscard]] bool others_wait_their_turn() const noexcept { return turns_waiting_.load() > 0; }
  // A reply was read, so that another request may be sent.
  void room_was_made();

  // Ends all connections; releases that wait their turn are given up.
  void close() noexcept;

 private:
  [[nodiscard]] std::unique_ptr<topology> make_topology(const redis_config& config);
  [[nodiscard]] std::shared_ptr<server_node> make_node(const redis_config& config,
                                                       const endpoint& where);
  void on_doubt();
  [[nodiscard]] bool sweep();
  void give_back(const grant_message& grant);

  delayed_task sweeps_;
  delayed_task inbox_rest_;
  std::mutex m_;
  std::condition_variable ended_;
  // Protected by m_.
  std::size_t releases_ = 0;
  std::deque<std::function<bool()>> turns_;
  bool turns_taken_ = false;  // a thread sends them
  bool closed_ = false;
  std::atomic<std::size_t> turns_waiting_{0};
};

}  // namespace holdfast::stores::redis
