// holdfast_sim: runs seeds, replays one, hunts planted bugs. See README.md.
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <thread>

#include "sim/run.hpp"

namespace holdfast::sim {

namespace {

constexpr int exit_usage = 64;
constexpr std::uint64_t mutant_seeds_max = 100'000;

struct options {
  std::optional<std::uint64_t> seeds;
  std::optional<std::uint64_t> seed;
  bool hunt = false;
  const mutant* planted = nullptr;
  std::optional<store_kind> store;
  std::optional<fault> with;
  bool trace = false;
  unsigned threads = std::max(1U, std::thread::hardware_concurrency());
};

int usage() {
  std::fputs(
      "usage: holdfast_sim [--seeds N] [--seed S] [--mutants] [--mutant NAME]\n"
      "                    [--store redis|redlock] [--fault NAME] [--threads T]\n"
      "  --seeds N      run N seeds (default 1000), from --seed on; without it, from a random "
      "one,\n"
      "                 which is printed\n"
      "  --seed S       without --seeds: replay this one and print all that happened\n"
      "  --mutants      plant each known bug in turn; each has to be found\n"
      "  --mutant NAME  plant this one\n"
      "  --store S      seeds (or mutants) of this store only; odd seeds are redis, even redlock\n"
      "  --fault NAME   of those seeds, only the ones whose plan has this fault\n",
      stderr);
  return exit_usage;
}

std::optional<options> parse(int count, char** words) {
  options out;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "--mutants") {
      out.hunt = true;
      continue;
    }
    if (i + 1 == count) return std::nullopt;
    const std::string_view value = words[++i];
    if (word == "--mutant") {
      for (const auto& one : mutants()) {
        if (one.name == value) out.planted = &one;
      }
      if (out.planted == nullptr) return std::nullopt;
      continue;
    }
    if (word == "--store") {
      if (value != "redis" && value != "redlock") return std::nullopt;
      out.store = value == "redis" ? store_kind::redis : store_kind::redlock;
      continue;
    }
    if (word == "--fault") {
      out.with = fault_called(value);
      if (!out.with) return std::nullopt;
      continue;
    }
    std::uint64_t number = 0;
    const auto read = std::from_chars(value.data(), value.data() + value.size(), number);
    if (read.ec != std::errc{} || read.ptr != value.data() + value.size()) return std::nullopt;
    if (word == "--seeds") {
      out.seeds = number;
    } else if (word == "--seed") {
      out.seed = number;
    } else if (word == "--threads" && number > 0) {
      out.threads = static_cast<unsigned>(number);
    } else {
      return std::nullopt;
    }
  }
  return out;
}

double since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int replay(std::uint64_t seed, const mutant* planted) {
  const auto got = run_seed(seed, planted, true);
  std::printf("seed %llu: %s\n\n", static_cast<unsigned long long>(seed), got.plan.c_str());
  for (const auto& line : got.trace)
    std::printf("%s\n", line.c_str());
  std::printf("\n%zu acquisitions, %zu scripts, fingerprint %016llx\n", got.acquisitions,
              got.scripts, static_cast<unsigned long long>(got.fingerprint));
  if (!got.found) {
    std::printf("nothing was broken\n");
    return 0;
  }
  std::printf("BROKEN  %s: %s\n", got.found->promise.c_str(), got.found->what.c_str());
  return 1;
}

// Worlds that nobody has looked at yet. Of a size that a person can copy.
std::uint64_t random_seed() {
  constexpr std::uint64_t highest = 4'000'000'000;
  std::random_device source;
  return std::uniform_int_distribution<std::uint64_t>{1, highest}(source);
}

int run(const options& how) {
  const auto start = std::chrono::steady_clock::now();
  const auto first = how.seed ? *how.seed : random_seed();
  // Before they run: also a run that hangs or is killed can be repeated.
  std::printf("seeds from %llu\n", static_cast<unsigned long long>(first));
  std::fflush(stdout);
  const auto only = how.planted == nullptr ? how.store : how.planted->on;
  const auto got =
      run_seeds(first, how.seeds.value_or(1000), how.planted, how.threads, only, how.with);
  const auto seconds = since(start);
  if (got.failing_seed) {
    static_cast<void>(replay(*got.failing_seed, how.planted));
    std::printf("replay: ./dev sim --seed %llu%s%s\n",
                static_cast<unsigned long long>(*got.failing_seed),
                how.planted == nullptr ? "" : " --mutant ",
                how.planted == nullptr ? "" : std::string{how.planted->name}.c_str());
    return 1;
  }
  std::printf(
      "%llu seeds from %llu, nothing was broken: %llu acquisitions (at least %llu in each), "
      "%llu scripts, %.1f s, %.0f seeds a minute on %u threads\n",
      static_cast<unsigned long long>(got.seeds), static_cast<unsigned long long>(first),
      static_cast<unsigned long long>(got.acquisitions),
      static_cast<unsigned long long>(got.fewest_acquisitions),
      static_cast<unsigned long long>(got.scripts), seconds,
      static_cast<double>(got.seeds) * 60 / seconds, how.threads);
  return 0;
}

int hunt(const options& how) {
  const auto first = how.seed.value_or(1);
  int survivors = 0;
  std::printf("%-22s %8s %7s  %-26s %s\n", "mutant", "seeds", "s", "found by", "what it does");
  for (const auto& one : mutants()) {
    if (how.planted != nullptr && how.planted != &one) continue;
    if (how.store && how.store != one.on) continue;
    const auto most = how.seeds.value_or(mutant_seeds_max);
    const auto start = std::chrono::steady_clock::now();
    const auto with = how.with ? how.with : one.by;
    const auto got = run_seeds(first, most, &one, how.threads, one.on, with);
    if (!got.failing_seed) ++survivors;
    std::printf("%-22s %8llu %7.1f  %-26s %s\n", std::string{one.name}.c_str(),
                static_cast<unsigned long long>(got.seeds), since(start),
                got.found ? got.found->promise.c_str() : "SURVIVED", std::string{one.what}.c_str());
    std::fflush(stdout);
  }
  if (survivors > 0) std::printf("%d survived\n", survivors);
  return survivors > 0 ? 1 : 0;
}

}  // namespace

}  // namespace holdfast::sim

int main(int count, char** words) {
  using namespace holdfast::sim;
  const auto how = parse(count, words);
  if (!how) return usage();
  if (how->hunt) return hunt(*how);
  if (how->seed && !how->seeds) return replay(*how->seed, how->planted);
  return run(*how);
}
