// A resource that checks fencing tokens, shared by processes that may be killed at any moment, and
// that remembers who came, in the order in which they came.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "runtime/fd.hpp"

namespace holdfast::test {

// One line of its history. As stored: plain numbers.
struct visit {
  enum class kind : std::uint32_t {
    entered,  // with a lease: the first thing a holder does
    left,     // the last thing it does before it gives the lock back
    gave_up,  // waited and did not get it; shows no token
  };
  kind what = kind::gave_up;
  std::uint32_t accepted = 0;  // by the gate
  std::uint32_t held = 0;      // what the lease said at `at`, or later
  std::uint32_t process = 0;
  std::uint64_t token = 0;
  core::time_point asked_at{};      // when its acquisition began
  core::time_point at{};            // before it came here
  core::time_point relied_until{};  // until when the lease would have lasted, as seen at `at`
};

// Not thread-safe: an object for each thread, with which it excludes all others. A visitor that is
// killed leaves the file usable; one that is paused inside holds up the others.
class fenced_file {
 public:
  explicit fenced_file(const std::string& path);

  // Shows the token, if it has one, and writes the visit down. What the gate said.
  bool accept(visit one);

  [[nodiscard]] static std::vector<visit> history(const std::string& path);

 private:
  runtime::unique_fd fd_;
};

}  // namespace holdfast::test
