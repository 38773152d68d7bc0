// Decides, for one attempt at a lock on N independent nodes, what to send, to whom, and when it is
// decided. docs/redlock.md says why it is safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <holdfast/result.hpp>

#include "core/queue_place.hpp"
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
    stale,       // it holds our key; its counter was not below the proposal: see `counter`
    raised,      // to a raise: its counter went up to `asked` for us
    not_raised,  // to a raise: it holds our key, but its counter is not below the raise
    not_ours,    // to a raise: it does not hold our key any more
    busy,        // it holds somebody else's key; who waits is in line there
    refused,     // it may not vote, or will not for us: see `why`
    failed,      // it could not be asked, or answered with an error: see `why`
  };
  kind what{};
  std::uint64_t counter = 0;            // the node's: stale, not_raised, busy
  std::uint64_t token = 0;              // stale: in our key, if the counter went up to it for us
  std::uint64_t asked = 0;              // raised, not_raised: which raise this answers
  holdfast::holder holder{};            // busy
  std::optional<duration> remaining{};  // busy; empty: no expiry
  failure why{};                        // refused, failed; errc::outcome_unknown: may have run
};

struct quorum_rule {
  std::size_t nodes = 0;
  duration ttl{};
  // Of a vote that a node gives by itself, to one in line. Zero: it does not wait.
  duration claim_ttl{};
  // It is over then, however long it may wait: within max_ttl, after which a node that has
  // forgotten what it voted for votes again. It could not tell an old call of that node from a new
  // one.
  duration stands_max = duration::max();
};

// Asking, once or again.
struct quorum_ask {
  std::uint64_t proposal = 0;
  time_point at{};
  // Who is asked first: a majority at least (core/first_asked.hpp). Empty: all.
  std::vector<std::size_t> first{};
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
// | votes so far                            | then                                            |
// |-----------------------------------------|-------------------------------------------------|
// | the same token on a majority            | granted: fresh, in one round trip; or called    |
// | our key on a majority, tokens differ    | raise all of them to q = highest seen + 1       |
// | raised to q on a majority               | granted, with q                                 |
// | our key on a majority, q out of reach   | raise higher, `raises_max` times in all         |
// | the first asked do not suffice          | the others are asked as well                    |
// | a majority is out of reach, or too late | released wherever our key may be                |
// | the same, but busy, waiting, key nowhere | it stands: it may be called, and asked again   |
// | it has stood for `stands_max`           | released, and it leaves the line                |
//
// The first asked do not suffice if one of them fails or refuses, if one is slow, or if all have
// answered. One that is busy is no reason yet: where the lock is held, the others that were asked
// will say the same, and asking the rest would only be in the holder's way.
//
// A node that is silent is no longer waited for; if it answers before the decision, it counts, and
// a key that it grants after a refusal is released as it comes.
//
// An attempt that stands is in line where it was answered busy. A node that is given back votes for
// the first in its line by itself, with its counter plus one, and calls it. What counts as a call,
// and from when, is queue_place's to say.
class quorum_machine {
 public:
  // Every raise is a round trip, and only another attempt on the same node makes one fail.
  static constexpr unsigned raises_max = 4;

  using steps = std::vector<quorum_step>;

  explicit quorum_machine(const quorum_rule& rule);

  // The first time, and whenever it stands and is not too old.
  [[nodiscard]] steps ask(quorum_ask how);
  // It has stood for `stands_max`, and is not granted any more: give it up for another.
  [[nodiscard]] bool is_too_old(time_point now) const noexcept;
  [[nodiscard]] steps retire() { return give_back(quorum_outcome::busy); }
  // Before it asks: it was put in line there, by a request that was sent at `since`.
  void stand(std::size_t node, time_point since);
  // `v` answers the acquire, or the raise, that was sent to this node. Late ones are welcome.
  [[nodiscard]] steps on_vote(std::size_t node, vote v, time_point now);
  // The node voted by itself. Counts when it is asked again.
  void on_call(std::size_t node, std::uint64_t token);
  // Nothing came in the time that a node has: it is not waited for any more.
  [[nodiscard]] steps on_silence(std::size_t node, time_point now);
  // Those asked first take longer than they use to.
  [[nodiscard]] steps on_delay();
  // The caller's time is up.
  [[nodiscard]] steps on_give_up(time_point now);

