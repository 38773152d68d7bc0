// Measuring us beside a baseline: the same work, in the same run, taking turns.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace holdfast::bench {

// Where the servers of this run are. Both sides of a case use the same one.
struct servers {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  std::uint16_t tls_port = 0;
  std::string authority;  // to believe at that one
  std::string socket_path;

  [[nodiscard]] std::string tcp_url(const std::string& options = {}) const {
    return "redis://" + host + ":" + std::to_string(port) + options;
  }
  [[nodiscard]] std::string tls_url() const {
    return "rediss://" + host + ":" + std::to_string(tls_port) + "?ca=" + authority;
  }
  [[nodiscard]] std::string unix_url(const std::string& options = {}) const {
    return "unix:" + socket_path + options;
  }
};

struct effort {
  int rounds = 5;
  std::chrono::milliseconds each{1000};  // one side's turn
};

// One side's turn: how many per second, or how many µs, as the case's unit says.
using turn = std::function<double(std::chrono::milliseconds)>;

struct bench_case {
  std::string name;
  std::string what;
  std::string unit;
  std::string baseline_is;
  bool higher_is_better = true;
  double goal = 0;  // of ours ÷ baseline; a floor if higher is better, otherwise a ceiling
  turn ours;
  turn baseline;
  int rounds = 0;  // 0: as the effort says
};

struct result {
  std::string name, what, unit, baseline_is;
  double ours = 0, baseline = 0, ratio = 0;  // medians
  double ratio_low = 0, ratio_high = 0;      // of the rounds
  double goal = 0;
  bool higher_is_better = true;

  [[nodiscard]] bool reached() const noexcept {
    return higher_is_better ? ratio >= goal : ratio <= goal;
  }
};

// For cases whose baseline is a figure, not a program.
[[nodiscard]] turn constant(double value);
// How long a PING takes, in µs, half of the time.
[[nodiscard]] turn ping_latency(const servers& at);

// Says on stderr what it is doing.
[[nodiscard]] result measure(const bench_case& one, const effort& how);

[[nodiscard]] double median(std::vector<double> of);
// The value below which this share (0 to 1) of them lies.
[[nodiscard]] double quantile(std::vector<double>& of, double share);

[[nodiscard]] std::string table(const std::vector<result>& all);
[[nodiscard]] std::string json(const std::vector<result>& all);
[[nodiscard]] std::vector<result> read_json(const std::string& path);  // what json() wrote
[[nodiscard]] std::string picture(const std::vector<result>& all);     // SVG

// The cases, one file for each kind.
[[nodiscard]] std::vector<bench_case> replicated_cases();
[[nodiscard]] std::vector<bench_case> uncontended_cases(const servers& at);
[[nodiscard]] std::vector<bench_case> contended_cases(const servers& at);
[[nodiscard]] std::vector<bench_case> share_cases(const servers& at);
[[nodiscard]] std::vector<bench_case> at_scale_cases(const servers& at);
[[nodiscard]] std::vector<bench_case> redlock_cases(const servers& at);
// On servers of their own. None where the store is not built.
[[nodiscard]] std::vector<bench_case> cluster_cases();
[[nodiscard]] std::vector<bench_case> etcd_cases();
[[nodiscard]] std::vector<bench_case> zookeeper_cases();

}  // namespace holdfast::bench
