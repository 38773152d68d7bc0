// Many acquisitions on a model of nodes: requests late, replies lost, proposals that nodes do not
// believe, keys vanishing at any time. What must hold: tokens in order and never twice, no grant
// without a majority, nothing left behind; and where keys end with their TTL only, one holder at a
// time. The same schedules on nodes with one rule broken must show a violation, or they show
// nothing.
#include <algorithm>
#include <deque>
#include <optional>
#include <random>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "unit/quorum_votes.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

// What a node may do wrong, for negative controls.
enum class mutant {
  none,
  raises_to_equal,         // C ≤ q instead of C < q
  raises_without_looking,  // does not compare C at all
  raises_for_anybody,      // does not check that the key is still ours
  forgets_its_counter,
  keeps_no_counter,  // fresh and raise are answered without writing C
  says_fresh_again,  // to an attempt that has the key already
};

constexpr core::duration ttl = 1s;
// Tokens stay far below it.
constexpr std::uint64_t too_far_ahead = 1'000'000;

class world {
 public:
  world(std::size_t nodes, std::size_t acquisitions, mutant broken, std::uint64_t seed)
      : random_{seed}, broken_{broken}, nodes_(nodes), acquisitions_max_{acquisitions} {
    const auto apart = 1 + pick(4);
    for (auto& one : nodes_)
      one.counter = pick(apart);
    crowding_ = 2 + pick(12);
    leisure_ = 1 + pick(16);
    faults_ = 4 + pick(60);
    // Either keys vanish at will, and no time passes, or they end when their time is over.
    if (pick(2) == 0) {
      vanishing_ = 2 + pick(30);
    } else {
      pace_ = 1 + pick(10);
      slowness_ = 1 + pick(6);
    }
  }

  // Empty: nothing went wrong.
  std::string run() {
    int left = 20'000;
    while (left > 0 && problem_.empty() && act())
      --left;
    if (left == 0) problem_ = "it does not end";
    if (problem_.empty()) check_leftovers();
    return problem_;
  }

  [[nodiscard]] int granted() const { return granted_; }

 private:
  struct node {
    std::optional<std::size_t> key{};  // of which attempt
    core::time_point until{};
    std::uint64_t token = 0;  // in the key
    std::uint64_t counter = 0;
  };
  struct attempt {
    attempt(const core::quorum_rule& rule, std::size_t whose)
        : machine{rule}, by{whose}, secured(rule.nodes) {}
    quorum_machine machine;
    std::size_t by;  // which acquisition's
    // What each node's counter went up to while it held our key.
    std::vector<std::set<std::uint64_t>> secured;
    bool given_back = false;
  };
  struct request {
    std::size_t attempt;
    quorum_step what;
  };
  struct reply {
    std::size_t attempt;
    vote what;
  };
  struct acquisition {
    explicit acquisition(std::size_t nodes) : requests(nodes), replies(nodes) {}
    enum class state { asks, pauses, holds, done };
    state is = state::asks;
    std::size_t attempt = 0;                    // the latest
    std::uint64_t floor = 0;                    // the highest token granted before it began
    std::vector<std::deque<request>> requests;  // a connection each: in order
    std::vector<std::deque<reply>> replies;
    std::size_t slow = 0;  // the connection to this node
  };
  using state = acquisition::state;

  std::uint64_t pick(std::uint64_t below) {
    return std::uniform_int_distribution<std::uint64_t>{0, below - 1}(random_);
  }

