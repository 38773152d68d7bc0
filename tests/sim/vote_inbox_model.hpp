// Where a simulated waiter hears that it is its turn: the rules of stores/redlock/hints.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/network.hpp"
#include "sim/quorum_set.hpp"

namespace holdfast::sim {

class hint_model {
 public:
  hint_model(network& net, process& in, const quorum_set& set, const core::owner_id& name);

  [[nodiscard]] std::string_view inbox() const noexcept { return name_.text(); }
  // Begins to subscribe wherever that is not done.
  void open();
  void expect(const core::owner_id& waiter) { waiters_[waiter].called.clear(); }
  void forget(const core::owner_id& waiter) { waiters_.erase(waiter); }
  void wait(const core::owner_id& waiter, core::time_point until, std::function<void()> done);
  void wake(const core::owner_id& waiter);

 private:
  struct subscription {
    connection* on = nullptr;
    bool under_way = false;
    core::time_point not_before{};
  };
  struct place {
    std::set<std::size_t> called;  // by which nodes
    std::function<void()> wake;    // while it waits
    unsigned waits = 0;            // tells one wait from the next
  };
  void subscribe(std::size_t node);
  void hear(std::size_t node, const std::string& text);
  void called(const core::owner_id& waiter);

  network& net_;
  process& in_;
  const quorum_set& set_;
  const core::owner_id name_;
  std::vector<subscription> subscriptions_;
  std::map<core::owner_id, place> waiters_;
};

}  // namespace holdfast::sim
