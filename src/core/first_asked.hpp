// Whom to ask first, of N nodes of which a majority suffices.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "core/types.hpp"

namespace holdfast::core {

// How one node has been answering.
struct node_habit {
  duration typical{};                    // from question to answer
  std::optional<time_point> asked_at{};  // when it was last asked for a vote
  bool late = false;      // not long ago, its answer was not there when it was needed
  bool doubtful = false;  // down, silent, or refused when it was last asked
};

// A client that asks often asks a majority first, and the others only if those do not suffice: it
// costs the nodes, and the client, two fifths less on five nodes. Every so often it asks all, which
// finds out how the others are. A client that asks seldom always asks all.
inline constexpr duration asked_all_within = std::chrono::milliseconds{100};
// A node is slow that takes this many times as long as the slowest of the fastest majority, plus
// what the scheduling of a busy machine may add.
inline constexpr int slow_factor = 3;
inline constexpr duration slow_slack = std::chrono::microseconds{300};

struct first_asked {
  std::vector<std::size_t> nodes{};     // empty: all
  duration patience = duration::max();  // then the others are asked as well
};

// Learns a node's habit from votes. What is read after the decision may have come at any time and
// tells nothing: it is not told here. A value type, not thread-safe.
class vote_habit {
 public:
  // How long one that was late is asked after the others.
  static constexpr duration late_rest = std::chrono::milliseconds{100};

  void on_asked(time_point now) noexcept { asked_at_ = now; }
  // It was not there when it was needed.
  void on_late(time_point now) noexcept { late_until_ = after(now, late_rest); }
  void on_vote(duration took) noexcept {
    typical_ = typical_ == duration::zero() ? took : typical_ + (took - typical_) / weight;
  }
  void on_answer(bool refused) noexcept { refused_ = refused; }

  // `unfit`: it is down or silent.
  [[nodiscard]] node_habit look(time_point now, bool unfit) const noexcept {
    return {typical_, asked_at_, now < late_until_, unfit || refused_};
  }

 private:
  static constexpr int weight = 8;
  duration typical_{};
  std::optional<time_point> asked_at_{};
  time_point late_until_{};
  bool refused_ = false;
};

enum class rivals { none_seen, seen };

// All clients begin with the same node for the same lock. Where there are rivals they all keep to
// that order, late nodes or not: they wait in line at those that they ask, and somebody who gives
// the lock back elsewhere would call others.
[[nodiscard]] first_asked ask_first(std::span<const node_habit> nodes, std::size_t begin_with,
                                    rivals others, time_point now);

}  // namespace holdfast::core
