// `holdfast fence`: what a resource runs to turn overtaken holders away.
#include <string_view>

#include <CLI/CLI.hpp>

#include <holdfast/fence.hpp>

#include "exit_code.hpp"
#include "output.hpp"
#include "verbs.hpp"

namespace holdfast::cli {
namespace {

constexpr const char* examples = R"(Examples:
  holdfast fence redis > fence.lua
  holdfast fence postgresql | psql --set ON_ERROR_STOP=1 shop

A lock alone cannot stop a holder that was paused for too long: the resource has to. What these
print lets it refuse each token that is lower than one it has seen. Show it the token before the
first read. The head of each text says how.)";

constexpr const char* redis_examples = R"(Examples:
  holdfast fence redis > fence.lua
  redis-cli --eval fence.lua fence:orders , "$HOLDFAST_TOKEN"
  redis-cli --eval fence.lua fence:orders orders , "$HOLDFAST_TOKEN" 3 SET orders new

The second line is for before the first read, the third for each write, inside `holdfast run`.)";

constexpr const char* postgresql_examples = R"help(Examples:
  holdfast fence postgresql | psql --set ON_ERROR_STOP=1 shop
  psql -d shop -c "select holdfast.admit('orders', $HOLDFAST_TOKEN)"

The first line installs a schema `holdfast`; run it again after an update of Holdfast.)help";

void add_text(CLI::App& fence, invocation& job, const char* name, const char* about,
              const char* footer, std::string_view text) {
  CLI::App* verb = fence.add_subcommand(name, about);
  verb->footer(footer);
  verb->final_callback(
      [text, &job] { job.verb = [text] { return print(text) ? exit_code::ok : exit_code::io; }; });
}

}  // namespace

void add_fence(CLI::App& app, invocation& job) {
  CLI::App* verb = app.add_subcommand("fence", "Print what a resource runs to check tokens");
  verb->require_subcommand(1);
  verb->footer(examples);
  add_text(*verb, job, "redis", "A script for data in Redis", redis_examples,
           fence::redis_script());
  add_text(*verb, job, "postgresql", "SQL for data in PostgreSQL", postgresql_examples,
           fence::postgresql_schema());
}

}  // namespace holdfast::cli
