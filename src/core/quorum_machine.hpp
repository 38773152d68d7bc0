// Decides, for one attempt at a lock on N independent nodes, what to send, to whom, and when it is
// decided. docs/redlock.md says why it is safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <holdfast/result.hpp>

#include "core/types.hpp"

namespace holdfast::core {

[[nodiscard]] constexpr std::size_t majority_of(std::size_t nodes) noexcept {
  return nodes / 2 + 1;
}

// The token that an attempt proposes: above every one that this client has seen, and where it has
// seen none for long, its own wall clock, which is what others that saw more recent ones used.
[[nodiscard]] constexpr std::uint64_t propose(std::uint64_t last_seen,
                                              std::uint64_t wall_us) noexcept {
  return last_seen >= wall_us ? last_seen + 1 : wall_us;
}

// What one node answered.
struct vote {
  enum class kind {
    fresh,       // it holds our key, and its counter went up to the proposal for us
    stale,       // it holds our key, and its counter is as it was: see `counter`
    raised,      // to a raise: its counter went up to `asked` for us
    not_raised,  // to a raise: it holds our key, but its counter is not below the raise
    not_ours,    // to a raise: it does not hold our key any more
    busy,     // it holds another attempt's key, or keeps the lock for the waiter whose turn it is
    refused,  // it may not vote, or will not for us: see `why`
    failed,   // it could not be asked, or answered with an error: see `why`
  };
  kind what{};
  std::uint64_t counter = 0;                 // the node's: stale, not_raised, busy
  std::uint64_t asked = 0;                   // raised, not_raised: which raise this answers
  std::optional<holdfast::holder> holder{};  // busy; empty: kept for a waiter
  std::optional<duration> remaining{};       // busy; empty: no expiry
  failure why{};                             // refused, failed; outcome_unknown: may have run
};

struct quorum_rule {
  std::size_t nodes = 0;
  duration ttl{};
};

// What to send to one node.
struct quorum_step {
  enum class verb { acquire, raise, release };
  verb what{};
  std::size_t node = 0;
  std::uint64_t token = 0;  // acquire: the proposal; raise: to what
  friend bool operator==(const quorum_step&, const quorum_step&) = default;
};

enum class quorum_outcome {
  undecided,
  granted,
  busy,    // enough nodes work, but others hold them
  late,    // what was granted is worth nothing any more
  failed,  // too few nodes can vote: see why()
};

// No I/O, no clock, no threads. Not thread-safe. One machine is one attempt with an id of its own.
//
// | votes so far                            | then                                             |
// |-----------------------------------------|--------------------------------------------------|
// | fresh on a majority                     | granted with the proposal, after one round trip  |
// | our key on a majority, not all fresh    | raise all of them to q = highest answered + 1    |
// | raised to q on a majority               | granted with q                                   |
// | our key on a majority, q out of reach   | raise higher, `raises_max` times in all          |
// | a majority is out of reach, or too late | released wherever our key may be                 |
//
// All nodes are asked at once. A node that is silent is no longer waited for; if it answers before
// the decision, its answer counts. A key that a node grants after a refusal is released as it
// comes.
//
// A raise goes above the highest counter that a node answered, never above the proposal alone: a
// node does not believe a proposal that is far ahead of its clock, and one wrong clock must not
// carry the counters away with it.
class quorum_machine {
 public:
  // Every raise is a round trip, and only another attempt on the same node makes one fail.
  static constexpr unsigned raises_max = 4;

  using steps = std::vector<quorum_step>;

  explicit quorum_machine(const quorum_rule& rule);

  // Once.
  [[nodiscard]] steps ask(std::uint64_t proposal, time_point at);
  // `v` answers the acquire, or the raise, that was sent to this node. Late ones are welcome.
  [[nodiscard]] steps on_vote(std::size_t node, vote v, time_point now);
  // Nothing came in the time that a node has: it is not waited for any more.
  [[nodiscard]] steps on_silence(std::size_t node, time_point now);
  // The caller's time is up.
  [[nodiscard]] steps on_give_up(time_point now);

  [[nodiscard]] quorum_outcome outcome() const noexcept { return outcome_; }
  [[nodiscard]] bool decided() const noexcept { return outcome_ != quorum_outcome::undecided; }
  // Given back: what it is granted from now on is released.
  [[nodiscard]] bool over() const noexcept {
    return decided() && outcome_ != quorum_outcome::granted;
  }
  // When granted, or late: the token, and how long it is valid from when.
  [[nodiscard]] const grant& granted() const noexcept { return granted_; }
  // Whether the decision still needs this node's answer.
  [[nodiscard]] bool waits_for(std::size_t node) const noexcept;
  // Whether nothing is decided before all of those have answered.
  [[nodiscard]] bool waits_for_all() const noexcept;
  // Whether it may hold our key, as far as is known.
  [[nodiscard]] bool may_hold(std::size_t node) const noexcept;
  // Whether it has answered, and did not take our key as far as is known.
  [[nodiscard]] bool is_out(std::size_t node) const noexcept {
    return places_[node].is == state::out;
  }
  // Whether a majority may vote, as far as is known: it answered so, or still has time to.
  [[nodiscard]] bool majority_works() const noexcept;

  // The highest counter in any answer: the next proposal has to be above it.
  [[nodiscard]] std::uint64_t highest_seen() const noexcept { return highest_; }
  // Who is in the way, and when enough nodes come free by themselves.
  [[nodiscard]] busy met() const;
  // "2 of 5 granted; n4: was restarted, votes in 12 s; n5: no answer in 50 ms"
  [[nodiscard]] failure why(std::span<const std::string> names, duration node_timeout) const;

 private:
  enum class state { asked, holds, out };
  struct place {
    state is = state::asked;
    bool silent = false;  // not waited for
    bool unsure = false;  // out, but it may have granted
    bool asked_to_raise = false;
    std::uint64_t raising = 0;  // to this, not answered
    std::uint64_t token = 0;    // what its counter went up to, for us
    std::optional<vote> said{};
  };

  [[nodiscard]] static bool is_awaited(const place& one) noexcept;
  [[nodiscard]] std::size_t holding() const noexcept;
  [[nodiscard]] std::size_t holding_with(std::uint64_t token) const noexcept;
  void take(place& from, vote v);
  [[nodiscard]] steps evaluate(time_point now);
  [[nodiscard]] steps conclude(std::uint64_t token);
  [[nodiscard]] steps raise_higher();
  [[nodiscard]] steps raise_newcomers();
  [[nodiscard]] steps give_back(quorum_outcome how);
  [[nodiscard]] quorum_outcome kind_of_refusal() const noexcept;
  [[nodiscard]] std::size_t count(auto&& which) const;

  quorum_rule rule_;
  std::uint64_t proposal_ = 0;
  time_point asked_at_{};
  std::vector<place> places_;
  quorum_outcome outcome_ = quorum_outcome::undecided;
  grant granted_{};
  std::uint64_t highest_ = 0;
  std::uint64_t raise_to_ = 0;  // zero: not raising
  unsigned raises_ = 0;
};

}  // namespace holdfast::core
