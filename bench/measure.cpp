#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "bench.hpp"
#include "hand_rolled.hpp"
#include "pairs.hpp"

namespace holdfast::bench {

double quantile(std::vector<double>& of, double share) {
  if (of.empty()) return 0;
  const auto index =
      std::min(of.size() - 1, static_cast<std::size_t>(share * static_cast<double>(of.size())));
  std::nth_element(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(index), of.end());
  return of[index];
}

turn constant(double value) {
  return [value](std::chrono::milliseconds) { return value; };
}

turn ping_latency(const servers& at) {
  return [at](std::chrono::milliseconds time) {
    hand_rolled them{::redisConnect(at.host.c_str(), at.port)};
    return quantile_of_calls(time, 0.5, [&] { return microseconds_of([&] { them.ping(); }); });
  };
}

double median(std::vector<double> of) { return quantile(of, 0.5); }

namespace {

// On a terminal in one line that goes away; in a log, a line for each case.
bool on_terminal() { return ::isatty(STDERR_FILENO) == 1; }

void show_progress(const std::string& name, int round, int rounds) {
  if (on_terminal()) {
    std::fprintf(stderr, "\r\033[K%s: round %d of %d", name.c_str(), round + 1, rounds);
  } else if (round == 0) {
    std::fprintf(stderr, "   %s\n", name.c_str());
  }
}

void clear_progress() {
  if (on_terminal()) std::fprintf(stderr, "\r\033[K");
}

}  // namespace

result measure(const bench_case& one, const effort& how) {
  std::vector<double> ours;
  std::vector<double> baseline;
  std::vector<double> ratios;
  const int rounds = one.rounds > 0 ? one.rounds : how.rounds;
  for (int round = 0; round < rounds; ++round) {
    show_progress(one.name, round, rounds);
    // Turns change order, so that neither side always has the warmer machine.
    const bool we_begin = round % 2 == 0;
    if (we_begin) ours.push_back(one.ours(how.each));
    baseline.push_back(one.baseline(how.each));
    if (!we_begin) ours.push_back(one.ours(how.each));
    ratios.push_back(ours.back() / baseline.back());
  }
  clear_progress();
  result r;
  r.name = one.name;
  r.what = one.what;
  r.unit = one.unit;
  r.baseline_is = one.baseline_is;
  r.ours = median(ours);
  r.baseline = median(baseline);
  r.ratio = median(ratios);
  r.ratio_low = *std::min_element(ratios.begin(), ratios.end());
  r.ratio_high = *std::max_element(ratios.begin(), ratios.end());
  r.goal = one.goal;
  r.higher_is_better = one.higher_is_better;
  return r;
}

}  // namespace holdfast::bench
