// `holdfast lock`: a lock that outlives the command, for shell scripts.
#include <csignal>
#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <holdfast/client.hpp>

#include "acquire.hpp"
#include "common_options.hpp"
#include "output.hpp"
#include "say.hpp"
#include "terminal.hpp"
#include "verbs.hpp"

namespace holdfast::cli {
namespace {

constexpr const char* examples = R"(Examples:
  out=$(holdfast lock backup --ttl 60s) || exit    # the assignment keeps the exit status
  eval "$out"                                      # HOLDFAST_LOCK, HOLDFAST_OWNER, HOLDFAST_TOKEN
  ./copy-a && holdfast renew backup --ttl 60s && ./copy-b
  holdfast unlock backup

  holdfast lock backup --ttl 5m --wait 10s --json

Nothing renews this lock: it is free again when the TTL is over, whatever the script is doing.
Prefer `holdfast run`, which renews it and stops the command in time.
A process that knows the owner can release the lock.

Exit codes: 0 locked, 75 busy (see --busy-exit), 128+n interrupted by signal n, 69 store
unreachable, 77 store refused the credentials, 74 no answer came or output failed, 64 usage.)";

struct lock_verb_options {
  target_options target{};
  acquire_options acquire{};
  bool json = false;
};

// In single quotes nothing is special to a shell but the single quote.
std::string shell_quoted(std::string_view text) {
  std::string word = "'";
  for (const char c : text) {
    if (c == '\'') {
      word += R"('\'')";
    } else {
      word += c;
    }
  }
  return word + "'";
}

std::string show(const lease& held, bool json) {
  if (json) {
    const nlohmann::ordered_json shown{
        {"name", escape(held.name())},
        {"owner", held.owner()},
        {"token", held.token().value()},
        {"remaining_ms",
         std::chrono::duration_cast<std::chrono::milliseconds>(held.remaining()).count()}};
    return shown.dump() + "\n";
  }
  return fmt::format(
      "export HOLDFAST_LOCK={}\nexport HOLDFAST_OWNER={}\nexport HOLDFAST_TOKEN={}\n",
      shell_quoted(held.name()), held.owner(), held.token().value());
}

int lock_it(const lock_verb_options& options, invocation& job) {
  signal_queue signals{inherited_signals{}, {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP}};
  ::signal(SIGPIPE, SIG_IGN);  // a reader that is gone is an error to clean up after
  const terminal tty;
  client store{options.target.store, settings_for(options.acquire)};
  lock_set lock{store,
                {options.target.name},
                lock_choice{},
                {.ttl = options.acquire.ttl, .renew = false, .label = options.acquire.label}};
  if (waits_for_itself(lock)) return exit_code::usage;
  acquisition got = acquire(lock, options.acquire, signals);
  if (got.interrupted_by != 0) {
    if (is_from_keyboard(got.interrupted_by) && tty.ours()) job.dies_of = {got.interrupted_by};
    return exit_code::signal_base + got.interrupted_by;
  }
  if (got.leases.empty()) {
    say_busy(lock);
    return options.acquire.busy_exit;
  }
  lease& held = got.leases.front();
  if (!print(show(held, options.json))) {
    // Nobody could ever release it.
    static_cast<void>(held.release());
    return exit_code::io;
  }
  static_cast<void>(held.detach());
  return exit_code::ok;
}

}  // namespace

void add_lock(CLI::App& app, invocation& job) {
  auto options = std::make_shared<lock_verb_options>();
  CLI::App* verb = app.add_subcommand("lock", "Take a lock and keep it for a TTL, for scripts");
  add_name(*verb, options->target);
  add_acquire(*verb, options->acquire);
  verb->add_flag("--json", options->json, "Print JSON instead of shell assignments");
  verb->footer(examples);
  verb->final_callback(
      [options, &job] { job.verb = [options, &job] { return lock_it(*options, job); }; });
}

}  // namespace holdfast::cli
