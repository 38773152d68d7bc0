// What a seed stands for: who takes part, what they do, and what goes wrong.
#pragma once

#include <cstdint>
#include <string>

#include "core/settings.hpp"
#include "sim/network.hpp"

namespace holdfast::sim {

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
  foreign,  // another kind of client takes a lock that is free
};
inline constexpr int fault_kinds = 13;
[[nodiscard]] std::string_view name_of(fault what);

struct plan {
  explicit plan(std::uint64_t seed);

  std::uint64_t seed;
  std::size_t processes;
  std::size_t workers;  // in all
  std::size_t locks;
  int acquisitions;  // of each worker
  int impatient;     // per mille: wait for a moment only, or change their mind
  core::lease_rule rule;
  core::duration operation_timeout;
  core::duration unreachable_limit;
  core::duration release_budget;
  std::int64_t drift_ppm_max;  // of any clock
  bool drift_bound_kept;
  network::manners manners;
  std::vector<fault> faults;  // kinds that happen
  instant fault_every;        // on average
  instant faults_end;
  instant longest_fault;

  // For people.
  [[nodiscard]] std::string described() const;
};

}  // namespace holdfast::sim
