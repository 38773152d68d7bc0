// `holdfast break`: takes a lock from a holder that will not give it back.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <holdfast/client.hpp>

#include "common_options.hpp"
#include "duration.hpp"
#include "say.hpp"
#include "show.hpp"
#include "verbs.hpp"

namespace holdfast::cli {
namespace {

constexpr const char* examples = R"(Examples:
  holdfast status deploy                           # shows the token
  holdfast break deploy --token 1763197262000000
  holdfast break deploy --token 1763197262000000 --graceful   # asks, and waits for it
  holdfast break deploy --token 1763197262000000 --graceful --margin 10s
  holdfast break encoders --token 1763197262000001   # one holder of several
  holdfast break orders --format redisson          # what Java's forceUnlock() does

The token says which hold you mean: if the lock has changed hands since you looked, nothing is
done. Of a lock that several hold, the holder with that token loses its share. With --format it is
a lock of Redisson that is taken from its holder: there is no token to tell holders apart. The
holder hears of it a round trip later, or at its next renewal, up to a third of its TTL later, if it
is on a quorum or holds a share; until then two may believe they hold the lock.

With --graceful the holder is asked to stop: its lease is extended no more, and `holdfast run` stops
its command. Nobody gets the lock before the holder gives it back, or its TTL ends: two never
believe. --margin takes the lock by force once it has been waited for so long.

Exit codes: 0 broken, 1 not held (with that token), 69 store unreachable, 77 store refused the
credentials, 74 no answer came: it may have been broken, 64 usage.)";

struct break_options {
  target_options target{};
  std::uint64_t token = 0;
  lock_choice choice{};
  bool graceful = false;
  std::optional<std::chrono::milliseconds> margin{};
};

// How often it is looked whether the holder has given the lock back.
constexpr std::chrono::milliseconds look_pause{50};

// Returns when nobody holds the lock with this token any more, or the margin is over: false.
bool await_return(client& store, const break_options& options) {
  using clock = std::chrono::steady_clock;
  const fencing_token token{options.token};
  auto left = store.recall_lock(options.target.name, token);
  if (left == std::chrono::milliseconds::max() && !options.margin) {
    throw error{
        failure{errc::invalid_argument,
                "the lock has no TTL, so it would be waited for without end: give --margin"}};
  }
  // The clock tells no more than when to give up, and `left` is bounded by the longest TTL else.
  const auto give_up = options.margin ? clock::now() + *options.margin : clock::time_point::max();
  for (;;) {
    const auto now = clock::now();
    if (now >= give_up) return false;
    const auto rest = std::chrono::ceil<std::chrono::milliseconds>(give_up - now);
    std::this_thread::sleep_for(std::min({look_pause, rest, left}));
    try {
      left = store.recall_lock(options.target.name, token);
    } catch (const error& problem) {
      if (problem.code() == make_error_code(errc::not_held)) return true;
      throw;
    }
  }
}

int break_it(const break_options& options) {
  client store{options.target.store};
  named_lock lock{store, options.target.name, options.choice};
  try {
    if (options.graceful && await_return(store, options)) return exit_code::ok;
    if (lock.take_away(fencing_token{options.token})) return exit_code::ok;
  } catch (const error& problem) {
    if (const auto hint = other_format_hint(problem, options.choice); !hint.empty()) {
      return say_failure(errc::wrong_type, problem.what() + hint);
    }
    if (problem.code() != make_error_code(errc::not_held)) throw;
  }
  const lock_status now = lock.status();
  const std::string name = in_quotes(options.target.name);
  if (now.kind == lock_status::form::latch) {
    say(fmt::format("{} is {}; nothing was done", name, describe(now)));
  } else if (!now.holder) {
    say(fmt::format("{} is free; nothing was done", name));
  } else if (now.holder->foreign) {
    say(fmt::format("{} has no token, nothing was done: {}", name, describe(now)));
  } else if (now.kind != lock_status::form::mutex) {
    say(fmt::format("{} has no holder with token {}, nothing was done: {}", name, options.token,
                    describe(now)));
  } else {
    say(fmt::format("{} has token {}, not {}, nothing was done: {}", name,
                    now.holder->token.value(), options.token, describe(now)));
  }
  return exit_code::refused;
}

}  // namespace

void add_break(CLI::App& app, invocation& job) {
  auto options = std::make_shared<break_options>();
  CLI::App* verb = app.add_subcommand("break", "Take a lock away from its holder");
  add_name(*verb, options->target);
  CLI::Option* const token = add_token(*verb, options->token);
  CLI::Option* const format = add_format(*verb, options->choice);
  format->excludes(token);
  CLI::Option* const graceful =
      verb->add_flag("--graceful", options->graceful, "Ask the holder to stop, and wait for that");
  graceful->excludes(format);
  verb->add_option_function<std::string>(
          "--margin",
          [options](const std::string& text) {
            options->margin = parse_duration("--margin", text);
          },
          "With --graceful: how long to wait before the lock is taken by force")
      ->needs(graceful)
      ->type_name("DURATION");
  verb->footer(examples);
  verb->final_callback([options, &job] {
    if (options->token == 0 && options->choice.what == lock_choice::kind::mutex) {
      throw CLI::ValidationError{
          "--token", "is required: it says which hold you mean, and `holdfast status` shows it"};
    }
    job.verb = [options] { return break_it(*options); };
  });
}

}  // namespace holdfast::cli