  // False when nothing is left to happen.
  bool act() {
    now_ += std::chrono::milliseconds{pick(pace_)};
    if (acquisitions_.size() < acquisitions_max_ &&
        (acquisitions_.empty() || pick(crowding_) == 0)) {
      begin();
      return true;
    }
    if (vanishing_ != 0 && pick(vanishing_) == 0) nodes_[pick(nodes_.size())].key.reset();
    if (broken_ == mutant::forgets_its_counter && pick(40) == 0) {
      nodes_[pick(nodes_.size())] = node{};
    }
    // Of each acquisition: on its connection to a node, or, behind those, its own next move.
    std::vector<std::pair<std::size_t, std::size_t>> ready;
    for (std::size_t a = 0; a < acquisitions_.size(); ++a) {
      const auto& one = acquisitions_[a];
      for (std::size_t n = 0; n < nodes_.size(); ++n) {
        if (!one.requests[n].empty() || !one.replies[n].empty() || waits_for(one, n)) {
          ready.emplace_back(a, n);
        }
      }
      if (one.is == state::pauses || one.is == state::holds) ready.emplace_back(a, nodes_.size());
    }
    if (ready.empty()) return acquisitions_.size() < acquisitions_max_;
    const auto [a, n] = ready[pick(ready.size())];
    if (n == nodes_.size()) {
      move_on(a);
    } else {
      move_on(a, n);
    }
    return true;
  }

  [[nodiscard]] bool waits_for(const acquisition& one, std::size_t n) const {
    return one.is == state::asks && attempts_[one.attempt].machine.waits_for(n);
  }

  void begin() {
    const auto number = acquisitions_.size();
    auto& one = acquisitions_.emplace_back(nodes_.size());
    one.slow = pick(nodes_.size());
    one.floor = highest_;
    one.attempt = new_attempt(number);
    ask(number);
  }

  std::size_t new_attempt(std::size_t by) {
    attempts_.emplace_back(core::quorum_rule{nodes_.size(), ttl}, by);
    return attempts_.size() - 1;
  }

  void ask(std::size_t a) {
    auto& one = acquisitions_[a];
    auto& machine = attempts_[one.attempt].machine;
    one.is = state::asks;
    // Low proposals, so that they collide; some far ahead, which no node believes.
    auto proposal = 1 + pick(4) + (pick(3) == 0 ? highest_ : 0);
    if (pick(8) == 0) proposal += too_far_ahead;
    tell(one.attempt, [&] { return machine.ask(proposal, now_); });
    look(a);
  }

  // What follows from an event for the machine is sent.
  template <class Event>
  void tell(std::size_t who, Event event) {
    const auto& machine = attempts_[who].machine;
    auto& by = acquisitions_[attempts_[who].by];
    const bool was_over = machine.over();
    const auto steps = event();
    for (const auto& step : steps)
      by.requests[step.node].push_back({who, step});
    if (!machine.over() || was_over) return;
    attempts_[who].given_back = true;
    by.attempt = new_attempt(attempts_[who].by);
    by.is = machine.outcome() == quorum_outcome::late ? state::done : state::pauses;
  }

  void give_back(std::size_t who) {
    attempts_[who].given_back = true;
    for (std::size_t n = 0; n < nodes_.size(); ++n)
      acquisitions_[attempts_[who].by].requests[n].push_back({who, {verb::release, n, 0}});
  }

  // It asks again, or gives up; it gives back, or dies with it.
  void move_on(std::size_t a) {
    auto& one = acquisitions_[a];
    if (pick(leisure_) != 0) return;
    if (one.is == state::pauses && pick(16) != 0) {
      ask(a);
      return;
    }
    if (one.is == state::pauses || pick(4) != 0) give_back(one.attempt);
    one.is = state::done;
  }

  void move_on(std::size_t a, std::size_t n) {
    auto& one = acquisitions_[a];
    const bool idle = n == one.slow && pick(slowness_) != 0;
    if (!idle && !one.requests[n].empty() && (one.replies[n].empty() || pick(2) == 0)) {
      const auto what = one.requests[n].front();
      one.requests[n].pop_front();
      deliver(what, n);
    } else if (!idle && !one.replies[n].empty()) {
      const auto what = one.replies[n].front();
      one.replies[n].pop_front();
      auto& machine = attempts_[what.attempt].machine;
      tell(what.attempt, [&] { return machine.on_vote(n, what.what, now_); });
    }
    // Whoever waits for it may lose patience.
    if (waits_for(one, n) && pick(faults_) == 0) {
      auto& machine = attempts_[one.attempt].machine;
      const auto how = pick(6);
      tell(one.attempt,
           [&] { return how == 0 ? machine.on_give_up(now_) : machine.on_silence(n, now_); });
    }
    look(a);
  }

