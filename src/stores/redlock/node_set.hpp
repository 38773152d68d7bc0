// The nodes of one set, and what all locks on them share.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/quorum_machine.hpp"
#include "runtime/background.hpp"
#include "stores/delayed_task.hpp"
#include "stores/redlock/fan_out.hpp"
#include "stores/redlock/merged_status.hpp"
#include "stores/redlock/node_connection.hpp"
#include "stores/redlock/redlock_store.hpp"
#include "stores/redlock/rejoining.hpp"
#include "stores/redlock/replies.hpp"
#include "stores/redlock/turn_inbox.hpp"
#include "stores/store.hpp"

namespace holdfast::stores::redlock {

// The record of a node: its marker, and a counter for each hash slot that has one ("c:<slot>").
inline constexpr std::string_view record_key = "holdfast:{redlock}:node";
inline constexpr std::array<std::string_view, 1> record_keys{record_key};
// Where a node keeps the queue of a lock.
[[nodiscard]] inline std::string waiters_key(const std::string& lock) {
  return "holdfast:{redlock}:waiters:" + lock;
}

// As scripts take core::believed_ahead_max: one absurd clock must not carry the counters away.
inline const std::string ahead_us_max = std::to_string(
    std::chrono::duration_cast<std::chrono::microseconds>(core::believed_ahead_max).count());

// The set that a client of this configuration uses.
[[nodiscard]] set_identity identity_of(const redlock_config& config);

[[nodiscard]] request as_request(const record_script& script);

// Thread-safe. Locks keep it alive.
class node_set : public std::enable_shared_from_this<node_set> {
 public:
  // A visitor only looks: it begins no waits, and lets no node vote again.
  enum class role { client, visitor };
  node_set(redlock_config given, std::shared_ptr<runtime::background> background,
           role as = role::client);
  void close();

  const redlock_config config;
  const std::string host;
  store_events events;
  const std::shared_ptr<redlock::polling> polling;

  [[nodiscard]] std::size_t size() const noexcept { return names_.size(); }
  [[nodiscard]] std::size_t majority() const noexcept { return core::majority_of(size()); }
  // Of each node.
  [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }
  [[nodiscard]] const std::string& config_of(std::size_t node) const {
    return identity_.configs[node];
  }
  [[nodiscard]] const fan_out::connections& calls() const noexcept { return calls_; }
  // Renewals have a connection of their own: they must not queue behind anything.
  [[nodiscard]] const fan_out::connections& renewals() const noexcept { return renewals_; }
  [[nodiscard]] turn_inbox& turns() noexcept { return *turns_; }
  [[nodiscard]] std::shared_ptr<gather> ask_all(silent_nodes are = silent_nodes::skipped) const;
  // What every node says to something that may be asked twice: once more where the connection turns
  // out to be to a server that is gone, and another may be there now.
  using request_of = std::function<std::optional<request>(std::size_t)>;
  using on_answers = std::function<void(gather::answers)>;
  void ask_every(const request_of& what, core::time_point until, caller& by, on_answers done,
                 silent_nodes are = silent_nodes::skipped) const;
  // Each of these locks, as every node has it.
  [[nodiscard]] std::vector<std::vector<node_view>> inspect(std::span<const std::string> locks,
                                                            core::time_point until) const;
  // Whether a majority answered when this client last asked for a lock. Only then it queues: a
  // client that is cut off would be told that it is its turn, and could not use it.
  [[nodiscard]] bool majority_answers() const noexcept { return majority_answers_; }
  void majority_answers(bool now) noexcept { majority_answers_ = now; }

  // This client and what it is labelled, as nodes keep it.
  [[nodiscard]] std::string describe_us(std::string_view label) const;

  // Replies come that nobody waits for: they are read soon.
  void watch_replies() { sweeps_.plan(*this); }
  // Waits for requests under way, and for nodes that are about to be let in: otherwise a set whose
  // clients all live for a moment, as those of cron jobs, would never come back.
  void flush(core::time_point until) noexcept;

  // A node refuses to vote because it may have forgotten something: sees to it, in the background.
  void look_after_nodes();
  // What every node is to this set. Changes nothing.
  [[nodiscard]] std::vector<node_standing> survey(core::time_point until,
                                                  with_counters counters) const;
  // Runs scripts on nodes' records; of a node without one nothing is asked.
  using record_scripts = std::vector<std::optional<record_script>>;
  void run_on_records(const record_scripts& scripts, core::time_point until, caller& by,
                      on_answers done) const;
  // The same for a thread that waits.
  [[nodiscard]] gather::answers run_on_records(const record_scripts& scripts,
                                               core::time_point until) const;
  [[nodiscard]] const set_identity& identity() const noexcept { return identity_; }

 private:
  [[nodiscard]] node_connection::hooks hooks_of(std::size_t node);
  [[nodiscard]] result<std::string> check_identity(std::size_t node, std::string_view info);
  [[nodiscard]] std::vector<node_connection::outgoing> first_words(std::size_t node);
  [[nodiscard]] bool sweep();
  void look_again();
  void let_nodes_rejoin(const rejoining::step& next, caller& by);
  void lets_in(bool now);

  const role as_;
  const set_identity identity_;
  const std::shared_ptr<runtime::background> background_;
  const std::shared_ptr<runtime::background> connecting_;
  std::vector<std::string> names_;
  fan_out::connections calls_;
  fan_out::connections renewals_;
  std::shared_ptr<turn_inbox> turns_;
  rejoining rejoining_;  // of the one task that `looking_` stands for
  delayed_task sweeps_;
  std::atomic<bool> looking_{false};
  std::condition_variable let_in_;
  std::atomic<bool> majority_answers_{false};
  std::mutex m_;
  // Protected by m_.
  std::vector<std::string> run_ids_;
  bool lets_in_ = false;  // a look is under way, or a node is about to be let in
};

}  // namespace holdfast::stores::redlock
