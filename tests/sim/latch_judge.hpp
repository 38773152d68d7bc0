// What the promises of a latch come to: it is open once every part has counted, and not before.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/judge.hpp"

namespace holdfast::sim {

// Of the latches that a world's parts count at, one after the other.
class latch_judge {
 public:
  latch_judge(const timeline& time, judge& of, std::size_t runs, std::uint32_t parts)
      : time_{time}, judge_{of}, parts_{parts}, runs_(runs) {}

  // What has counted for sure when a request begins: what it answers must not be more than is left
  // of that.
  struct known {
    std::size_t run;
    std::set<std::uint32_t> counted;
  };
  [[nodiscard]] known looks(std::size_t run) const { return {run, runs_[run].returned}; }
  // From now on it may have counted.
  [[nodiscard]] known begins_to_count(std::size_t run, std::uint32_t part);

  void counted(known before, std::uint32_t part, std::int64_t left);
  void looked(const known& before, std::int64_t left) const;
  // A part was told that the latch is open, after waiting from `since` on. `calm`: nothing went
  // wrong while it waited.
  void told_open(std::size_t run, std::uint32_t part, instant since, bool calm) const;

 private:
  struct run_of_parts {
    std::set<std::uint32_t> begun{};
    std::set<std::uint32_t> returned{};
    std::optional<instant> all_at{};
  };
  [[nodiscard]] std::string shown(std::size_t run) const { return "latch" + std::to_string(run); }

  const timeline& time_;
  judge& judge_;
  const std::uint32_t parts_;
  std::vector<run_of_parts> runs_;
};

}  // namespace holdfast::sim
