// `holdfast run`: a command under a lock.

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

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
#include "store_url.hpp"
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
  holdfast run accounts/7 accounts/9 -- ./transfer  # both or none, in whatever order
  holdfast run backup --wait 0 --busy-exit 0 --once "$(date +%F)" --at-least 1m -- ./backup

The command sees HOLDFAST_LOCK and HOLDFAST_TOKEN, and HOLDFAST_STORE without its password; of
several locks HOLDFAST_LOCKS, which is their number, and HOLDFAST_LOCK_1, HOLDFAST_TOKEN_1 and so on
in the order of the names. It runs in a process group of its own, and the whole group is stopped
(TERM, then KILL) before the lock, or any one of them, can become another's.

Exit codes: the command's own, 128+n if signal n ended it (or the wait), 126/127 if it cannot be
run, 75 busy (see --busy-exit), 76 lock lost while it ran, 69 store unreachable, 77 store refused
the credentials, 74 no answer came, 64 usage, 70 internal.)end";

struct run_options {
  std::vector<std::string> names{};
  std::string store{"local:"};
  lock_choice choice{};
  acquire_options acquire{};
  std::chrono::milliseconds max_hold{0};
  std::chrono::milliseconds at_least{0};
  std::string once{};
  std::string fence_key{};
  bool keep_password = false;
};

// Why a lease was lost, as far as that is known.
std::string reason(const lease& lost) {
  // The lease itself may not know: perhaps it was the release that found the lock gone.
  const loss why = lost.why_lost();
  return why == loss::none ? "" : fmt::format(" ({})", to_string(why));
}

// Gives the locks back, one after the other. Stops at the first that the store does not take: the
// others are sent theirs as well, and not waited for. `on_problem` is called for each that fails.
void release(std::vector<lease>& held,
             const std::function<void(const lease&, const failure&)>& on_problem) {
  for (auto& one : held) {
    const result<void> released = one.release();
    if (released) continue;
    on_problem(one, released.error());
    if (released.error().code != errc::lease_lost) return;
  }
}

// Gives the locks back after a loss, and says which was lost.
int finish_lost(const std::string& names, std::vector<lease>& held) {
  const lease* const lost = lost_one(held);
  say(fmt::format(
      "lost the lock {}{}; the command was stopped",
      lost == nullptr ? names : in_quotes(lost->name()),
      lost == nullptr ? " (this process did not run in time to renew it)" : reason(*lost)));
  release(held, [](const auto&, const auto&) {});  // what is left of it: nobody uses it any more
  return exit_code::lease_lost;
}

// Gives the locks back and turns how it all ended into an exit code. `ended_under_them`: the store
// has said that the locks were ours still when the command had ended.
int finish(const std::string& names, std::vector<lease>& held, const command_end& end,
           bool ended_under_them) {
  if (end.survived) {
    say(fmt::format(
        "part of the command under {} cannot be killed; what it holds is left to expire", names));
    std::fflush(nullptr);
    ::_exit(end.lost ? exit_code::lease_lost : exit_code::internal);  // a destructor would free it
  }
  if (end.lost) return finish_lost(names, held);
  int code = end.status;
  release(held, [&](const lease& of, const failure& why) {
    if (end.guardian_died) return;
    if (why.code != errc::lease_lost) {
      // The work was protected to its end: its status counts.
      say(fmt::format("the command ended, but {} could not be given back: {}", names,
                      escape(why.message)));
      return;
    }
    if (ended_under_them) {
      say(fmt::format("the command ended, but {} could not be kept{}", in_quotes(of.name()),
                      reason(of)));
      return;
    }
    say(
        fmt::format("lost the lock {}{} before the command ended (exit status {}); "
                    "another may have run meanwhile",
                    in_quotes(of.name()), reason(of), end.status));
    code = exit_code::lease_lost;
  });
  if (!end.guardian_died) return code;
  say(fmt::format("the guardian of {} was killed, and the command with it", names));
  return exit_code::internal;
}

// The TTL must leave time to renew and to tell the guardian: a third of it, and that is asked for
// in steps of twenty milliseconds.
constexpr std::chrono::milliseconds run_ttl_min{100};

// What a script that runs us must see if the keyboard ended the command.
death death_of(const command_end& end) {
  if (!is_from_keyboard(end.signal) || (!end.had_terminal && !end.was_told)) return {};
  return {end.signal, end.had_terminal};
}

