// Many attempts on a model of nodes: requests late, replies lost, keys vanishing at any time. What
// must hold: tokens in order and never twice, no grant without a majority, nothing left behind.
// The same schedules on nodes with one rule broken must show a violation, or they show nothing.
#include <algorithm>
#include <array>
#include <deque>
#include <numeric>
#include <optional>
#include <random>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "core/quorum_machine.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using core::quorum_machine;
using core::quorum_outcome;
using core::quorum_step;
using core::vote;
using verb = quorum_step::verb;
using kind = vote::kind;

// What a node may do wrong, for negative controls.
enum class mutant {
  none,
  raises_to_equal,         // C ≤ q instead of C < q
  raises_without_looking,  // does not compare C at all
  raises_for_anybody,      // does not check that the key is still ours
  forgets_its_counter,
  keeps_no_counter,  // fresh and raise are answered without writing C
};

constexpr core::time_point start{1h};

class world {
 public:
  world(std::size_t nodes, std::size_t attempts, mutant broken, std::uint64_t seed)
      : random_{seed}, broken_{broken}, nodes_(nodes), attempts_max_{attempts} {
    for (auto& one : nodes_)
      one.counter = pick(4);
    vanishing_ = 2 + pick(30);
    crowding_ = 2 + pick(12);
  }

  // Empty: nothing went wrong.
  std::string run() {
    for (int i = 0; i < 4000 && problem_.empty(); ++i) {
      if (!act()) break;
    }
    if (problem_.empty()) check_leftovers();
    return problem_;
  }

 private:
  struct node {
    int key = -1;  // whose
    std::uint64_t raised = 0;
    std::uint64_t counter = 0;
  };
  struct attempt {
    explicit attempt(const core::quorum_rule& rule, std::size_t nodes)
        : machine{rule}, requests(nodes), replies(nodes), secured(nodes) {}
    quorum_machine machine;
    std::vector<std::deque<quorum_step>> requests;  // a connection each: in order
    std::vector<std::deque<vote>> replies;
    std::vector<std::set<std::uint64_t>>
        secured;              // what its counter went up to while it held our key
    std::uint64_t floor = 0;  // the highest token granted before it began
    bool seen = false;
  };

  std::uint64_t pick(std::uint64_t below) {
    return std::uniform_int_distribution<std::uint64_t>{0, below - 1}(random_);
  }

  void send(attempt& from, const quorum_machine::steps& steps) {
    for (const auto& one : steps)
      from.requests[one.node].push_back(one);
  }

  // Half of the time; otherwise all are asked at once.
  std::vector<std::size_t> some_to_ask_first() {
    std::vector<std::size_t> nodes(nodes_.size());
    std::iota(nodes.begin(), nodes.end(), 0);
    std::shuffle(nodes.begin(), nodes.end(), random_);
    nodes.resize(pick(2) == 0 ? 0 : core::majority_of(nodes.size()));
    return nodes;
  }

  // False when nothing is left to happen.
  bool act() {
    if (attempts_.size() < attempts_max_ && (attempts_.empty() || pick(crowding_) == 0)) {
      // Low proposals, so that they collide.
      attempts_.emplace_back(
          core::quorum_rule{nodes_.size(), 1 + pick(4), start + 1s, some_to_ask_first()},
          nodes_.size());
      attempts_.back().floor = highest_;
      send(attempts_.back(), attempts_.back().machine.start());
      return true;
    }
    if (pick(vanishing_) == 0) nodes_[pick(nodes_.size())].key = -1;
    if (broken_ == mutant::forgets_its_counter && pick(40) == 0) {
      nodes_[pick(nodes_.size())] = node{};
    }
    std::vector<std::pair<std::size_t, std::size_t>> ready;
    for (std::size_t a = 0; a < attempts_.size(); ++a) {
      for (std::size_t n = 0; n < nodes_.size(); ++n) {
        if (!attempts_[a].requests[n].empty() || !attempts_[a].replies[n].empty() ||
            attempts_[a].machine.waits_for(n)) {
          ready.emplace_back(a, n);
        }
      }
    }
    if (ready.empty()) return attempts_.size() < attempts_max_;
    const auto [a, n] = ready[pick(ready.size())];
    move_on(a, n);
    return true;
  }

