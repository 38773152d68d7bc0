// One lock on a set of nodes.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "stores/redis/layout.hpp"
#include "stores/redlock/merged_status.hpp"
#include "stores/redlock/node_set.hpp"
#include "stores/store.hpp"

namespace holdfast::stores::redlock {

// What became of a renewal on one node.
struct extension {
  bool known = false;
  std::string value{};    // extended; empty: not
  fencing_token token{};  // in it
  bool taken = false;     // not extended: another has it
};

// A request to every node that extends these leases; its answers are for read_extensions().
[[nodiscard]] std::shared_ptr<gather> ask_to_extend(const node_set& on, fan_out::connections via,
                                                    std::span<const held> leases);
struct extensions {
  std::vector<std::vector<extension>> of_lease;                // what became of it on each node
  std::vector<std::pair<std::size_t, core::duration>> clocks;  // of the nodes that extended
  failure why{errc::outcome_unknown, "too few nodes answered", {}};  // and what the others said
};
[[nodiscard]] extensions read_extensions(node_set& on, std::size_t leases,
                                         const gather::answers& answers);

class redlock_lock final : public store_lock, public std::enable_shared_from_this<redlock_lock> {
 public:
  redlock_lock(std::shared_ptr<node_set> on, std::string key);

  std::unique_ptr<attempt> begin(attempt_spec what) override;
  void release(const core::owner_id& id, core::time_point until, caller& by,
               on_removal done) override;
  void release_later(const core::owner_id& id, core::time_point give_up) noexcept override;
  void extend(const core::owner_id& id, fencing_token token, core::duration ttl,
              core::time_point until, caller& by, on_renewal done) override;
  void forget(const core::owner_id& id) noexcept override;
  result<lock_status> inspect(core::time_point until) override;
  result<void> break_with(fencing_token token, core::time_point until) override;

  [[nodiscard]] const std::string& key() const noexcept { return key_; }
  // One lease's renewal from what the nodes said. `ttl` was asked for, and counts from when the
  // first request left.
  [[nodiscard]] renewal judge(const core::owner_id& id, core::duration ttl,
                              core::time_point counted_from, std::span<const extension> said);

  // Whether it is ours, or may become so, and was not given back.
  [[nodiscard]] bool holds(const core::owner_id& id) const;
  // True if it is a waiter of this client, on this lock or another, that has not stopped waiting.
  [[nodiscard]] bool has_waiter(const core::owner_id& waiter) const {
    return set_->turns().expects(waiter);
  }

  // What one ask sends to its nodes.
  struct acquire_args {
    std::string ttl, token, since, holder;
    std::string waiter{}, ticket{};  // empty: it does not queue
    bool asked_before = false;
  };
  [[nodiscard]] request acquire_request(std::size_t node, const core::owner_id& id,
                                        const acquire_args& with) const;
  [[nodiscard]] request raise_request(std::size_t node, const core::owner_id& id,
                                      std::uint64_t to) const;
  // Whose turn it is on a node that is given back. Only what was granted hands a turn on: waiters
  // that have a node each would hand each other's node to and fro for ever.
  enum class turn { nobodys, next };
  // `leaves_as`: the entry of a waiter that leaves the queue; empty: none.
  [[nodiscard]] request release_request(const core::owner_id& id, std::string_view leaves_as,
                                        turn whose) const;
  // For a waiter whose attempt was granted: it leaves the queue, and nothing is given back. A node
  // whose answer was lost may have voted for it; its lease counts that vote, and releases it.
  [[nodiscard]] request leave_request(std::string_view entry) const;

  // A release that every node is sent, for a caller that waits for the answers.
  [[nodiscard]] std::shared_ptr<gather> ask_to_release(const core::owner_id& id,
                                                       std::string_view leaves_as, turn whose,
                                                       core::time_point give_up) const;
  // The same for a caller that does not wait.
  void give_back(const core::owner_id& id, std::string_view leaves_as, turn whose,
                 core::time_point give_up) const;

  // What this client knows of attempts by these ids: it asks; it was granted; it is none of ours.
  void asks(const core::owner_id& id) { granted(id, {}); }
  void granted(const core::owner_id& id, fencing_token token);
  void take_out(const core::owner_id& id);
  // The token to propose, above every counter that this client saw.
  [[nodiscard]] std::uint64_t propose(std::uint64_t wall_us) const noexcept;
  void saw(std::uint64_t counter) noexcept;

 private:
  [[nodiscard]] result<renewal> judge_by_hand(const core::owner_id& id, core::duration ttl,
                                              core::time_point counted_from,
                                              const gather::answers& answers);
  // None: it is not known here.
  [[nodiscard]] fencing_token token_of(const core::owner_id& id);
  void repair(std::size_t node, const core::owner_id& id, const std::string& value,
              core::duration ttl);

  const std::shared_ptr<node_set> set_;
  const std::string key_;
  const std::string queue_key_;
  const unsigned slot_;
  const std::string counter_field_;
  std::atomic<std::uint64_t> last_seen_{0};

  mutable std::mutex m_;
  // Protected by m_: leases of ours and attempts under way, with their token if granted; not given
  // back. Only those are repaired.
  std::map<core::owner_id, fencing_token> held_;
  // Protected by m_: leases that were handed on, until they have surely ended without a renewal.
  // Votes for them that come late are theirs.
  std::map<core::owner_id, core::time_point> handed_on_;
};

}  // namespace holdfast::stores::redlock
