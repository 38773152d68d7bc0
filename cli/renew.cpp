// `holdfast renew`: more time for a lock taken by `holdfast lock`.
#include <memory>

#include <CLI/CLI.hpp>

#include <holdfast/client.hpp>

#include "common_options.hpp"
#include "verbs.hpp"

namespace holdfast::cli {
namespace {

constexpr const char* examples = R"(Examples:
  holdfast renew backup --ttl 60s                  # owner and token from `holdfast lock`'s output
  holdfast renew backup --owner "$owner" --token "$token" --ttl 5m

The lock is kept for --ttl from now on. One that has ended is not taken again.

Exit codes: 0 renewed, 76 the lock had ended (stop: another may hold it), 69 store
unreachable, 77 store refused the credentials, 74 no answer came: it may have been renewed,
64 usage.)";

struct renew_options {
  target_options target{};
  ticket_options ticket{};
  std::chrono::milliseconds ttl{30'000};
};

int renew(const renew_options& options) {
  client store{options.target.store};
  mutex lock = store.mutex(options.target.name, {.ttl = options.ttl, .renew = false});
  lease held = lock.adopt({.name = options.target.name,
                           .owner = options.ticket.owner,
                           .token = fencing_token{options.ticket.token}});  // extends it
  static_cast<void>(held.detach());
  return exit_code::ok;
}

}  // namespace

void add_renew(CLI::App& app, invocation& job) {
  auto options = std::make_shared<renew_options>();
  CLI::App* verb = app.add_subcommand("renew", "Extend a lock taken by `holdfast lock`");
  add_name(*verb, options->target);
  add_owner(*verb, options->ticket.owner)->envname("HOLDFAST_OWNER")->required();
  add_token(*verb, options->ticket.token)->envname("HOLDFAST_TOKEN")->required();
  add_ttl(*verb, options->ttl);
  verb->footer(examples);
  verb->final_callback([options, &job] { job.verb = [options] { return renew(*options); }; });
}

}  // namespace holdfast::cli
