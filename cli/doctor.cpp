// `holdfast doctor`: what would void the guarantees of the servers behind a URL.
#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <holdfast/examination.hpp>

#include "common_options.hpp"
#include "exit_code.hpp"
#include "output.hpp"
#include "say.hpp"
#include "store_url.hpp"
#include "verbs.hpp"

namespace holdfast::cli {
namespace {

constexpr const char* examples = R"(Examples:
  holdfast doctor                                  # the local: server
  holdfast doctor --store redis://db.example
  holdfast doctor --store redlock://n1,n2,n3 --json | jq -r '.findings[].about'
  holdfast doctor --store 'redis://db.example?prefix=app:' --acl   # the user's access rule

Asks every server what it is and how it is set up, looks at the keys of locks, and tries what this
user may do, with keys of its own that it deletes. Locks are not touched. What it finds is shown in
the order of danger: what is so, what that means for locks, and what to do. A note says that nothing
is wrong, or what could not be looked at.

Exit codes: 0 nothing but notes, 1 warnings, 2 dangers, 69 no server answers, 77 the server refused
the credentials, 64 usage.)";

struct doctor_options {
  std::string store{"local:"};
  bool json = false;
  bool acl = false;
  std::string user{"holdfast"};
};

std::string as_text(const finding& one) {
  return fmt::format("{:<8} {}{}\n         {}\n         {}\n         -> {}\n", to_string(one.how),
                     one.about, one.node.empty() ? "" : " on " + one.node, one.what, one.voids,
                     one.advice);
}

nlohmann::ordered_json as_json(const finding& one) {
  return {{"severity", to_string(one.how)},
          {"about", one.about},
          {"node", one.node},
          {"what", one.what},
          {"voids", one.voids},
          {"advice", one.advice}};
}

int print_rule(const doctor_options& options) {
  const auto rule = acl_rule(options.store, options.user);
  if (!rule) return say_failure(rule.error().code, rule.error().message);
  return print(*rule + "\n") ? exit_code::ok : exit_code::io;
}

int examine_store(const doctor_options& options) {
  const auto found = examine(options.store);
  if (!found) return say_failure(found.error().code, found.error().message);
  const std::string where = shown_store(options.store);
  std::string text;
  auto list = nlohmann::ordered_json::array();
  for (const finding& one : found->findings) {
    text += as_text(one);
    list.push_back(as_json(one));
  }
  if (options.json) {
    const nlohmann::ordered_json all{{"store", where},
                                     {"servers", found->servers},
                                     {"answered", found->answered},
                                     {"findings", list}};
    text = all.dump() + "\n";
  } else {
    text += fmt::format("{} of {} servers looked at on {}{}\n", found->answered, found->servers,
                        where, found->findings.empty() ? ": nothing found" : "");
  }
  if (!print(text)) return exit_code::io;
  if (found->is_sound()) return exit_code::ok;
  const bool danger = found->findings.front().how == finding::severity::danger;
  return danger ? exit_code::danger : exit_code::refused;
}

}  // namespace

void add_doctor(CLI::App& app, invocation& job) {
  auto options = std::make_shared<doctor_options>();
  CLI::App* verb = app.add_subcommand("doctor", "Say what endangers the locks on a store");
  add_store(*verb, options->store);
  CLI::Option* const json = verb->add_flag("--json", options->json, "Print JSON");
  CLI::Option* const acl = verb->add_flag(
      "--acl", options->acl, "Print the least access rule that a user of these locks needs");
  acl->excludes(json);
  verb->add_option("--user", options->user, "The user that the rule is for")
      ->needs(acl)
      ->capture_default_str()
      ->type_name("NAME");
  verb->footer(examples);
  verb->final_callback([options, &job] {
    job.verb = [options] { return options->acl ? print_rule(*options) : examine_store(*options); };
  });
}

}  // namespace holdfast::cli
