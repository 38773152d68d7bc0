// Where a simulated waiter hears that it is its turn on a node: the rules of
// stores/redlock/turn_inbox.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/network.hpp"
#include "sim/quorum_set.hpp"
#include "stores/redlock/turn_inbox.hpp"

namespace holdfast::sim {

class turn_inbox_model {
 public:
  turn_inbox_model(network& net, process& in, const quorum_set& set, const core::owner_id& name);

  [[nodiscard]] std::string_view inbox() const noexcept { return name_.text(); }
  // Begins to subscribe wherever that is not done.
  void open();
  void expect(const core::owner_id& waiter) { waiters_[waiter].could_be_told = most_can_tell(); }
  void forget(const core::owner_id& waiter) { waiters_.erase(waiter); }
  void asks(const core::owner_id& waiter);
  void wait(const core::owner_id& waiter, std::size_t nodes, core::time_point until,
            std::function<void()> done);
  void wake(const core::owner_id& waiter);

 private:
  struct subscription {
    connection* on = nullptr;
    bool under_way = false;
    core::time_point not_before{};
  };
  struct place {
    std::uint64_t turns = 0;       // nodes where it is its turn: a bit for each
    std::size_t wanted = 0;        // so many
    bool gathered = false;         // the others took too long
    bool could_be_told = false;    // when it last asked
    std::function<void()> wake{};  // while it waits
    unsigned asks = 0;             // tells what was heard before an ask from what came after it
    unsigned waits = 0;            // tells one wait from the next
  };
  void subscribe(std::size_t node);
  void hear(std::size_t node, const std::string& text);
  [[nodiscard]] bool most_can_tell() const;
  void look(const core::owner_id& waiter);

  network& net_;
  process& in_;
  const quorum_set& set_;
  const core::owner_id name_;
  std::vector<subscription> subscriptions_;
  std::map<core::owner_id, place> waiters_;
};

}  // namespace holdfast::sim
