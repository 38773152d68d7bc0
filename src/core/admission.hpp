// Decides from whom a node that may have forgotten something takes its counters, so that it may
// vote again. docs/redlock.md says why that is safe.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "core/types.hpp"

namespace holdfast::core {

// What a node is to a set, as it said when it was asked last.
struct node_report {
  enum class standing {
    unreachable,
    votes,
    blank,      // has no marker: new, or it lost everything, its counters included
    restarted,  // its marker is from before its last start: what it lost is not known
    foreign,    // has voted in another set
    left,       // was taken out of a set by a move
  };
  // Whether it changed over to this set from another (core/set_change.hpp).
  enum class move { none, begun, complete };
  standing is = standing::unreachable;
  move moved = move::none;
  bool later = false;  // foreign, left: its set is of a higher epoch than this one
  std::string wait{};  // blank, restarted: which of its waits it is in, unlike any other
  duration left{};     // of that wait; by its clock and by ours, whichever takes longer
  duration clock{};    // since 1970; not of one that is unreachable
};

// True if the node may have forgotten something, and has to wait before it votes.
[[nodiscard]] constexpr bool has_to_wait(const node_report& one) noexcept {
  return one.is == node_report::standing::blank || one.is == node_report::standing::restarted;
}
// True if the node knows every vote that it has given, and may tell its counters.
[[nodiscard]] constexpr bool is_intact(const node_report& one) noexcept {
  return one.is == node_report::standing::votes && one.moved != node_report::move::begun;
}

// From whom a node whose wait is over takes its counters.
enum class counter_source {
  nobody,     // not now: too few nodes answer, a move is half done, or it takes another look
  intact,     // from the intact nodes. They are a majority, so one of them knows the last token
  all_there,  // from every node that answers, and at least least_counter()
};

struct admission_rule {
  explicit admission_rule(std::size_t of_nodes) noexcept;

  std::size_t nodes;
  // Fewer intact nodes than a majority may not have met the last token.
  std::size_t intact_min;
  // Between the two looks that find too few.
  duration looks_apart = std::chrono::seconds{1};
};

// Remembers what the looks before this one found. Not thread-safe.
//
// | a look finds                                         | source                            |
// |------------------------------------------------------|-----------------------------------|
// | a majority of intact nodes                           | intact: rests on no clock         |
// | fewer, for the first time                            | nobody                            |
// | fewer again, `looks_apart` later; a majority answers | all_there: rests on nodes' clocks |
// | the same while a move is half done                   | nobody, until it is finished      |
//
// The second look keeps a moment in which an intact node does not answer from costing the promise
// that rests on no clock.
class admission {
 public:
  explicit admission(const admission_rule& rule) noexcept : rule_{rule} {}
  [[nodiscard]] counter_source judge(std::span<const node_report> nodes, time_point now);
  // True if all that is missing is another look, `looks_apart` after the first.
  [[nodiscard]] bool needs_another_look() const noexcept { return needs_another_look_; }

 private:
  admission_rule rule_;
  bool needs_another_look_ = false;
  std::optional<time_point> too_few_since_;
};

// Nodes believe proposals up to this far ahead of their own clocks: scripts/acquire.lua.
inline constexpr duration believed_ahead_max = std::chrono::seconds{30};
// Nodes' clocks may disagree by this much, or by max_ttl if that is less.
inline constexpr duration clocks_apart_max = std::chrono::seconds{30};

// Both in microseconds, as tokens are, and above every token that nodes have forgotten, if clocks
// do not go back and agree as well as that.
// After a wait: the last vote that was forgotten is a wait old.
[[nodiscard]] std::uint64_t least_counter(std::span<const node_report> answering, duration max_ttl);
// Without one, of all nodes: the one that believed the last token is among them, and so is its
// clock. It covers what least_counter() gave, too. Not more than needed: a loss after this must
// still find its way above it.
[[nodiscard]] std::uint64_t least_counter_at_once(std::span<const node_report> all,
                                                  duration max_ttl);

}  // namespace holdfast::core
