// The nodes of one set, and what all locks on them share.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/admission.hpp"
#include "core/quorum_machine.hpp"
#include "runtime/background.hpp"
#include "stores/redlock/line.hpp"
#include "stores/redlock/redlock_store.hpp"
#include "stores/redlock/replies.hpp"
#include "stores/redlock/round.hpp"
#include "stores/redlock/turn_inbox.hpp"
#include "stores/store.hpp"

namespace holdfast::stores::redlock {

// The record of a node: its marker, and a counter for each hash slot that has one ("c:<slot>").
inline constexpr std::string_view record_key = "holdfast:{redlock}:node";
inline constexpr std::array<std::string_view, 1> record_keys{record_key};
// Where a node has those who wait for a lock.
[[nodiscard]] inline std::string waiters_key(const std::string& lock) {
  return "holdfast:{redlock}:waiters:" + lock;
}
// Whether a field of it is a counter, or the least value of all: scripts/admit.lua.
[[nodiscard]] constexpr bool is_counter(std::string_view field) noexcept {
  return field.starts_with("c:") || field == "floor";
}

// What to do when a majority has lost its counters: nodes that came back have nobody to learn from.
inline constexpr std::string_view counters_lost_advice =
    "too few nodes have kept their counters for the others to learn them: a person has to decide, "
    "see `holdfast redlock recover`";

// How far a proposal may be ahead of a node's clock, and still move its counter: one absurd clock
// must not carry the counters away with it.
inline constexpr std::string_view ahead_us_max = "30000000";

struct node {
  std::string name;
  // Names the set, the node's place in it and max_ttl: what travels in every script.
  std::string config;
  std::shared_ptr<line> calls;
  // Renewals have a connection of their own: they must not queue behind anything.
  std::shared_ptr<line> renewals;
};

// Thread-safe. Locks keep it alive.
class node_set : public std::enable_shared_from_this<node_set> {
 public:
  node_set(redlock_config given, std::shared_ptr<runtime::background> background);
  // Makes the connections' owners; once, before anything else.
  void start();
  void close();

  const redlock_config config;
  const std::string host;
  // "n1:6379,n2:6379,n3:6379 (epoch 1, max_ttl 60000 ms)", sorted
  const std::string description;
  store_events events;
  const std::shared_ptr<redlock::polling> polling;

  [[nodiscard]] const std::vector<node>& nodes() const noexcept { return nodes_; }
  [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }
  [[nodiscard]] std::size_t majority() const noexcept { return core::majority_of(nodes_.size()); }
  [[nodiscard]] set_names set() const { return {description}; }
  [[nodiscard]] turn_inbox& turns() noexcept { return *turns_; }
  [[nodiscard]] round::lines calls() const;
  [[nodiscard]] round::lines renewals() const;
  [[nodiscard]] std::shared_ptr<question> ask_all() const;
  // What every node says to something that may be asked twice: once more where the connection turns
  // out to be to a server that is gone, and another may be there now.
  [[nodiscard]] question::answers ask_every(const std::function<request(std::size_t)>& what,
                                            core::time_point until) const;
  // What every node says of these locks, by scripts/inspect.lua.
  [[nodiscard]] question::answers inspect(std::span<const std::string> locks,
                                          core::time_point until) const;
  // Whether a majority answered when this client last asked for a lock. Only then it queues: a
  // client that is cut off would be told that it is its turn, and could not use it.
  [[nodiscard]] bool majority_answers() const noexcept { return majority_answers_; }
  void majority_answers(bool now) noexcept { majority_answers_ = now; }

  // Replies that nobody waits for are left: somebody reads them soon.
  void watch_replies();
  void flush(core::time_point until) noexcept;

  // A node refuses to vote because it may have lost something: see to it, in the background.
  void look_after_nodes();
  // That is of no use: too few have kept their counters.
  [[nodiscard]] bool counters_lost() const noexcept { return counters_lost_; }
  // Asks every node what it is, letting those begin their wait that may not vote.
  struct standing {
    core::node_report report;
    std::string run_id;  // if it may not vote, with its wait: scripts/enrol.lua
    std::string said;    // for a person
    bool voted_elsewhere = false;
  };
  [[nodiscard]] std::vector<standing> survey(core::time_point until) const;
  [[nodiscard]] static std::vector<core::node_report> reports_of(const std::vector<standing>& seen);
  // Recovered: waited, and begins above whatever it may have granted.
  enum class admit_mode { waited, recovered, kept, vouched_for };
  // Pairs of a counter's field and the least that it must be.
  using counters = std::vector<std::string>;
  [[nodiscard]] result<void> admit(std::size_t node, const standing& seen, admit_mode mode,
                                   const counters& least, const std::string& begun_with,
                                   core::time_point until) const;
  // The highest of what a majority knows that has lost nothing; a failure without one.
  [[nodiscard]] result<counters> counters_known(core::time_point until) const;
  // The highest of what is left anywhere. Every node has to answer.
  [[nodiscard]] result<counters> counters_left(core::time_point until) const;

 private:
  [[nodiscard]] request enrol_request(std::size_t node) const;
  [[nodiscard]] line::hooks hooks_of(std::size_t node);
  [[nodiscard]] result<redis::reply> say(std::size_t node, redis::channel& fresh,
                                         const std::string& bytes, core::time_point until) const;
  [[nodiscard]] result<redis::reply> ask_who(std::size_t node, redis::channel& fresh,
                                             core::time_point until) const;
  // Both give the server's run_id.
  [[nodiscard]] result<std::string> prepare(std::size_t node, redis::channel& fresh,
                                            core::time_point until);
  [[nodiscard]] result<std::string> check_identity(std::size_t node,
                                                   const redis::reply_value& info);
  [[nodiscard]] bool loses_nothing(std::size_t node, core::time_point until) const;
  void sweep();
  void admit_those_who_may();

  const std::shared_ptr<runtime::background> background_;
  const std::shared_ptr<runtime::background> connecting_;
  std::vector<node> nodes_;
  std::vector<std::string> names_;
  std::unique_ptr<turn_inbox> turns_;
  std::atomic<bool> sweep_planned_{false};
  std::atomic<bool> looking_{false};
  std::atomic<bool> counters_lost_{false};
  std::atomic<bool> majority_answers_{false};
  std::mutex m_;
  // Protected by m_.
  std::vector<std::string> run_ids_;
};

}  // namespace holdfast::stores::redlock