  void deliver(const request& what, std::size_t n) {
    auto& replies = acquisitions_[attempts_[what.attempt].by].replies[n];
    const auto broken = [](errc code) { return vote{.what = kind::failed, .why = {code, "", {}}}; };
    // Releases are sent until they arrive.
    if (what.what.what != verb::release && pick(faults_) == 0) {
      replies.push_back({what.attempt, broken(errc::store_unreachable)});
      return;
    }
    auto answer = serve(what, n);
    if (!answer) return;
    // A copy of the request arrives as well, and its answer is the one that is heard.
    if (what.what.what == verb::acquire && pick(faults_) == 0) answer = serve(what, n);
    const auto fate = pick(faults_);
    if (fate == 0) return;
    replies.push_back({what.attempt, fate == 1 ? broken(errc::outcome_unknown) : *answer});
  }

  void take_key(std::size_t who, node& on, core::duration how_long) {
    on.key = who;
    on.token = 0;
    on.until = now_ + how_long;
  }

  void set_counter(std::size_t who, std::size_t n, std::uint64_t to) {
    if (broken_ != mutant::keeps_no_counter) nodes_[n].counter = to;
    if (nodes_[n].key != who) return;
    nodes_[n].token = to;
    attempts_[who].secured[n].insert(to);
  }

  std::optional<vote> serve(const request& what, std::size_t n) {
    auto& on = nodes_[n];
    if (on.key && now_ >= on.until) on.key.reset();
    switch (what.what.what) {
      case verb::acquire:
        return acquire(what, n);
      case verb::raise:
        return raise(what, n);
      case verb::release:
        release(what, n);
        break;
    }
    return std::nullopt;
  }

  vote acquire(const request& what, std::size_t n) {
    auto& on = nodes_[n];
    const auto who = what.attempt;
    if (on.key && on.key != who) return vote{.what = kind::busy, .counter = on.counter};
    const bool again = on.key == who;
    if (!again) take_key(who, on, ttl);
    const bool believes = what.what.token < too_far_ahead;
    if (again && broken_ == mutant::says_fresh_again) return vote{.what = kind::fresh};
    if (again || !believes || what.what.token <= on.counter) {
      return vote{.what = kind::stale, .counter = on.counter};
    }
    set_counter(who, n, what.what.token);
    return vote{.what = kind::fresh, .counter = what.what.token};
  }

  vote raise(const request& what, std::size_t n) {
    auto& on = nodes_[n];
    const auto to = what.what.token;
    if (on.key != what.attempt && broken_ != mutant::raises_for_anybody) {
      return vote{.what = kind::not_ours};
    }
    const bool above = broken_ == mutant::raises_without_looking ||
                       (broken_ == mutant::raises_to_equal ? on.counter <= to : on.counter < to);
    if (!above) return vote{.what = kind::not_raised, .counter = on.counter, .asked = to};
    set_counter(what.attempt, n, to);
    return vote{.what = kind::raised, .counter = to, .asked = to};
  }

  void release(const request& what, std::size_t n) {
    if (nodes_[n].key == what.attempt) nodes_[n].key.reset();
  }

  void look(std::size_t a) {
    auto& one = acquisitions_[a];
    const auto& machine = attempts_[one.attempt].machine;
    if (one.is != state::asks || !machine.decided()) return;
    one.is = state::pauses;
    if (machine.outcome() != quorum_outcome::granted) return;
    one.is = state::holds;
    const auto token = machine.granted().token.value();
    const auto by_most = core::majority_of(nodes_.size());
    std::size_t by = 0;
    for (const auto& secured : attempts_[one.attempt].secured)
      by += secured.contains(token) ? 1 : 0;
    if (by < by_most) problem_ = "granted without a majority";
    const auto have_it = std::count_if(nodes_.begin(), nodes_.end(), [&](const node& on) {
      return on.key == one.attempt && now_ < on.until && on.token == token;
    });
    if (vanishing_ == 0 && holds(one) && have_it < static_cast<std::ptrdiff_t>(by_most)) {
      problem_ = "granted what no renewal would count";
    }
    if (token >= too_far_ahead) problem_ = "a proposal that no node believed was carried on";
    if (token <= one.floor) problem_ = "a token below one that was granted before it was asked for";
    if (!tokens_.insert(token).second) problem_ = "a token twice";
    highest_ = std::max(highest_, token);
    ++granted_;
    const auto holding = std::count_if(acquisitions_.begin(), acquisitions_.end(),
                                       [&](const auto& it) { return holds(it); });
    if (vanishing_ == 0 && holding > 1) problem_ = "two at once";
  }

