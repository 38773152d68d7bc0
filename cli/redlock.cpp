// `holdfast redlock`: the nodes behind a redlock:// URL.
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <holdfast/redlock.hpp>
#include <holdfast/status.hpp>

#include "common_options.hpp"
#include "exit_code.hpp"
#include "output.hpp"
#include "say.hpp"
#include "verbs.hpp"

namespace holdfast::cli {
namespace {

constexpr const char* examples = R"(Examples:
  holdfast redlock status --store redlock://n1,n2,n3
  holdfast redlock init --store redlock://n1,n2,n3
  holdfast redlock recover --store redlock://n1,n2,n3

A node that is empty or was restarted may have lost locks, so it does not vote until the set's
max_ttl is over; clients see to that by themselves. These verbs decide what clients must not.)";

constexpr const char* status_examples = R"(Examples:
  holdfast redlock status --store redlock://n1,n2,n3
  holdfast redlock status --store redlock://n1,n2,n3 --json | jq '.[] | select(.votes | not)'

Exit codes: 0 every node votes, 1 some do not, 64 not a redlock:// URL.)";

constexpr const char* init_examples = R"(Examples:
  holdfast redlock init --store redlock://n1,n2,n3

Lets a new set begin at once instead of after max_ttl. You vouch that no lock is held on it. Refuses
if a node does not answer or has voted before. Exit codes: 0 it votes, 1 it is not new, 69 a node
does not answer.)";

constexpr const char* recover_examples = R"(Examples:
  holdfast redlock recover --store redlock://n1,n2,n3

After a majority of nodes lost their counters: they go on from the highest that are left anywhere
and from clients' clocks. Every node has to answer and to have waited for max_ttl. Tokens go on
increasing if the clocks are right. Exit codes: 0 all vote, 69 too early, or a node is away.)";

struct redlock_options {
  std::string store{};
  bool json = false;
};

int show_nodes(const redlock_options& options) {
  const auto nodes = redlock::status(options.store);
  if (!nodes) return say_failure(nodes.error().code, nodes.error().message);
  std::string text;
  bool all_vote = true;
  auto list = nlohmann::ordered_json::array();
  for (const auto& one : *nodes) {
    all_vote = all_vote && one.votes;
    text += fmt::format("{}  {}\n", one.node, one.said);
    list.push_back({{"node", one.node}, {"votes", one.votes}, {"said", one.said}});
  }
  if (!print(options.json ? list.dump() + "\n" : text)) return exit_code::io;
  return all_vote ? exit_code::ok : exit_code::refused;
}

int end_with(const result<void>& done) {
  if (!done) {
    const int code = say_failure(done.error().code, done.error().message);
    return done.error().code == errc::store_refused ? exit_code::refused : code;
  }
  return print("every node votes\n") ? exit_code::ok : exit_code::io;
}

}  // namespace

void add_redlock(CLI::App& app, invocation& job) {
  CLI::App* verb = app.add_subcommand("redlock", "The nodes behind a redlock:// URL");
  verb->require_subcommand(1);
  verb->footer(examples);
  auto options = std::make_shared<redlock_options>();

  CLI::App* status = verb->add_subcommand("status", "Say which nodes vote, and why others do not");
  add_store(*status, options->store);
  status->add_flag("--json", options->json, "Print JSON");
  status->footer(status_examples);
  status->final_callback(
      [options, &job] { job.verb = [options] { return show_nodes(*options); }; });

  CLI::App* init = verb->add_subcommand("init", "Let a new set begin at once");
  add_store(*init, options->store);
  init->footer(init_examples);
  init->final_callback([options, &job] {
    job.verb = [options] { return end_with(redlock::init(options->store)); };
  });

  CLI::App* recover = verb->add_subcommand("recover", "Go on after a majority lost its counters");
  add_store(*recover, options->store);
  recover->footer(recover_examples);
  recover->final_callback([options, &job] {
    job.verb = [options] { return end_with(redlock::recover(options->store)); };
  });
}

}  // namespace holdfast::cli
