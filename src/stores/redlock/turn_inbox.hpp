// Where a waiter hears that it is its turn on a node.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "core/types.hpp"
#include "runtime/background.hpp"
#include "stores/redis/message_reader.hpp"
#include "stores/redis/subscription.hpp"
#include "stores/redlock/node_connection.hpp"
#include "stores/redlock/queue_entry.hpp"
#include "stores/waiting.hpp"

namespace holdfast::stores::redlock {

// Thread-safe. One subscription for each node, made when a waiter first needs it. Messages may be
// lost: a waiter asks again in time anyway.
class turn_inbox : public std::enable_shared_from_this<turn_inbox> {
 public:
  // Nodes tell the same waiter within a moment of each other, as a release reaches them. A waiter
  // that hears from a few nodes gives the others this long before it asks: well below a turn.
  static constexpr core::duration gathering_max = std::chrono::milliseconds{10};

  turn_inbox(std::vector<std::shared_ptr<node_connection>> nodes,
             std::shared_ptr<runtime::background> connecting);
  turn_inbox(const turn_inbox&) = delete;
  turn_inbox& operator=(const turn_inbox&) = delete;
  ~turn_inbox() = default;

  // 32 hexadecimal digits: the end of the channel's name.
  [[nodiscard]] std::string_view inbox() const noexcept { return name_.text(); }
  // Begins to subscribe wherever that is not done.
  void open();
  void close();

  using waiter = std::shared_ptr<queued_waiter>;
  void expect(const waiter& who);
  void forget(queued_waiter& who);
  [[nodiscard]] bool expects(const core::owner_id& who) const;
  // What was heard so far is used up: the waiter asks all nodes now.
  void asks(queued_waiter& who);
  // Ends when it is the waiter's turn on so many nodes, or on fewer and the others took too long;
  // at `until`, or by wake(); also when a majority can tell that could not when the waiter last
  // asked: a waiter that could not be told was passed over.
  void wait(const waiter& who, std::size_t nodes, core::time_point until, caller& by,
            std::function<void()> done);
  // Ends the wait that is under way, and every later one.
  void wake(queued_waiter& who);

 private:
  using lock = std::lock_guard<std::mutex>;
  struct source {
    std::shared_ptr<redis::subscription> open;  // null: not open
    bool under_way = false;
    core::time_point not_before{};
  };
  void subscribe(std::size_t node, caller& by);
  void subscribed(std::size_t node, result<std::shared_ptr<redis::subscription>> made);
  [[nodiscard]] redis::message_reader::sources all_open();
  void received(const redis::message_source& from);
  // All under m_.
  void take_messages(std::size_t node);
  void hear(std::size_t node, std::string_view message);
  void end_those_told();
  [[nodiscard]] bool most_can_tell() const;
  [[nodiscard]] bool is_told(const queued_waiter& one) const;

  const core::owner_id name_;
  const std::vector<std::shared_ptr<node_connection>> nodes_;
  const std::shared_ptr<runtime::background> connecting_;

  mutable std::mutex m_;
  // Protected by m_.
  std::vector<source> sources_;  // one for each node
  std::map<core::owner_id, waiter> waiters_;
  bool closed_ = false;

  redis::message_reader reader_;
};

}  // namespace holdfast::stores::redlock
