// Runs the quorum machine of one attempt on the nodes.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "core/quorum_machine.hpp"
#include "stores/redlock/place_in_line.hpp"
#include "stores/redlock/redlock_lock.hpp"
#include "stores/redlock/round.hpp"

namespace holdfast::stores::redlock {

// Thread-safe. Lives on after the decision, until the last node has answered: what is granted late
// is given back by whoever reads of it.
class vote_round final : public round {
 public:
  // `line`: null if it does not wait.
  vote_round(std::shared_ptr<node_set> on, std::shared_ptr<redlock_lock> lock,
             const core::owner_id& id, const core::quorum_rule& rule,
             std::shared_ptr<place_in_line> line);

  // It was put in line there by a request that was sent at `since`.
  void stand(node_mask at, core::time_point since);
  // To be followed by wait(). `patience`: if only some are asked first. `calls`: came before.
  void ask(core::quorum_ask how, core::duration patience, redlock_lock::acquire_words words,
           const std::vector<vote_inbox::call>& calls);
  struct verdict {
    core::quorum_outcome outcome;
    bool over;  // give_back() is due
    core::grant granted;
    std::uint64_t highest_seen;
    core::busy met;
    failure why;
  };
  // Once it is decided.
  [[nodiscard]] verdict look();
  // Whether it has stood for too long: it is over then.
  [[nodiscard]] bool retire(core::time_point now);
  // Where our key may be; puts `stays_as`, if any, in line there. By the one who asked: what that
  // one sends next must come behind it.
  void give_back(std::string_view stays_as);
  // Where it was, or may have been put in line.
  [[nodiscard]] node_mask asked();
  // How many more nodes have to call it.
  [[nodiscard]] std::size_t calls_missing();

 private:
  void on_answer(std::size_t node, std::uint64_t tag, result<redis::reply> answer) override;
  void on_silence(std::size_t node) override;
  void on_give_up() override;
  void on_delay() override;
  bool decided() override;
  bool waits_for(std::size_t node) override;
  bool waits_for_all() override;
  [[nodiscard]] bool is_over();
  // An event for the machine, and what follows from it; false if nothing does.
  template <class Event>
  bool tell(Event event);
  void perform(const core::quorum_machine::steps& steps,
               const std::shared_ptr<const redlock_lock::acquire_words>& words);
  void release(std::size_t node, const redlock_lock::release_words& words);

  const std::shared_ptr<node_set> set_;
  const std::shared_ptr<redlock_lock> lock_;
  const core::owner_id id_;
  const core::duration ttl_;
  const std::shared_ptr<place_in_line> line_;
  std::mutex m_;
  // Protected by m_.
  core::quorum_machine machine_;
  std::shared_ptr<const redlock_lock::acquire_words> words_;
  core::quorum_machine::steps to_give_back_;
};

}  // namespace holdfast::stores::redlock
