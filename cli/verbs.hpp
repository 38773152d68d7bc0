// The verbs, one file each. add_*() describes a verb to the option parser; parsing the command line
// then leaves the chosen verb in `invocation::verb`, and main() runs it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <CLI/App.hpp>

#include "signals.hpp"

namespace holdfast::cli {

struct invocation {
  std::vector<std::string> command{};  ///< what stood after `--` (for `run`)
  std::function<int()> verb{};         ///< returns the exit code; may throw holdfast::error
  death dies_of{};                     ///< set by a verb that must not end with an exit code
};

void add_run(CLI::App& app, invocation& job);
void add_lock(CLI::App& app, invocation& job);
void add_renew(CLI::App& app, invocation& job);
void add_unlock(CLI::App& app, invocation& job);
void add_status(CLI::App& app, invocation& job);
void add_break(CLI::App& app, invocation& job);
void add_local(CLI::App& app, invocation& job);
void add_redlock(CLI::App& app, invocation& job);
void add_doctor(CLI::App& app, invocation& job);
void add_fence(CLI::App& app, invocation& job);

}  // namespace holdfast::cli
