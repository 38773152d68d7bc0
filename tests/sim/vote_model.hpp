// Runs the quorum machine of one attempt on simulated nodes: the rules of
// stores/redlock/vote_round.
#pragma once

#include <string>

#include "core/quorum_machine.hpp"
#include "sim/client_model.hpp"
#include "sim/round_model.hpp"
#include "stores/redlock/node_set.hpp"
#include "stores/redlock/queue_entry.hpp"
#include "stores/redlock/redlock_lock.hpp"

namespace holdfast::sim {

using stores::redlock::queued_waiter;

// What an attempt sends, and what it asks its client.
class voter_calls {
 public:
  using call = line_model::call;
  voter_calls() = default;
  voter_calls(const voter_calls&) = delete;
  voter_calls& operator=(const voter_calls&) = delete;
  virtual ~voter_calls() = default;

  [[nodiscard]] virtual call raise_call(std::size_t lock, const core::owner_id& id,
                                        std::uint64_t to) const = 0;
  // As redlock_lock: an attempt hands a turn on if it was granted, and one that was gives nothing
  // back by leaving a queue.
  using turn = stores::redlock::redlock_lock::turn;
  [[nodiscard]] virtual call leave_call(std::size_t lock, std::string_view entry) const = 0;
  [[nodiscard]] virtual call release_call(std::size_t lock, const core::owner_id& id,
                                          std::string_view leaves_as, turn whose) const = 0;
  virtual void give_back(std::size_t node, call what, core::time_point give_up) = 0;
  [[nodiscard]] virtual bool holds(std::size_t lock, const core::owner_id& id) const = 0;
  virtual void acquire_sent(const core::owner_id& id) = 0;
  virtual void acquire_answered(const core::owner_id& id) = 0;
  // The connection broke under an acquire: it may still arrive.
  virtual void acquire_may_linger(const core::owner_id& id) = 0;
  virtual void look_after_nodes() = 0;
};

class vote_model final : public round_model {
 public:
  struct attempt {
    std::size_t lock;
    core::owner_id id;
    std::shared_ptr<queued_waiter> waiter;  // null: does not queue
  };
  vote_model(process& in, const lines& to, core::duration node_timeout, voter_calls& client,
             attempt who, const core::quorum_rule& rule, const left_out& without, bool resends);

  void ask(std::uint64_t proposal, call acquire);
  // Where our key may be, if it was not granted.
  void give_back();
  // Once granted: takes the waiter out of the queues where it was put, and not granted since.
  void leave_queues();
  [[nodiscard]] const core::quorum_machine& machine() const noexcept { return machine_; }

 private:
  void on_answer(std::size_t node, std::uint64_t tag, result<reply> answer) override;
  void on_silence(std::size_t node) override;
  void on_give_up() override;
  bool decided() override { return machine_.decided(); }
  bool waits_for(std::size_t node) override { return machine_.waits_for(node); }
  // An event for the machine, and what follows from it; false if nothing does.
  template <class Event>
  bool tell(Event event);
  void perform(const core::quorum_machine::steps& steps);
  void release(std::size_t node);
  void leave_queue(std::size_t node);
  void send_acquire(std::size_t node);
  [[nodiscard]] bool resends(std::size_t node);
  void take(std::size_t node, core::vote v);

  voter_calls& client_;
  const attempt who_;
  const core::duration ttl_;
  const left_out without_;
  const bool resends_;
  call acquire_;
  core::quorum_machine::steps to_give_back_;
  core::quorum_machine machine_;
  struct place {
    call asked_with{};  // what is sent again is what was sent
    bool answered = false;
    bool resent = false;
    bool raised = false;
  };
  std::vector<place> places_{all().size()};
};

// Why a node does not vote; nothing if the answer is no refusal.
[[nodiscard]] std::optional<failure> read_refusal(const reply& answer);
[[nodiscard]] bool asks_for_admission(const reply& answer);

}  // namespace holdfast::sim