  void move_on(std::size_t a, std::size_t n) {
    auto& one = attempts_[a];
    if (!one.requests[n].empty() && (one.replies[n].empty() || pick(2) == 0)) {
      const auto request = one.requests[n].front();
      one.requests[n].pop_front();
      const auto answer = serve(static_cast<int>(a), n, request);
      if (answer && pick(8) != 0) one.replies[n].push_back(*answer);
      return;
    }
    if (!one.replies[n].empty()) {
      auto answer = one.replies[n].front();
      one.replies[n].pop_front();
      send(one, one.machine.on_vote(n, std::move(answer), start));
    } else if (pick(4) == 0) {
      send(one, pick(2) == 0 ? one.machine.on_delay() : one.machine.on_silence(n, start));
    }
    look(a);
  }

  std::optional<vote> serve(int who, std::size_t n, const quorum_step& request) {
    auto& on = nodes_[n];
    auto& secured = attempts_[static_cast<std::size_t>(who)].secured[n];
    const auto set_counter = [&](std::uint64_t to) {
      if (broken_ != mutant::keeps_no_counter) on.counter = to;
      if (on.key == who) secured.insert(to);
    };
    switch (request.what) {
      case verb::acquire:
        if (on.key >= 0 && on.key != who) return vote{.what = kind::busy};
        if (on.key == who) return vote{.what = kind::stale, .counter = on.counter};
        on.key = who;
        on.raised = 0;
        if (request.token <= on.counter) return vote{.what = kind::stale, .counter = on.counter};
        set_counter(request.token);
        return vote{.what = kind::fresh, .counter = request.token};
      case verb::raise: {
        if (on.key != who && broken_ != mutant::raises_for_anybody) {
          return vote{.what = kind::not_ours};
        }
        const bool above = broken_ == mutant::raises_without_looking ||
                           (broken_ == mutant::raises_to_equal ? on.counter <= request.token
                                                               : on.counter < request.token);
        if (!above) {
          return vote{.what = kind::not_raised, .counter = on.counter, .asked = request.token};
        }
        set_counter(request.token);
        on.raised = request.token;
        return vote{.what = kind::raised, .counter = request.token, .asked = request.token};
      }
      case verb::release:
        if (on.key == who) on.key = -1;
        return std::nullopt;
    }
    return std::nullopt;
  }

  void look(std::size_t a) {
    auto& one = attempts_[a];
    if (one.seen || !one.machine.decided()) return;
    one.seen = true;
    if (one.machine.outcome() != quorum_outcome::granted) return;
    const auto token = one.machine.token();
    std::size_t by = 0;
    for (const auto& secured : one.secured)
      by += secured.contains(token) ? 1 : 0;
    if (by < core::majority_of(nodes_.size())) problem_ = "granted without a majority";
    if (token <= one.floor) problem_ = "a token below one that was granted before it was asked for";
    if (!tokens_.insert(token).second) problem_ = "a token twice";
    highest_ = std::max(highest_, token);
    ++granted_;
    // Its holder gives it back some time later, or dies with it.
    if (pick(3) != 0) {
      for (std::size_t n = 0; n < nodes_.size(); ++n)
        one.requests[n].push_back({verb::release, n, 0});
    }
  }

  // Every request has arrived: all is decided, and an attempt that was refused holds nothing.
  void check_leftovers() {
    for (const auto& one : attempts_) {
      if (!one.machine.decided()) problem_ = "an attempt that waits for nobody";
    }
    for (const auto& on : nodes_) {
      if (on.key < 0) continue;
      const auto& owner = attempts_[static_cast<std::size_t>(on.key)];
      if (owner.machine.decided() && owner.machine.outcome() != quorum_outcome::granted) {
        problem_ = "a key left behind by an attempt that was refused";
      }
    }
  }

 public:
  [[nodiscard]] int granted() const { return granted_; }

 private:
  std::mt19937_64 random_;
  mutant broken_;
  std::vector<node> nodes_;
  std::size_t attempts_max_;
  std::uint64_t vanishing_ = 0;  // one step in so many takes a key away
  std::uint64_t crowding_ = 0;   // one step in so many begins an attempt
  std::deque<attempt> attempts_;
  std::set<std::uint64_t> tokens_;
  std::uint64_t highest_ = 0;
  int granted_ = 0;
  std::string problem_;
};

RC_GTEST_PROP(QuorumProperties, TokensAreOrderedAndUniqueWhateverHappens, ()) {
  const auto nodes = *rc::gen::inRange<std::size_t>(1, 8);
  const auto attempts = *rc::gen::inRange<std::size_t>(1, 14);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  RC_LOG() << "nodes " << nodes << ", attempts " << attempts << ", seed " << seed << '\n';
  RC_ASSERT(world(nodes, attempts, mutant::none, seed).run().empty());
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
  EXPECT_GT(granted, static_cast<int>(schedules));
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
                                         mutant::keeps_no_counter));

}  // namespace

}  // namespace holdfast::test