void refuse_what_does_not_combine(std::vector<std::string> names, const lock_choice& choice) {
  if (names.size() > locks_at_once_max) {
    throw CLI::ValidationError{
        "run", fmt::format("takes {} locks at once at the most", locks_at_once_max)};
  }
  if (names.size() > 1 && choice.what != lock_choice::kind::mutex) {
    throw CLI::ValidationError{
        "run",
        "takes several locks at once only where each has one holder: not with --shared, "
        "--writer, --permits or --format redisson"};
  }
  // It would be shown to all who look at locks, and the lock would be on another store.
  if (names.size() > 1 && std::any_of(names.begin(), names.end(), looks_like_store)) {
    throw CLI::ValidationError{
        "run", "was given a store's URL as the name of a lock: it belongs behind --store"};
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) {
    throw CLI::ValidationError{"run", fmt::format("was given {} twice", in_quotes(*twice))};
  }
}

int run(const run_options& options, invocation& job) {
  const inherited_signals inherited;
  ::signal(SIGCHLD, SIG_DFL);  // if it was ignored we could not wait for anything
  signal_queue signals{
      inherited, {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT, SIGTSTP}};
  terminal tty;
  guard_link guard{
      {job.command, options.names, options.choice, options.store, options.keep_password},
      inherited,
      tty};
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGTTOU, SIG_IGN);

  const hold_timing timing{options.acquire.ttl};
  client store{options.store, settings_for(options.acquire)};
  lock_set locks{store,
                 options.names,
                 options.choice,
                 {.ttl = timing.ttl,
                  .margin = timing.margin,
                  .max_hold = options.max_hold,
                  .label = options.acquire.label}};
  if (waits_for_itself(locks)) return exit_code::usage;
  acquisition got = acquire(locks, options.acquire, signals);
  if (got.interrupted_by != 0) {
    if (is_from_keyboard(got.interrupted_by) && tty.ours()) job.dies_of = {got.interrupted_by};
    return exit_code::signal_base + got.interrupted_by;
  }
  if (got.leases.empty()) {
    say_busy(locks);
    return options.acquire.busy_exit;
  }
  const auto acquired_at = std::chrono::steady_clock::now();
  done_mark mark{store, options.names.front(), options.once};
  if (mark.is_done(options.acquire.quiet)) return exit_code::ok;
  if (!options.fence_key.empty()) {
    const auto counted = got.leases.front().counted_token(options.fence_key);
    if (!counted) return say_failure(counted.error().code, counted.error().message);
    guard.tell_token(*counted);
  }
  const command_end end = supervise(got.leases, timing, guard, signals, tty);
  guard.dismiss();
  const bool was_protected = !end.lost && !end.survived && !end.guardian_died;
  // That one was deleted or taken is not noticed before it is renewed.
  const bool more_to_do = !options.once.empty() || options.at_least.count() > 0;
  const bool ended_under_them = was_protected && more_to_do &&
                                std::all_of(got.leases.begin(), got.leases.end(),
                                            [](lease& one) { return one.renew().has_value(); });
  if (was_protected && end.status == 0 && lost_one(got.leases) == nullptr) {
    mark.set(options.acquire.label);
  }
  if (was_protected && end.signal == 0) {
    hold_until(got.leases, acquired_at + options.at_least, signals, end.told_to_end);
  }
  const int code = finish(locks.names_in_quotes(), got.leases, end, ended_under_them);
  if (code == end.status) job.dies_of = death_of(end);
  return code;
}

}  // namespace

void add_run(CLI::App& app, invocation& job) {
  auto options = std::make_shared<run_options>();
  CLI::App* verb = app.add_subcommand("run", "Run a command while holding a lock");
  add_names(*verb, options->names);
  add_store(*verb, options->store);
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
  verb->add_option("--fence-key", options->fence_key,
                   "Count HOLDFAST_TOKEN 1, 2, 3 on this key of the store, as other clients do "
                   "(bsm/redislock's FenceKey)")
      ->type_name("KEY");
  verb->add_flag("--keep-password", options->keep_password,
                 "Leave the password in the command's HOLDFAST_STORE");
  verb->footer(examples);
  verb->final_callback([options, &job] {
    if (job.command.empty()) {
      throw CLI::ValidationError{"run",
                                 "needs a command after --: holdfast run NAME... -- COMMAND"};
    }
    refuse_what_does_not_combine(options->names, options->choice);
    if (!options->fence_key.empty() &&
        (options->names.size() > 1 || options->choice.what != lock_choice::kind::mutex)) {
      throw CLI::ValidationError{"--fence-key", "is for one lock that has one holder"};
    }
    if (options->acquire.ttl < run_ttl_min) {
      throw CLI::ValidationError{
          "--ttl", "is too short to renew the lock in time: `run` needs 100ms at the least"};
    }
    if (!options->once.empty() && options->store.starts_with("redlock:")) {
      throw CLI::ValidationError{
          "--once",
          "needs a mark that stays for 24 h, and a quorum keeps nothing for longer than "
          "max_ttl: use --at-least, or a store of one server"};
    }
    job.verb = [options, &job] { return run(*options, job); };
  });
}

}  // namespace holdfast::cli
