// `holdfast run`: a command under a lock.

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <holdfast/client.hpp>

#include "acquire.hpp"
#include "common_options.hpp"
#include "duration.hpp"
#include "guard_link.hpp"
#include "once.hpp"
#include "say.hpp"
#include "signals.hpp"
#include "supervise.hpp"
#include "verbs.hpp"

namespace holdfast::cli {
namespace {

constexpr const char* examples = R"end(Examples:
  holdfast run nightly-report -- ./report.sh
  holdfast run deploy --wait 0 --label "$USER" -- make deploy || echo "exit $?"
  holdfast run import --ttl 10s --max-hold 1h -- ./import --all
  HOLDFAST_STORE=redis://:secret@db1 holdfast run migrate -- ./migrate
  holdfast run orders --format redisson -- ./ship  # the lock that Java's getLock("orders") is
  holdfast run config --format redisson-rw --shared -- ./show  # getReadWriteLock("config")
  holdfast run encoders --permits 1/4 -- ./encode video.mkv
  holdfast run backup --wait 0 --busy-exit 0 --once "$(date +%F)" --at-least 1m -- ./backup

The command sees HOLDFAST_LOCK and HOLDFAST_TOKEN, and HOLDFAST_STORE without its password. It runs
in a process group of its own, and the whole group is stopped (TERM, then KILL) before the lock can
become another's.

Exit codes: the command's own, 128+n if signal n ended it (or the wait), 126/127 if it cannot be
run, 75 busy (see --busy-exit), 76 lock lost while it ran, 69 store unreachable, 77 store refused
the credentials, 74 no answer came, 64 usage, 70 internal.)end";

struct run_options {
  target_options target{};
  lock_choice choice{};
  acquire_options acquire{};
  std::chrono::milliseconds max_hold{0};
  std::chrono::milliseconds at_least{0};
  std::string once{};
  bool keep_password = false;
};

// Gives the lock back and turns how it all ended into an exit code. `ended_under_it`: the store has
// said that the lock was ours still when the command had ended.
int finish(lease& held, const command_end& end, bool ended_under_it) {
  const std::string name = in_quotes(held.name());
  if (end.survived) {
    say(fmt::format("part of the command under {} cannot be killed; the lock is left to expire",
                    name));
    std::fflush(nullptr);
    ::_exit(end.lost ? exit_code::lease_lost : exit_code::internal);  // a destructor would free it
  }
  if (end.lost) {
    const std::string_view why =
        held.held() ? "this process did not run in time to renew it" : to_string(held.why_lost());
    static_cast<void>(held.release());  // what is left of it: nobody uses it any more
    say(fmt::format("lost the lock {} ({}); the command was stopped", name, why));
    return exit_code::lease_lost;
  }
  const result<void> released = held.release();
  if (end.guardian_died) {
    say(fmt::format("the guardian of {} was killed, and the command with it", name));
    return exit_code::internal;
  }
  if (released) return end.status;
  if (released.error().code == errc::lease_lost) {
    // The lease itself may not know: it was the release that found the lock gone.
    const loss why = held.why_lost();
    const std::string known = why == loss::none ? "" : fmt::format(" ({})", to_string(why));
    if (ended_under_it) {
      say(fmt::format("the command ended, but {} could not be kept{}", name, known));
      return end.status;
    }
    say(
        fmt::format("lost the lock {}{} before the command ended (exit status {}); "
                    "another may have run meanwhile",
                    name, known, end.status));
    return exit_code::lease_lost;
  }
  // The work was protected to its end: its status counts.
  say(fmt::format("the command ended, but {} could not be given back: {}", name,
                  escape(released.error().message)));
  return end.status;
}

// The TTL must leave time to renew and to tell the guardian: a third of it, and that is asked for
// in steps of twenty milliseconds.
constexpr std::chrono::milliseconds run_ttl_min{100};

// What a script that runs us must see if the keyboard ended the command.
death death_of(const command_end& end) {
  if (!is_from_keyboard(end.signal) || (!end.had_terminal && !end.was_told)) return {};
  return {end.signal, end.had_terminal};
}

int run(const run_options& options, invocation& job) {
  const inherited_signals inherited;
  ::signal(SIGCHLD, SIG_DFL);  // if it was ignored we could not wait for anything
  signal_queue signals{
      inherited, {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT, SIGTSTP}};
  terminal tty;
  guard_link guard{{job.command, options.target.name, options.choice, options.target.store,
                    options.keep_password},
                   inherited,
                   tty};
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGTTOU, SIG_IGN);

