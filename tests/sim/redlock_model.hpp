// The client side of the lock on a quorum: the rules of
// stores/redlock/{redlock_lock,redlock_store}, told by events. What those decide by core, this does
// by the same code of core.
#pragma once

#include <map>
#include <set>

#include "sim/admission_model.hpp"
#include "sim/client_model.hpp"
#include "sim/turn_inbox_model.hpp"
#include "sim/vote_model.hpp"

namespace holdfast::sim {

class redlock_model final : public client_model, public voter_calls {
 public:
  redlock_model(network& net, process& in, const quorum_set& set, const quorum_scripts& scripts,
                const left_out& without, std::uint64_t seed);
  redlock_model(const redlock_model&) = delete;
  redlock_model& operator=(const redlock_model&) = delete;
  ~redlock_model() override;

  void ask(std::size_t lock, stores::blocking::attempt& who, core::time_point until,
           on_answer done) override;
  void wait(std::size_t lock, stores::blocking::attempt& who, core::time_point until,
            on_woken done) override;
  void wake(stores::blocking::attempt& who) override;
  void withdraw(std::size_t lock, stores::blocking::attempt& who, core::time_point until,
                on_removal done) override;
  void release(std::size_t lock, const core::owner_id& id, core::time_point until,
               on_removal done) override;
  void release_later(std::size_t lock, const core::owner_id& id, core::time_point give_up) override;
  void renew(const std::vector<renewing>& leases, core::time_point until,
             on_renewals done) override;
  [[nodiscard]] bool may_arrive_late(const stores::blocking::attempt& who) const override;
  // Sure of a majority only: elsewhere it may still arrive.
  [[nodiscard]] bool withdrawn_for_good(const stores::blocking::attempt& who) const override {
    return !may_arrive_late(who);
  }
  [[nodiscard]] bool has_at_store(std::size_t lock, const core::owner_id& id) override;
  [[nodiscard]] bool gave_back(std::size_t lock, const core::owner_id& id) const override;
  [[nodiscard]] bool left_line(std::string_view entry) const override;

 private:
  using call = line_model::call;

  // What an attempt has to remember, as in redlock_lock.cpp.
  struct waiting {
    std::shared_ptr<vote_model> votes;  // while it asks
    std::shared_ptr<queued_waiter> waiter;
    std::string ticket;
    std::vector<core::owner_id> unanswered;
  };
  struct per_lock {
    std::uint64_t last_seen = 0;
    std::map<core::owner_id, fencing_token> held{};  // leases of ours, not given back
  };
  // What became of a renewal on one node.
  struct extension {
    bool known = false;
    std::string value{};
    fencing_token token{};
    bool taken = false;
  };

  [[nodiscard]] static waiting& memory_of(stores::blocking::attempt& who);
  [[nodiscard]] core::owner_id fresh_id();
  [[nodiscard]] call acquire_call(std::size_t lock, const stores::blocking::attempt& who,
                                  std::uint64_t proposal, const queued_waiter* waiter,
                                  bool asked_before) const;
  call raise_call(std::size_t lock, const core::owner_id& id, std::uint64_t to) const override;
  call leave_call(std::size_t lock, std::string_view entry) const override;
  call release_call(std::size_t lock, const core::owner_id& id, std::string_view leaves_as,
                    turn whose) const override;
  void give_back(std::size_t node, call what, core::time_point give_up) override;
  bool holds(std::size_t lock, const core::owner_id& id) const override {
    return locks_[lock].held.contains(id);
  }
  void acquire_sent(const core::owner_id& id) override { ++asked_[id]; }
  void acquire_answered(const core::owner_id& id) override { --asked_[id]; }
  void acquire_may_linger(const core::owner_id& id) override { linger(id); }
  // Its waiter may enter a queue by it as well.
  void linger(const core::owner_id& id) {
    lingering_.insert(id);
    if (const auto found = asked_for_.find(id); found != asked_for_.end()) {
      lingering_.insert(found->second);
    }
  }
  void look_after_nodes() override { admission_.look_after_nodes(); }

  void read_verdict(std::size_t lock, stores::blocking::attempt& who, vote_model& votes,
                    const on_answer& done);
  void begin_to_wait(waiting& mine);
  [[nodiscard]] std::string stop_waiting(waiting& mine);
  void give_back_everywhere(std::size_t lock, const core::owner_id& id, std::string_view leaves_as,
                            turn whose, core::time_point give_up);
  [[nodiscard]] std::size_t majority() const { return core::majority_of(set_.nodes.size()); }
  [[nodiscard]] std::shared_ptr<question_model> question(const round_model::lines& on) const {
    return std::make_shared<question_model>(in_, on, set_.node_timeout);
  }
  [[nodiscard]] std::vector<std::vector<extension>> read_extensions(
      const std::vector<renewing>& leases, const question_model::answers& answers);
  [[nodiscard]] stores::renewal judge(const renewing& one, core::time_point counted_from,
                                      const std::vector<extension>& said);
  void ask_twice(const renewing& one, const std::vector<extension>& said, const std::string& value);
  void repair(std::size_t node, const renewing& one, const std::string& value);
  [[nodiscard]] call extend_call(const std::vector<renewing>& leases) const;

  process& in_;
  const quorum_set& set_;
  const quorum_scripts& scripts_;
  const left_out without_;
  random_stream random_;
  const std::string holder_;
  round_model::lines calls_;
  round_model::lines renewals_;
  turn_inbox_model inbox_;
  admission_model admission_;
  std::vector<per_lock> locks_;
  std::vector<std::weak_ptr<vote_model>> begun_;
  std::map<core::owner_id, std::size_t> asked_;  // with these; unanswered acquires
  std::set<core::owner_id> lingering_;           // may be at a node without our doing any more
  bool majority_answers_ = false;                // when it last asked
  std::set<core::owner_id> done_waiting_;        // waiters, and every node hears of it
  std::map<core::owner_id, core::owner_id> asked_for_;  // attempt, and the waiter behind it
  std::map<core::owner_id, std::vector<extension>> last_round_;  // only if planted
};

}  // namespace holdfast::sim
