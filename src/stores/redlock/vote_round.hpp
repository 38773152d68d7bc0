// Runs the quorum machine of one attempt on the nodes.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "core/quorum_machine.hpp"
#include "stores/redlock/redlock_lock.hpp"
#include "stores/redlock/round.hpp"

namespace holdfast::stores::redlock {

// A waiter's place in line, the same for all its attempts.
struct place_in_line {
  core::owner_id id;
  std::string ticket;  // when it came, µs by its own wall clock
  std::string waiter;  // id and inbox, as the nodes keep it
  // Until it is granted or gives up. Late answers of earlier attempts must not put it back in line.
  std::atomic<bool> waits{true};
  std::atomic<node_mask> at{0};  // nodes that may have put it in line
  // One of them has: others may have granted at once all the same.
  std::atomic<bool> joined{false};
};

// Thread-safe. Lives on after the decision, until the last node has answered: what is granted late
// is given back by whoever reads of it.
class vote_round final : public round {
 public:
  vote_round(std::shared_ptr<node_set> on, std::shared_ptr<redlock_lock> lock, attempt who,
             std::shared_ptr<place_in_line> line, const core::quorum_rule& rule,
             core::duration patience);

  void start();
  struct verdict {
    core::quorum_outcome outcome;
    std::uint64_t token;
    std::uint64_t highest_seen;
    node_mask asked;
    core::busy met;
    failure why;
  };
  // Once it is decided.
  [[nodiscard]] verdict look();

 private:
  void on_answer(std::size_t node, std::uint64_t tag, result<redis::reply> answer) override;
  void on_silence(std::size_t node) override;
  void on_give_up() override;
  void on_delay() override;
  bool decided() override;
  bool waits_for(std::size_t node) override;
  bool waits_for_all() override;
  [[nodiscard]] bool is_busy();
  // An event for the machine, and what follows from it.
  template <class Event>
  void tell(Event event);
  void perform(const core::quorum_machine::steps& steps);

  const std::shared_ptr<node_set> set_;
  const std::shared_ptr<redlock_lock> lock_;
  const attempt who_;
  const std::shared_ptr<place_in_line> line_;  // null: does not wait
  const redlock_lock::acquire_words words_;
  std::mutex m_;
  core::quorum_machine machine_;  // protected by m_
};

}  // namespace holdfast::stores::redlock
