// `holdfast unlock`: gives back a lock taken by `holdfast lock`.
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <holdfast/client.hpp>

#include "common_options.hpp"
#include "say.hpp"
#include "verbs.hpp"

namespace holdfast::cli {
namespace {

constexpr const char* examples = R"(Examples:
  holdfast unlock backup                           # owner from `holdfast lock`'s output
  holdfast unlock backup --owner "$owner"
  trap 'holdfast unlock backup' EXIT

To free another's lock see `holdfast break`.

Exit codes: 0 given back, 76 the lock had ended before (what ran since then was not protected),
69 store unreachable, 77 store refused the credentials, 74 no answer came: it is free after its
TTL at the latest, 64 usage.)";

struct unlock_options {
  target_options target{};
  ticket_options ticket{};
};

int unlock(const unlock_options& options) {
  client store{options.target.store};
  mutex lock = store.mutex(options.target.name, {.renew = false});
  lease held = lock.adopt({.name = options.target.name,
                           .owner = options.ticket.owner,
                           .token = fencing_token{options.ticket.token}});
  const result<void> released = held.release();
  return released ? exit_code::ok : say_failure(released.error().code, released.error().message);
}

}  // namespace

void add_unlock(CLI::App& app, invocation& job) {
  auto options = std::make_shared<unlock_options>();
  CLI::App* verb = app.add_subcommand("unlock", "Give back a lock taken by `holdfast lock`");
  add_name(*verb, options->target);
  add_owner(*verb, options->ticket.owner)->envname("HOLDFAST_OWNER")->required();
  add_token(*verb, options->ticket.token)->envname("HOLDFAST_TOKEN");
  verb->footer(examples);
  verb->final_callback([options, &job] { job.verb = [options] { return unlock(*options); }; });
}

}  // namespace holdfast::cli
