// Runs seeds, on as many threads as there are cores.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/lock_script.hpp"
#include "sim/plan.hpp"
#include "sim/planted.hpp"
#include "sim/world.hpp"

namespace holdfast::sim {

// A planted bug that the judge has to find.
struct mutant {
  std::string_view name;
  std::string_view what;
  std::vector<edit> edits{};
  left_out without{};
  store_kind on = store_kind::redis;
  // The check of the counter in repair.lua covers for this rule, as redlock_renew.pml shows. So
  // that is left out as well, and what may break without it does not count: a lease that is renewed
  // after somebody came and went, or after two nodes have lost locks.
  bool lenient = false;
  // Shows where this goes wrong: hunted only among the seeds whose plan has it.
  std::optional<fault> by{};
};
[[nodiscard]] const std::vector<mutant>& mutants();
[[nodiscard]] std::vector<mutant> redis_mutants();
[[nodiscard]] std::vector<mutant> redlock_mutants();

// One seed, with everything made anew. No mutant: what is shipped.
[[nodiscard]] verdict run_seed(std::uint64_t seed, const mutant* planted, bool traced);

struct summary {
  std::uint64_t seeds = 0;  // that were run; until the failing one, if there is one
  std::uint64_t acquisitions = 0;
  std::uint64_t fewest_acquisitions = 0;
  std::uint64_t scripts = 0;
  std::optional<std::uint64_t> failing_seed;  // the lowest one
  std::optional<violation> found;
};
// `count` seeds from `first` on, of one store if `only` says so; of those, if `with` says so, the
// ones whose plan has this fault. Stops at the first that fails.
[[nodiscard]] summary run_seeds(std::uint64_t first, std::uint64_t count, const mutant* planted,
                                unsigned threads, std::optional<store_kind> only = {},
                                std::optional<fault> with = {});

}  // namespace holdfast::sim