  const hold_timing timing{options.acquire.ttl};
  client store{options.target.store, settings_for(options.acquire)};
  named_lock lock{store,
                  options.target.name,
                  options.choice,
                  {.ttl = timing.ttl,
                   .margin = timing.margin,
                   .max_hold = options.max_hold,
                   .label = options.acquire.label}};
  if (waits_for_itself(lock)) return exit_code::usage;
  acquisition got = acquire(lock, options.acquire, signals);
  if (got.interrupted_by != 0) {
    if (is_from_keyboard(got.interrupted_by) && tty.ours()) job.dies_of = {got.interrupted_by};
    return exit_code::signal_base + got.interrupted_by;
  }
  if (!got.lease) {
    say_busy(lock);
    return options.acquire.busy_exit;
  }
  const auto acquired_at = std::chrono::steady_clock::now();
  done_mark mark{store, options.target.name, options.once};
  if (mark.is_done(options.acquire.quiet)) return exit_code::ok;
  const command_end end = supervise(*got.lease, timing, guard, signals, tty);
  guard.dismiss();
  const bool was_protected = !end.lost && !end.survived && !end.guardian_died;
  // That it was deleted or taken is not noticed before it is renewed.
  const bool more_to_do = !options.once.empty() || options.at_least.count() > 0;
  const bool ended_under_it = was_protected && more_to_do && got.lease->renew();
  if (was_protected && end.status == 0 && got.lease->held()) mark.set(options.acquire.label);
  if (was_protected && end.signal == 0) {
    hold_until(*got.lease, acquired_at + options.at_least, signals);
  }
  const int code = finish(*got.lease, end, ended_under_it);
  if (code == end.status) job.dies_of = death_of(end);
  return code;
}

}  // namespace

void add_run(CLI::App& app, invocation& job) {
  auto options = std::make_shared<run_options>();
  CLI::App* verb = app.add_subcommand("run", "Run a command while holding a lock");
  add_name(*verb, options->target);
  add_lock_choice(*verb, options->choice);
  add_acquire(*verb, options->acquire);
  verb->add_option_function<std::string>(
          "--max-hold",
          [options](const std::string& text) {
            options->max_hold = parse_duration("--max-hold", text);
          },
          "Stop the command when it has held the lock for so long")
      ->type_name("DURATION");
  verb->add_option_function<std::string>(
          "--at-least",
          [options](const std::string& text) {
            options->at_least = parse_duration("--at-least", text);
          },
          "Keep the lock for at least so long, though the command ends sooner")
      ->type_name("DURATION");
  verb->add_option("--once", options->once,
                   "Do nothing, and exit 0, if a run with this KEY has succeeded in the last 24 h")
      ->type_name("KEY")
      ->check([](const std::string& key) {
        return key.empty() ? std::string{"KEY is empty: say which run this is, such as $(date +%F)"}
                           : std::string{};
      });
  verb->add_flag("--keep-password", options->keep_password,
                 "Leave the password in the command's HOLDFAST_STORE");
  verb->footer(examples);
  verb->final_callback([options, &job] {
    if (job.command.empty()) {
      throw CLI::ValidationError{"run", "needs a command after --: holdfast run NAME -- COMMAND"};
    }
    if (options->acquire.ttl < run_ttl_min) {
      throw CLI::ValidationError{
          "--ttl", "is too short to renew the lock in time: `run` needs 100ms at the least"};
    }
    if (!options->once.empty() && options->target.store.starts_with("redlock:")) {
      throw CLI::ValidationError{
          "--once",
          "needs a mark that stays for 24 h, and a quorum keeps nothing for longer than "
          "max_ttl: use --at-least, or a store of one server"};
    }
    job.verb = [options, &job] { return run(*options, job); };
  });
}

}  // namespace holdfast::cli
