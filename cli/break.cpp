// `holdfast break`: takes a lock from a holder that will not give it back.
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <holdfast/client.hpp>

#include "common_options.hpp"
#include "say.hpp"
#include "show.hpp"
#include "verbs.hpp"

namespace holdfast::cli {
namespace {

constexpr const char* examples = R"(Examples:
  holdfast status deploy                           # shows the token
  holdfast break deploy --token 1763197262000000

The token says which hold you mean: if the lock has changed hands since you looked, nothing is
done. The holder learns of it at its next renewal, up to a third of its TTL later; until then two
may believe they hold the lock.

Exit codes: 0 broken, 1 not held with that token, 69 store unreachable, 77 store refused the
credentials, 74 no answer came: it may have been broken, 64 usage.)";

struct break_options {
  target_options target{};
  std::uint64_t token = 0;
};

int break_it(const break_options& options) {
  client store{options.target.store};
  try {
    store.break_lock(options.target.name, fencing_token{options.token});
    return exit_code::ok;
  } catch (const error& problem) {
    if (problem.code() != make_error_code(errc::not_held)) throw;
  }
  const lock_status now = store.status(options.target.name);
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
  add_token(*verb, options->token)->required();
  verb->footer(examples);
  verb->final_callback([options, &job] { job.verb = [options] { return break_it(*options); }; });
}

}  // namespace holdfast::cli