  [[nodiscard]] quorum_outcome outcome() const noexcept { return outcome_; }
  [[nodiscard]] bool decided() const noexcept { return outcome_ != quorum_outcome::undecided; }
  // Given back: what it is granted from now on is released.
  [[nodiscard]] bool over() const noexcept { return over_; }
  // When granted, or late: the token, and how long it is valid from when.
  [[nodiscard]] const grant& granted() const noexcept { return granted_; }
  // Whether the decision still needs this node's answer.
  [[nodiscard]] bool waits_for(std::size_t node) const noexcept;
  // Whether nothing is decided before all of those have answered.
  [[nodiscard]] bool waits_for_all() const noexcept;
  // Whether it may hold our key, as far as is known.
  [[nodiscard]] bool may_hold(std::size_t node) const noexcept;
  [[nodiscard]] bool was_asked(std::size_t node) const noexcept { return places_[node].was_asked; }
  [[nodiscard]] bool asked_all() const noexcept;
  // How many more nodes have to call it.
  [[nodiscard]] std::size_t calls_missing() const noexcept;

  // The highest counter in any answer: the next proposal has to be above it.
  [[nodiscard]] std::uint64_t highest_seen() const noexcept { return highest_; }
  // Who is in the way, and when enough nodes come free by themselves.
  [[nodiscard]] busy met() const;
  // "2 of 5 granted; n4 refused: restarted 12 s ago; n5: no answer in 50 ms"
  [[nodiscard]] failure why(std::span<const std::string> names, duration node_timeout) const;

 private:
  enum class state { unasked, asked, holds, out };
  struct place {
    state is = state::unasked;
    bool was_asked = false;
    bool in_flight = false;  // asked, and not answered
    bool silent = false;     // not waited for
    bool unsure = false;     // out, but it may have granted
    bool asked_to_raise = false;
    std::uint64_t raising = 0;  // to this, not answered
    std::uint64_t proposed = 0;
    std::uint64_t token = 0;  // what its counter went up to, for us
    time_point asked_at{};
    time_point valid_from{};
    duration valid_for{};
    queue_place line{};
    std::optional<vote> said{};
  };

  [[nodiscard]] static bool is_awaited(const place& one) noexcept;
  [[nodiscard]] std::size_t holding() const noexcept;
  [[nodiscard]] std::size_t holding_with(std::uint64_t token) const noexcept;
  void take(place& from, vote v);
  [[nodiscard]] quorum_step acquire(std::size_t node);
  [[nodiscard]] steps evaluate(time_point now);
  [[nodiscard]] steps conclude(std::uint64_t token, time_point now);
  [[nodiscard]] steps ask_the_rest();
  [[nodiscard]] steps raise_higher();
  [[nodiscard]] steps raise_newcomers();
  [[nodiscard]] steps refuse(quorum_outcome how);
  // Whether the acquisition does, in line: by this attempt or by the next.
  [[nodiscard]] bool goes_on(quorum_outcome how) const noexcept;
  [[nodiscard]] steps give_back(quorum_outcome how);
  [[nodiscard]] quorum_outcome kind_of_refusal() const noexcept;
  [[nodiscard]] std::size_t count(auto&& which) const;

  quorum_rule rule_;
  quorum_ask asks_;
  std::optional<time_point> began_;
  std::vector<place> places_;
  quorum_outcome outcome_ = quorum_outcome::undecided;
  bool over_ = false;
  grant granted_{};
  std::uint64_t highest_ = 0;
  std::uint64_t raise_to_ = 0;  // zero: not raising
  unsigned raises_ = 0;
};

}  // namespace holdfast::core
