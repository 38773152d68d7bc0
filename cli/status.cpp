// `holdfast status`: who holds what, and who waits.
#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <holdfast/client.hpp>

#include "common_options.hpp"
#include "output.hpp"
#include "say.hpp"
#include "show.hpp"
#include "store_url.hpp"
#include "verbs.hpp"

namespace holdfast::cli {
namespace {

constexpr const char* examples = R"(Examples:
  holdfast status                                  # every lock that is held
  holdfast status deploy                           # one lock, held or free, and who waits for it
  holdfast status 'orders/*'                       # * ? [a-z], and \ before one to mean itself
  holdfast status deploy --json | jq .holder.pid
  holdfast status orders --format redisson         # a lock that is shared with Java programs
  holdfast status deploy --store redlock://n1,n2,n3   # and what each node says of it

With --json a name gives an object, a pattern (or nothing) an array. Bytes that are not printable
text are shown as \xNN, \n, \t, \\, in JSON strings too.

Exit codes: 0 answered, held or free; 69 store unreachable, 77 store refused the credentials,
64 usage.)";

struct status_options {
  std::string pattern{"*"};
  std::string store{"local:"};
  bool json = false;
  lock_choice choice{};
};

int show_one(client& store, const status_options& options, const std::string& where) {
  const lock_status status = named_lock{store, options.pattern, options.choice}.status();
  std::string text;
  if (options.json) {
    auto json = to_json(status);
    json["store"] = where;
    text = json.dump() + "\n";
  } else if (status.kind == lock_status::form::latch) {
    text = fmt::format("{}: on {}\n", escape(status.name), where) + show_units(status);
  } else if (!status.holder) {
    text = fmt::format("{}: free on {}\n", escape(status.name), where) + show_units(status) +
           show_queue(status) + show_nodes(status);
  } else {
    text = show_table({status}) + show_units(status) + show_queue(status) + show_nodes(status) +
           fmt::format("on {}\n", where);
  }
  return print(text) ? exit_code::ok : exit_code::io;
}

int show_matching(client& store, const status_options& options, const std::string& where) {
  std::vector<lock_status> locks = store.list(options.pattern);
  std::sort(locks.begin(), locks.end(),
            [](const lock_status& a, const lock_status& b) { return a.name < b.name; });
  std::string text;
  if (options.json) {
    auto all = nlohmann::ordered_json::array();
    for (const lock_status& status : locks) {
      all.push_back(to_json(status));
      all.back()["store"] = where;
    }
    text = all.dump() + "\n";
  } else if (locks.empty()) {
    say(options.pattern == "*" ? fmt::format("no Holdfast lock is held on {}", where)
                               : fmt::format("no Holdfast lock that matches {} is held on {}",
                                             in_quotes(options.pattern), where));
  } else {
    text = show_table(locks) + fmt::format("on {}\n", where);
  }
  return print(text) ? exit_code::ok : exit_code::io;
}

int status(const status_options& options) {
  client store{options.store};
  const bool one = options.pattern.find_first_of("*?[\\") == std::string::npos;
  if (!one && options.choice.what != lock_choice::kind::mutex) {
    say("--format wants the name of one lock: those of Redisson are not listed");
    return exit_code::usage;
  }
  const std::string where = shown_store(options.store);
  try {
    return one ? show_one(store, options, where) : show_matching(store, options, where);
  } catch (const error& problem) {
    if (const auto hint = other_format_hint(problem, options.choice); !hint.empty()) {
      return say_failure(errc::wrong_type, problem.what() + hint);
    }
    throw;
  }
}

}  // namespace

void add_status(CLI::App& app, invocation& job) {
  auto options = std::make_shared<status_options>();
  CLI::App* verb =
      app.add_subcommand("status", "Show who holds a lock and who waits for it, or all locks");
  verb->add_option("NAME", options->pattern, "A lock's name, or a pattern")->type_name("");
  add_store(*verb, options->store);
  add_format(*verb, options->choice);
  verb->add_flag("--json", options->json, "Print JSON");
  verb->footer(examples);
  verb->final_callback([options, &job] { job.verb = [options] { return status(*options); }; });
}

}  // namespace holdfast::cli
