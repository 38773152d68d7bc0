// One acquisition of a lock on a set of nodes.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "stores/redlock/queue_entry.hpp"
#include "stores/redlock/redlock_lock.hpp"
#include "stores/redlock/vote_round.hpp"
#include "stores/store.hpp"

namespace holdfast::stores::redlock {

// Every ask is a vote of its own, by a fresh id: what an earlier one left on its way must not touch
// this one. The waiter behind them stays the same.
class redlock_attempt final : public attempt {
 public:
  redlock_attempt(std::shared_ptr<node_set> on, std::shared_ptr<redlock_lock> lock,
                  attempt_spec what);
  // An acquisition that ends without having been in a queue is not withdrawn: what it expected to
  // hear ends with this.
  ~redlock_attempt() override { static_cast<void>(stop_waiting()); }

  core::owner_id id() const override { return id_; }
  void ask(core::time_point until, caller& by, on_answer done) override;
  void wait(core::time_point until, caller& by, on_woken done) override;
  void wake() override;
  void withdraw(core::time_point until, caller& by, on_removal done) override;

 private:
  void begin_to_wait();
  // It waits no more. Gives its entry if it may be in a queue, to be taken out.
  [[nodiscard]] std::string stop_waiting();
  [[nodiscard]] result<core::answer> conclude(vote_round& votes);

  const std::shared_ptr<node_set> set_;
  const std::shared_ptr<redlock_lock> lock_;
  const attempt_spec spec_;
  core::owner_id id_;
  unsigned asks_ = 0;
  std::string ticket_;                      // when it began to wait, however often it has to join
  std::vector<core::owner_id> unanswered_;  // votes that a majority may have given
  std::mutex m_;
  bool woken_ = false;                     // protected by m_
  std::shared_ptr<queued_waiter> waiter_;  // null: does not wait. Changed under m_
};

}  // namespace holdfast::stores::redlock
