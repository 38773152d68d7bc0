// What a seed stands for: who takes part, what they do, and what goes wrong.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/lock_kind.hpp"
#include "core/settings.hpp"
#include "sim/network.hpp"

namespace holdfast::sim {

enum class store_kind { redis, redlock };
// Odd seeds are one Redis, even ones a quorum.
[[nodiscard]] constexpr store_kind store_of(std::uint64_t seed) noexcept {
  return seed % 2 == 0 ? store_kind::redlock : store_kind::redis;
}

enum class fault {
  pause,           // a process is stopped for a while
  kill,            // and started again
  client_wall,     // its wall clock jumps
  cut,             // a connection breaks, heard of or not
  stall,           // a connection is silent for a while, in one direction
  partition,       // between a process and the node, in one direction or both
  node_pause,      // the node is stopped for a while
  node_restart,    // and has all of its data
  node_rollback,   // the node comes back with old data
  node_empty,      // or with none
  node_step_back,  // its wall clock jumps
  node_step_on,
  foreign,       // another kind of client takes a lock that is free
  all_empty,     // every node comes back with nothing; of a quorum only
  vanish,        // a node drops a lock, by eviction or by hand; of a quorum only
  many_restart,  // a majority or all nodes, with all data, old or none; of a quorum only
  node_flush,    // a node loses everything and was not started anew; of a quorum only
  node_gone,     // a node is dead until everybody was served; of a quorum only
  // At just that moment (world_ambush.cpp); of a quorum only.
  vote_forgotten,       // a node forgets the vote that it has just given
  admission_outdated,   // a client has looked at a node that may vote again, and sleeps
  renewal_interrupted,  // a lease is lost in the middle of a renewal, and so is the one after it
  repair_overtaken,     // a repair arrives when another attempt has come and gone
  ask_overtaken,        // so does an ask
  answer_lost,          // that a vote is stale is not heard; of clients that send acquires again
};
inline constexpr int fault_kinds = 24;
[[nodiscard]] std::string_view name_of(fault what);
[[nodiscard]] std::optional<fault> fault_called(std::string_view name);

struct plan {
  explicit plan(std::uint64_t seed);

  std::uint64_t seed;
  store_kind store;
  std::size_t nodes;
  std::size_t processes;
  std::size_t workers;  // in all
  std::size_t locks;
  core::lock_kind of{};                   // of all of them; a quorum has mutexes only
  int acquisitions;                       // of each worker
  int impatient;                          // per mille: wait for a moment only, or change their mind
  instant think_most = 10 * millisecond;  // between two acquisitions
  int long_work = 40;                     // per mille: holds take renewals
  core::lease_rule rule;
  core::duration operation_timeout;
  core::duration unreachable_limit;
  core::duration release_budget;
  std::int64_t drift_ppm_max;  // of any clock
  bool drift_bound_kept;
  bool hands_over;  // workers of one process hand a lock on among themselves
  network::manners manners;
  std::size_t latches = 0;  // one after the other; each is counted at and waited for by all parts
  std::uint32_t latch_parts = 0;
  instant latch_think = 0;  // at most, before each part counts
  // Of a quorum.
  core::duration node_timeout{};
  core::duration max_ttl{};
  bool new_set = false;  // nobody has vouched that it is new: it has to wait
  bool resends = false;  // see quorum_set
  bool dense = false;    // counters are ahead of all clocks: tokens only count up
  bool apart = false;    // clocks drift as far apart as they may: nodes' fast, clients' slow
  int durable = 0;       // per mille of the nodes: a crash loses nothing
  bool outages = false;  // more nodes than a minority may forget at a time
  int slow_boots = 0;    // per mille of starts: the node's clock is behind, mostly for a moment
  instant clocks_apart = second;  // of nodes, at first
  std::vector<fault> faults;      // kinds that happen
  instant fault_every;            // on average
  instant faults_end;
  instant longest_fault;

  // For people.
  [[nodiscard]] std::string described() const;
  [[nodiscard]] bool has(fault what) const;

 private:
  void become_quorum();
  void share();
  void count_down();
  void be_forgetful();
  void ambush_admissions();
  void drop_locks();
  void suffer_outages();
  void ambush_messages();
};

}  // namespace holdfast::sim
