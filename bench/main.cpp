// Runs the benchmarks: us and a baseline, in the same run, on servers of its own.
//
//   holdfast_bench [--quick] [--json FILE] [--svg FILE] [CASE…]
//   holdfast_bench --from FILE --svg FILE
#include <cstdio>
#include <fstream>

#include <CLI/CLI.hpp>

#include "bench.hpp"
#include "support/redis_server.hpp"

namespace holdfast::bench {
namespace {

// Lines of redis.conf: TLS at another port of the same server.
std::vector<std::string> also_tls(const test::authority& by, std::uint16_t port) {
  const auto shown = by.issue("server");
  return {"tls-port " + std::to_string(port), "tls-cert-file " + shown.cert,
          "tls-key-file " + shown.key, "tls-ca-cert-file " + by.file(), "tls-auth-clients no"};
}

std::vector<result> measured(const std::vector<std::string>& wanted, bool quick) {
  const test::authority authority{"the benchmarks' authority"};
  servers at;
  at.tls_port = test::free_port();
  at.authority = authority.file();
  const test::redis_server server{{.tcp = true, .config = also_tls(authority, at.tls_port)}};
  at.port = server.port();
  at.socket_path = server.socket_path();

  effort how;
  if (quick) how = {3, std::chrono::milliseconds{500}};
  std::vector<result> results;
  auto cases = uncontended_cases(at);
  for (const auto& more :
       {contended_cases(at), share_cases(at), at_scale_cases(at), redlock_cases(at),
        replicated_cases(), cluster_cases(), etcd_cases(), zookeeper_cases()})
    cases.insert(cases.end(), more.begin(), more.end());
  for (const auto& one : cases) {
    const bool chosen = wanted.empty() || std::any_of(wanted.begin(), wanted.end(), [&](auto& w) {
                          return one.name.starts_with(w);
                        });
    if (chosen) results.push_back(measure(one, how));
  }
  return results;
}

}  // namespace
}  // namespace holdfast::bench

int main(int argc, char** argv) {
  using namespace holdfast::bench;
  CLI::App app{"Measures Holdfast beside a baseline in the same run."};
  bool quick = false;
  std::string json_file;
  std::string svg_file;
  std::string from_file;
  std::vector<std::string> wanted;
  app.add_flag("--quick", quick, "Fewer and shorter rounds: under two minutes");
  app.add_option("--json", json_file, "Write the results there, too");
  app.add_option("--svg", svg_file, "Draw the results there");
  app.add_option("--from", from_file, "Measure nothing: show what --json wrote earlier");
  app.add_option("CASE", wanted, "Only cases whose names begin so");
  CLI11_PARSE(app, argc, argv);

  const auto results = from_file.empty() ? measured(wanted, quick) : read_json(from_file);
  std::fputs(table(results).c_str(), stdout);
  if (!json_file.empty()) std::ofstream{json_file} << json(results);
  if (!svg_file.empty()) std::ofstream{svg_file} << picture(results);
  return 0;
}
