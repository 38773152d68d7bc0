#include "sim/run.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

namespace holdfast::sim {

namespace {

// What one thread keeps from seed to seed.
struct bench {
  explicit bench(const mutant* planted)
      : scripts{engine, planted == nullptr ? std::vector<edit>{} : planted->edits},
        without{planted == nullptr ? left_out{} : planted->without},
        lenient{planted != nullptr && planted->lenient} {}
  script_engine engine;
  shipped_scripts scripts;
  left_out without;
  bool lenient;

  verdict run(std::uint64_t seed, bool traced) {
    return world{seed, engine, scripts, without, lenient, traced}.run();
  }
};

}  // namespace

verdict run_seed(std::uint64_t seed, const mutant* planted, bool traced) {
  return bench{planted}.run(seed, traced);
}

summary run_seeds(std::uint64_t first, std::uint64_t count, const mutant* planted, unsigned threads,
                  std::optional<store_kind> only, std::optional<fault> with) {
  if (only && store_of(first) != *only) ++first;
  const std::uint64_t step = only ? 2 : 1;
  std::atomic<std::uint64_t> next{first};
  std::atomic<std::uint64_t> end{first + count * step};
  std::mutex m;
  summary all;
  const auto is_meant = [&](std::uint64_t seed) { return !with || plan{seed}.has(*with); };
  all.fewest_acquisitions = ~std::uint64_t{0};
  const auto work = [&] {
    bench mine{planted};
    for (;;) {
      const auto seed = next.fetch_add(step);
      if (seed >= end) return;
      if (!is_meant(seed)) continue;
      const auto got = mine.run(seed, false);
      const std::lock_guard guard{m};
      ++all.seeds;
      all.acquisitions += got.acquisitions;
      all.scripts += got.scripts;
      if (!got.found) {
        all.fewest_acquisitions =
            std::min<std::uint64_t>(all.fewest_acquisitions, got.acquisitions);
      } else if (!all.failing_seed || seed < *all.failing_seed) {
        all.failing_seed = seed;
        all.found = got.found;
        end = seed;  // those below are still run, so that the answer is the same every time
      }
    }
  };
  std::vector<std::thread> crew;
  for (unsigned i = 1; i < threads; ++i)
    crew.emplace_back(work);
  work();
  for (auto& one : crew)
    one.join();
  if (all.failing_seed) {
    // Not how many were run: on several threads, that is a matter of luck.
    all.seeds = 0;
    for (auto seed = first; seed <= *all.failing_seed; seed += step)
      all.seeds += is_meant(seed) ? 1U : 0U;
  }
  return all;
}

}  // namespace holdfast::sim
