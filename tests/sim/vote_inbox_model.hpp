// Where a simulated waiter hears that nodes have voted for it: the rules of
// stores/redlock/vote_inbox.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/network.hpp"
#include "sim/quorum_set.hpp"
#include "stores/redlock/vote_inbox.hpp"

namespace holdfast::sim {

class vote_inbox_model {
 public:
  vote_inbox_model(network& net, process& in, const quorum_set& set, const core::owner_id& name);

  [[nodiscard]] std::string_view inbox() const noexcept { return name_.text(); }
  // Begins to subscribe wherever that is not done.
  void open();
  void expect(const core::owner_id& attempt) {
    waiters_[attempt].could_be_called = most_can_call();
  }
  void forget(const core::owner_id& attempt) { waiters_.erase(attempt); }
  void wait(const core::owner_id& attempt, std::size_t nodes, core::time_point until,
            std::function<void()> done);
  void wake(const core::owner_id& attempt);
  using call = stores::redlock::vote_inbox::call;
  [[nodiscard]] std::vector<call> take(const core::owner_id& attempt);

 private:
  struct subscription {
    connection* on = nullptr;
    bool under_way = false;
    core::time_point not_before{};
  };
  struct place {
    std::vector<call> calls{};     // one for each node
    std::size_t wanted = 0;        // so many
    bool could_be_called = false;  // when it last asked
    std::function<void()> wake{};  // while it waits
    unsigned waits = 0;            // tells one wait from the next
  };
  void subscribe(std::size_t node);
  void hear(std::size_t node, const std::string& text);
  [[nodiscard]] bool most_can_call() const;
  void look(const core::owner_id& attempt);

  network& net_;
  process& in_;
  const quorum_set& set_;
  const core::owner_id name_;
  std::vector<subscription> subscriptions_;
  std::map<core::owner_id, place> waiters_;
};

}  // namespace holdfast::sim
