// What the tests of the command share: a Redis of their own and the binary, run as a person would.
#pragma once

#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/built.hpp"
#include "support/process.hpp"
#include "support/redis_server.hpp"

namespace holdfast::test {

// Options for `holdfast ARGS…` on that store, as if no other run of it was around.
[[nodiscard]] inline process_options holdfast_on(const std::string& store,
                                                 std::vector<std::string> args) {
  args.insert(args.begin(), HOLDFAST_BINARY);
  return {.args = std::move(args),
          .env = {{"HOLDFAST_STORE", store},
                  {"HOLDFAST_OWNER", std::nullopt},
                  {"HOLDFAST_TOKEN", std::nullopt},
                  {"HOLDFAST_LOCK", std::nullopt},
                  {"HOLDFAST_HELD", std::nullopt}}};
}

class cli_test : public testing::Test {
 protected:
  // On this test's store.
  [[nodiscard]] process_options holdfast(std::vector<std::string> args) const {
    return holdfast_on(server_.url(), std::move(args));
  }

  // Runs `holdfast ARGS…` to its end.
  [[nodiscard]] run_result run(std::vector<std::string> args) const {
    return run_program(holdfast(std::move(args)));
  }

  // Milliseconds the store still keeps the lock's key; negative: not there.
  [[nodiscard]] long pttl(const std::string& name) const {
    return std::stol(server_.command({"PTTL", name}));
  }

  [[nodiscard]] bool is_free(const std::string& name) const {
    return server_.command({"EXISTS", name}) == "0";
  }

  redis_server server_;
};

inline constexpr exit_status exited(int code) { return {false, code}; }
inline constexpr exit_status died_of(int number) { return {true, number}; }

// Waits for a line `ready NUMBER…` and returns its numbers.
inline std::vector<pid_t> ready_numbers(child_process& child) {
  if (!child.wait_for_output("ready ") || !child.wait_for_output(" go\n")) {
    ADD_FAILURE() << "not ready; stdout: " << child.stdout_text()
                  << "\nstderr: " << child.stderr_text();
    return {};
  }
  const std::string& text = child.stdout_text();
  std::istringstream rest{text.substr(text.find("ready ") + 6)};
  std::vector<pid_t> numbers;
  for (pid_t number = 0; rest >> number;)
    numbers.push_back(number);
  return numbers;
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace holdfast::test
