// The program `holder`, from the test's side.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include <holdfast/token.hpp>

#include "core/types.hpp"
#include "support/built.hpp"
#include "support/process.hpp"

namespace holdfast::test {

// A process that holds a lock (see programs/holder.cpp). Not thread-safe.
class holder_process {
 public:
  // Returns once it holds the lock; throws with what it said if it does not get it.
  holder_process(const std::string& url, const std::string& name, std::chrono::milliseconds ttl)
      : holder_process{url, name, ttl, environment{}} {
    await_held();
  }
  struct part {
    explicit part(std::string which) : what{std::move(which)} {}
    std::string what;
  };
  // The same for a reader ("shared") or for permits ("2/4") instead of a mutex.
  holder_process(const std::string& url, const std::string& name, std::chrono::milliseconds ttl,
                 const part& of)
      : child_{process_options{.args = {HOLDFAST_TEST_PROGRAMS "/holder", url, name,
                                        std::to_string(ttl.count()), of.what}}} {
    await_held();
  }
  // Returns at once.
  using environment = std::map<std::string, std::optional<std::string>>;
  holder_process(const std::string& url, const std::string& name, std::chrono::milliseconds ttl,
                 environment env)
      : child_{process_options{
            .args = {HOLDFAST_TEST_PROGRAMS "/holder", url, name, std::to_string(ttl.count())},
            .env = std::move(env)}} {}

  void await_held() {
    if (!child_.wait_for_output("held ")) {
      throw std::runtime_error{"holder: " + child_.stdout_text() + child_.stderr_text()};
    }
  }

  [[nodiscard]] child_process& child() noexcept { return child_; }
  [[nodiscard]] fencing_token token() { return fencing_token{std::stoull(word("held", 1))}; }
  // Before it asked for the lock.
  [[nodiscard]] core::time_point asked_at() { return stamp("asking"); }

  void tell(const std::string& command) { child_.write_stdin(command + "\n"); }
  // What it has said so far on a line that starts so; empty if nothing.
  [[nodiscard]] std::string said(const std::string& start) { return line(start); }
  // Waits for a line that starts so, complete; empty if none came. "query lost 123456"
  [[nodiscard]] std::string hear(const std::string& start) {
    std::string found;
    (void)eventually([&] {
      (void)child_.wait_for_output(start, std::chrono::milliseconds{0});
      found = line(start);
      return !found.empty();
    });
    return found;
  }
  // The stamp at the end of a line that was heard.
  [[nodiscard]] core::time_point stamp(const std::string& start) {
    const std::string text = hear(start);
    const auto space = text.rfind(' ');
    if (space == std::string::npos) throw std::runtime_error{"holder never said " + start};
    return core::time_point{core::duration{std::stoll(text.substr(space + 1))}};
  }

 private:
  [[nodiscard]] std::string line(const std::string& start) {
    const std::string& all = child_.stdout_text();
    std::istringstream lines{all.substr(0, all.rfind('\n') + 1)};
    for (std::string each; std::getline(lines, each);) {
      if (each.starts_with(start)) return each;
    }
    return {};
  }
  [[nodiscard]] std::string word(const std::string& start, int which) {
    std::istringstream words{hear(start)};
    std::string each;
    for (int i = 0; i <= which; ++i)
      words >> each;
    return each;
  }

  child_process child_;
};

}  // namespace holdfast::test
