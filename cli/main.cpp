// The holdfast command: wires the verbs together and turns what goes wrong into exit codes.
#include <algorithm>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <holdfast/error.hpp>
#include <holdfast/status.hpp>
#include <holdfast/version.hpp>

#include "common_options.hpp"
#include "exit_code.hpp"
#include "help.hpp"
#include "man_page.hpp"
#include "output.hpp"
#include "say.hpp"
#include "signals.hpp"
#include "verbs.hpp"

namespace holdfast::cli {
namespace {

constexpr const char* description =
    "Locks between processes and machines, kept in Redis, with fencing tokens.";

constexpr const char* examples = R"(Examples:
  holdfast run nightly-report -- ./report.sh       # one at a time, on all hosts
  holdfast run deploy --wait 0 -- make deploy      # or not at all
  holdfast status                                  # who holds what
  holdfast help COMMAND                            # options, examples and exit codes

Durations: 500ms, 1.5s, 30s, 5m, 1h30m, 2d; a bare number is seconds.

TLS, beside what the store's URL says: HOLDFAST_TLS_CA names the file or folder of the authorities
to believe, HOLDFAST_TLS_CERT and HOLDFAST_TLS_KEY the client certificate and its key,
HOLDFAST_TLS_SERVER_NAME the name that the server's certificate is for.

Exit codes: 75 busy, 76 lock lost, 69 store unreachable, 77 store or certificate refused,
74 no answer came, 64 usage, 70 internal, 1 refused; `run` returns its command's.)";

// Takes what stands after the first `--` out of `run`'s arguments: it is the command's, whatever it
// looks like to an option parser.
std::vector<std::string> split_command(std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front() != "run") return {};
  const auto mark = std::find(arguments.begin(), arguments.end(), "--");
  if (mark == arguments.end()) return {};
  std::vector<std::string> command{mark + 1, arguments.end()};
  arguments.erase(mark, arguments.end());
  return command;
}

// What a user typed is in /proc for everybody to read. It was readable until now, so a password
// belongs into HOLDFAST_STORE, but it need not stay there for hours.
void hide_passwords(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word{argv[i]};
    if (word == "--") return;
    const auto scheme = word.find("://");
    const auto at = word.rfind('@');
    if (scheme == std::string_view::npos || at == std::string_view::npos || at < scheme) continue;
    std::fill(argv[i] + scheme + 3, argv[i] + at, 'x');
  }
}

// CLI11 would only say that a subcommand is required.
bool known(const CLI::App& app, const std::string& word) {
  if (word.starts_with('-')) return true;
  const auto named = [&word](const CLI::App* verb) { return verb->get_name() == word; };
  return !app.get_subcommands(named).empty();
}

int usage_error(const CLI::Error& problem, const std::string& verb, const invocation& job) {
  std::string text = problem.what();
  if (verb == " run" && job.command.empty() &&
      problem.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) {
    text = "what to run stands after --: holdfast run NAME... [OPTIONS] -- COMMAND [ARGS...]";
  }
  if (text.starts_with("--name is")) text.replace(0, 6, "NAME");  // as the help calls it
  say(fmt::format("{} (see holdfast{} --help)", escape(without_urls(text)), verb));
  return exit_code::usage;
}

int run_verb(const invocation& job) {
  try {
    return job.verb();
  } catch (const error& problem) {
    return say_failure(problem);
  } catch (const std::exception& problem) {
    say(fmt::format("internal error: {}", escape(problem.what())));
    return exit_code::internal;
  }
}

int main_of(int argc, char** argv) {
  std::vector<std::string> arguments{argv + std::min(argc, 1), argv + argc};
  hide_passwords(argc, argv);
  invocation job;
  if (!arguments.empty() && arguments.front() == "help") {
    arguments.erase(arguments.begin());
    arguments.emplace_back("--help");
  }
  job.command = split_command(arguments);

  CLI::App app{description, "holdfast"};
  app.formatter(std::make_shared<help_formatter>());  // before the verbs, which inherit it
  app.require_subcommand(1);
  app.set_version_flag("-V,--version", fmt::format("holdfast {}", version()));
  app.footer(examples);
  add_run(app, job);
  add_lock(app, job);
  add_renew(app, job);
  add_unlock(app, job);
  add_status(app, job);
  add_break(app, job);
  add_local(app, job);
  add_redlock(app, job);
  add_doctor(app, job);
  add_fence(app, job);

  if (arguments.size() == 1 && arguments.front() == "--man-page") {  // for the build
    return print(man_page(app, std::string{version()})) ? exit_code::ok : exit_code::io;
  }
  if (!arguments.empty() && !known(app, arguments.front())) {
    say(fmt::format("there is no command {} (see holdfast --help)",
                    in_quotes(without_urls(arguments.front()))));
    return exit_code::usage;
  }
  const std::string verb =
      arguments.empty() || arguments.front().starts_with('-') ? "" : " " + arguments.front();
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  try {
    app.parse(arguments);
    settle_store(app);
  } catch (const CLI::CallForVersion& asked) {
    return print(std::string{asked.what()} + "\n") ? exit_code::ok : exit_code::io;
  } catch (const CLI::CallForHelp&) {
    return print(app.help()) ? exit_code::ok : exit_code::io;
  } catch (const CLI::ParseError& problem) {
    return usage_error(problem, verb, job);
  }
  const int code = run_verb(job);
  if (job.dies_of.number != 0) die_of(job.dies_of);
  return code;
}

}  // namespace
}  // namespace holdfast::cli

int main(int argc, char** argv) {
  try {
    return holdfast::cli::main_of(argc, argv);
  } catch (const std::exception& problem) {
    holdfast::cli::say(problem.what());
    return holdfast::cli::exit_code::internal;
  }
}
