// What happened, for a person: kept only when a seed is replayed.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "sim/timeline.hpp"

namespace holdfast::sim {

class trace_log {
 public:
  explicit trace_log(const timeline& time) : time_{time} {}
  void keep() noexcept { kept_ = true; }
  // Ask before putting a line together: it costs more than the simulation does.
  [[nodiscard]] bool wanted() const noexcept { return kept_; }
  void line(const std::string& who, const std::string& what) {
    char when[32];
    std::snprintf(when, sizeof when, "%13.6f ms  ",
                  static_cast<double>(time_.now()) / static_cast<double>(millisecond));
    lines_.push_back(when + who + std::string(who.size() < 8 ? 8 - who.size() : 0, ' ') + what);
  }
  [[nodiscard]] const std::vector<std::string>& lines() const noexcept { return lines_; }

 private:
  const timeline& time_;
  bool kept_ = false;
  std::vector<std::string> lines_;
};

// An id as a trace shows it.
[[nodiscard]] inline std::string brief(std::string_view id) { return std::string{id.substr(0, 6)}; }

}  // namespace holdfast::sim
