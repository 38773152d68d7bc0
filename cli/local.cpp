// `holdfast local`: the private server behind `local:`.
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <holdfast/local.hpp>
#include <holdfast/status.hpp>

#include "exit_code.hpp"
#include "output.hpp"
#include "say.hpp"
#include "verbs.hpp"

namespace holdfast::cli {
namespace {

constexpr const char* examples = R"(Examples:
  holdfast local status
  holdfast local stop

The server starts by itself when a lock on `local:` is first used, one per user and host, and
stays. Locks outlive it in its file: a server that is started again before a TTL is over still
knows that lock, and a client that is in use starts it again at once.)";

constexpr const char* status_examples = R"(Examples:
  holdfast local status
  holdfast local status --json | jq -r .socket

Never starts the server. Exit codes: 0 running, 1 not running, 77 its folder is not safe to use.)";

constexpr const char* stop_examples = R"(Examples:
  holdfast local stop

Exit codes: 0 stopped, or it was not running; 77 its folder is not safe to use.)";

int show_server(bool json) {
  const result<local::server_status> status = local::status();
  if (!status) return say_failure(status.error().code, status.error().message);
  std::string text;
  if (json) {
    text = nlohmann::ordered_json{{"running", status->running},
                                  {"pid", status->pid},
                                  {"socket", escape(status->socket)},
                                  {"folder", escape(status->folder)}}
               .dump() +
           "\n";
  } else if (status->running) {
    text = fmt::format("running, pid {}, socket {}\n", status->pid, escape(status->socket));
  } else {
    text = fmt::format("not running; it would use the folder {}\n", escape(status->folder));
  }
  if (!print(text)) return exit_code::io;
  return status->running ? exit_code::ok : exit_code::refused;
}

int stop_server() {
  const result<bool> stopped = local::stop();
  if (!stopped) return say_failure(stopped.error().code, stopped.error().message);
  return print(*stopped ? "stopped\n" : "not running\n") ? exit_code::ok : exit_code::io;
}

}  // namespace

void add_local(CLI::App& app, invocation& job) {
  CLI::App* verb = app.add_subcommand("local", "The private server behind local:");
  verb->require_subcommand(1);
  verb->footer(examples);

  auto json = std::make_shared<bool>(false);
  CLI::App* status = verb->add_subcommand("status", "Say whether it runs");
  status->add_flag("--json", *json, "Print JSON");
  status->footer(status_examples);
  status->final_callback([json, &job] { job.verb = [json] { return show_server(*json); }; });

  CLI::App* stop = verb->add_subcommand("stop", "Stop it; its locks stay in its file");
  stop->footer(stop_examples);
  stop->final_callback([&job] { job.verb = [] { return stop_server(); }; });
}

}  // namespace holdfast::cli