  [[nodiscard]] bool holds(const acquisition& one) const {
    const auto& got = attempts_[one.attempt].machine.granted();
    return one.is == state::holds && now_ < got.counted_from + got.ttl;
  }

  // Every request has arrived: all is decided, and whatever was given back is gone.
  void check_leftovers() {
    for (const auto& one : acquisitions_) {
      if (one.is != state::done) problem_ = "an attempt that waits for nobody";
    }
    for (const auto& on : nodes_) {
      if (on.key && attempts_[*on.key].given_back) {
        problem_ = "a key left behind by an attempt that was given back";
      }
    }
  }

  std::mt19937_64 random_;
  mutant broken_;
  std::vector<node> nodes_;
  std::size_t acquisitions_max_;
  std::uint64_t vanishing_ = 0;  // one step in so many takes a key away; zero: none does
  std::uint64_t crowding_ = 0;   // one step in so many begins an acquisition
  std::uint64_t pace_ = 1;       // a step takes less than so many milliseconds
  std::uint64_t slowness_ = 1;   // one chance in so many on a slow connection is taken
  std::uint64_t faults_ = 0;     // one request in so many is lost, and one reply
  std::uint64_t leisure_ = 0;    // one chance in so many to ask again, or give back, is taken
  core::time_point now_{1h};
  std::deque<acquisition> acquisitions_;
  std::deque<attempt> attempts_;
  std::set<std::uint64_t> tokens_;
  std::uint64_t highest_ = 0;
  int granted_ = 0;
  std::string problem_;
};

RC_GTEST_PROP(QuorumProperties, TokensAreOrderedAndUniqueWhateverHappens, ()) {
  const auto nodes = *rc::gen::inRange<std::size_t>(1, 8);
  const auto acquisitions = *rc::gen::inRange<std::size_t>(1, 14);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  RC_LOG() << "nodes " << nodes << ", acquisitions " << acquisitions << ", seed " << seed << '\n';
  const auto problem = world(nodes, acquisitions, mutant::none, seed).run();
  RC_LOG() << problem << '\n';
  RC_ASSERT(problem.empty());
}

// A fixed lot of schedules, the same for the right nodes and the broken ones.
constexpr std::uint64_t schedules = 10'000;

TEST(QuorumProperties, SchedulesDoGrant) {
  int granted = 0;
  for (std::uint64_t seed = 0; seed < schedules; ++seed) {
    world one{3, 5, mutant::none, seed};
    ASSERT_EQ(one.run(), "") << "seed " << seed;
    granted += one.granted();
  }
  EXPECT_GT(granted, static_cast<int>(2 * schedules));
}

class broken_nodes : public testing::TestWithParam<mutant> {};

TEST_P(broken_nodes, AreFoundOut) {
  std::string problem;
  for (std::uint64_t seed = 0; seed < schedules && problem.empty(); ++seed) {
    problem = world(3, 5, GetParam(), seed).run();
  }
  EXPECT_NE(problem, "");
}

INSTANTIATE_TEST_SUITE_P(QuorumNegativeControl, broken_nodes,
                         testing::Values(mutant::raises_to_equal, mutant::raises_without_looking,
                                         mutant::raises_for_anybody, mutant::forgets_its_counter,
                                         mutant::keeps_no_counter, mutant::says_fresh_again));

}  // namespace

}  // namespace holdfast::test
