// Runs the quorum machine of one attempt on the nodes.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "core/quorum_machine.hpp"
#include "stores/redlock/fan_out.hpp"
#include "stores/redlock/queue_entry.hpp"
#include "stores/redlock/redlock_lock.hpp"

namespace holdfast::stores::redlock {

// Thread-safe. Lives on after the decision, until the last node has answered: what is granted late
// is given back by the thread that reads of it.
class vote_round final : public fan_out {
 public:
  // `waiter`: null if it does not queue.
  vote_round(std::shared_ptr<node_set> on, std::shared_ptr<redlock_lock> lock,
             const core::owner_id& id, core::duration ttl, std::shared_ptr<queued_waiter> waiter);

  // Once, to be followed by when_decided().
  void ask(std::uint64_t proposal, redlock_lock::acquire_args args);
  struct verdict {
    core::quorum_outcome outcome;
    bool majority_works;
    core::grant granted;
    std::uint64_t highest_seen;
    core::busy met;
    failure why;
  };
  // Once it is decided.
  [[nodiscard]] verdict look();
  // Gives back what nodes may hold of an ask that was not granted. Called by the caller that asked:
  // what it sends next has to come behind that.
  void give_back();
  // Once granted: takes the waiter out of the queues where it was put, and not granted since.
  void leave_queues();

 private:
  void on_answer(std::size_t node, std::uint64_t tag, result<redis::reply> answer) override;
  void take(std::size_t node, std::uint64_t tag, core::vote v);
  void on_silence(std::size_t node) override;
  void on_give_up() override;
  bool decided() override;
  bool waits_for(std::size_t node) override;
  bool waits_for_all() override;
  [[nodiscard]] bool is_over();
  // An event for the machine, and what follows from it; false if nothing does.
  template <class Event>
  bool tell(Event event);
  void perform(const core::quorum_machine::steps& steps);
  void send_for_sure(std::size_t node, const request& what);
  void release(std::size_t node);
  void leave_queue(std::size_t node);

  const std::shared_ptr<node_set> set_;
  const std::shared_ptr<redlock_lock> lock_;
  const core::owner_id id_;
  const core::duration ttl_;
  const std::shared_ptr<queued_waiter> waiter_;
  redlock_lock::acquire_args args_{};  // set before anything is sent
  std::mutex m_;
  // Protected by m_.
  core::quorum_machine machine_;
  core::quorum_machine::steps to_give_back_;
};

}  // namespace holdfast::stores::redlock
