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
  holdfast redlock move --store redlock://n1,n2,n3 --to 'redlock://n1,n2,n4?epoch=2'

A node that is empty or was restarted may have lost locks, so it does not vote until the set's
max_ttl is over. Clients see to that by themselves, also where all nodes were restarted.)";

constexpr const char* status_examples = R"(Examples:
  holdfast redlock status --store redlock://n1,n2,n3
  holdfast redlock status --store redlock://n1,n2,n3 --json | jq '.[] | select(.votes | not)'

Exit codes: 0 every node votes, 1 some do not, 64 not a redlock:// URL.)";

constexpr const char* init_examples = R"(Examples:
  holdfast redlock init --store redlock://n1,n2,n3

Lets every node vote at once, where a client would wait for max_ttl: nodes of a new set, and nodes
that were restarted or lost their data. You vouch that no lock is held on the set and that no client
is asking for one: otherwise a lock may get a second holder. Every node has to answer.

Exit codes: 0 every node votes, 1 some do not yet, 69 a node does not answer or has voted in another
set.)";

constexpr const char* move_examples = R"(Examples:
  # n3 is broken; n4 takes its place. Then give every client the new URL.
  holdfast redlock move --store redlock://n1,n2,n3 --to 'redlock://n1,n2,n4?epoch=2'
  # one more; then one less
  holdfast redlock move --store redlock://n1,n2,n3 --to 'redlock://n1,n2,n3,n4?epoch=2'
  holdfast redlock move --store 'redlock://n1,n2,n3,n4?epoch=2' --to 'redlock://n1,n2,n4?epoch=3'

Replaces, adds or removes nodes while locks are held. Nodes keep what they have and serve the new
list at once; a new node begins to vote after max_ttl. Clients of the old list are refused from then
on and told the new one; what they hold is not renewed, and they hear of the loss in time. Refuses,
and changes nothing, where two majorities could grant at once. Stopped half-way, run it again: until
then nodes of the new list that restart do not vote again.

Exit codes: 0 done; 1 too much at once; 64 the lists make no sense; 69 a node is away.)";

struct redlock_options {
  std::string store{};
  std::string to{};
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
    text += fmt::format("{}  {}\n", one.node, one.description);
    list.push_back({{"node", one.node}, {"votes", one.votes}, {"said", one.description}});
  }
  if (!print(options.json ? list.dump() + "\n" : text)) return exit_code::io;
  return all_vote ? exit_code::ok : exit_code::refused;
}

int end_with(const result<void>& done, const std::string& good_end = "every node votes\n") {
  if (!done) {
    const int code = say_failure(done.error().code, done.error().message);
    return done.error().code == errc::store_refused ? exit_code::refused : code;
  }
  return print(good_end) ? exit_code::ok : exit_code::io;
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

  CLI::App* init = verb->add_subcommand("init", "Let every node vote at once");
  add_store(*init, options->store);
  init->footer(init_examples);
  init->final_callback([options, &job] {
    job.verb = [options] { return end_with(redlock::init(options->store)); };
  });

  CLI::App* move = verb->add_subcommand("move", "Replace, add or remove nodes");
  add_store(*move, options->store);
  move->add_option("--to", options->to, "The new list: a redlock:// URL with a higher epoch")
      ->required()
      ->type_name("URL");
  move->footer(move_examples);
  move->final_callback([options, &job] {
    job.verb = [options] {
      return end_with(redlock::move(options->store, options->to),
                      "moved: give every client the new list; nodes that are new to it vote after "
                      "max_ttl\n");
    };
  });
}

}  // namespace holdfast::cli
