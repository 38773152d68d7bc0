#include "sim/latch_judge.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim {

namespace {
// Much more than a message and an ask take when nothing goes wrong, and much less than what passes
// before those that wait ask again for fear that a message was lost.
constexpr instant told_within = second;
}  // namespace

latch_judge::known latch_judge::begins_to_count(std::size_t run, std::uint32_t part) {
  runs_[run].begun.insert(part);
  return looks(run);
}

void latch_judge::counted(known before, std::uint32_t part, std::int64_t left) {
  auto& run = runs_[before.run];
  before.counted.insert(part);
  looked(before, left);
  run.returned.insert(part);
  if (run.returned.size() == parts_ && !run.all_at) run.all_at = time_.now();
}

void latch_judge::looked(const known& before, std::int64_t left) const {
  const auto most = static_cast<std::int64_t>(parts_ - before.counted.size());
  const auto least = static_cast<std::int64_t>(parts_ - runs_[before.run].begun.size());
  if (left >= least && left <= most) return;
  judge_.broken("count of a latch", shown(before.run) + " says that " + std::to_string(left) +
                                        " are left, and there are " + std::to_string(least) +
                                        " to " + std::to_string(most));
}

void latch_judge::told_open(std::size_t run, std::uint32_t part, instant since, bool calm) const {
  const auto& at = runs_[run];
  if (at.begun.size() < parts_) {
    judge_.broken("latch opened early", shown(run) + " was open to part " + std::to_string(part) +
                                            " when " + std::to_string(at.begun.size()) + " of " +
                                            std::to_string(parts_) + " had begun to count");
  }
  if (calm && at.all_at && time_.now() > std::max(*at.all_at, since) + told_within) {
    judge_.broken("told late", "part " + std::to_string(part) + " waited at " + shown(run) +
                                   ", which had been open for long");
  }
}

}  // namespace holdfast::sim
