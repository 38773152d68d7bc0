// One attempt on N nodes that waits: it stands in line, nodes call it, and it asks again.
#include <gtest/gtest.h>

#include "unit/quorum_votes.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

constexpr core::time_point start{1h};
constexpr core::duration ttl = 1s;
constexpr core::duration claim = 200ms;
constexpr std::uint64_t p = 100;  // of the first ask
constexpr std::uint64_t c = 50;   // the nodes' counter when it is first answered

vote fresh() { return {.what = kind::fresh}; }
vote not_ours() { return {.what = kind::not_ours}; }
vote busy(std::uint64_t counter = c, core::duration remaining = 1s) {
  return {.what = kind::busy, .counter = counter, .remaining = remaining};
}
vote failed(errc code) { return {.what = kind::failed, .why = {code, "broken", {}}}; }

quorum_machine waiting(std::size_t nodes) {
  return quorum_machine{{.nodes = nodes, .ttl = ttl, .claim_ttl = claim}};
}

// Asked at `start`, and busy on those; the others have not answered.
quorum_machine standing(std::size_t nodes, const list& busy_on) {
  auto m = waiting(nodes);
  (void)m.ask({.proposal = p, .at = start});
  for (const auto node : busy_on)
    EXPECT_TRUE(m.on_vote(node, busy(), start).empty());
  EXPECT_EQ(m.outcome(), quorum_outcome::busy);
  EXPECT_FALSE(m.over());
  return m;
}

// On three nodes, all of which have answered.
quorum_machine standing() { return standing(3, {0, 1, 2}); }

quorum_machine::steps ask_again(quorum_machine& m, core::duration later, std::uint64_t q = p + 1) {
  return m.ask({.proposal = q, .at = start + later});
}

// Called with 51 by two nodes, of which one answers its second ask so.
quorum_machine called_and_found(const vote& answer, bool heard_first) {
  auto m = standing();
  (void)ask_again(m, 50ms);
  (void)m.on_vote(1, busy(), start + 50ms);
  (void)m.on_vote(2, busy(), start + 50ms);
  if (heard_first) m.on_call(0, 51);
  EXPECT_TRUE(m.on_vote(0, answer, start + 60ms).empty());
  if (!heard_first) m.on_call(0, 51);
  m.on_call(1, 51);
  return m;
}

void expect_granted(const quorum_machine& m, std::uint64_t token, core::time_point from,
                    core::duration valid) {
  EXPECT_EQ(m.outcome(), quorum_outcome::granted);
  EXPECT_EQ(m.granted().token, fencing_token{token});
  EXPECT_EQ(m.granted().counted_from, from);
  EXPECT_EQ(m.granted().ttl, valid);
}

}  // namespace

TEST(QuorumWaiting, AttemptThatIsBusyStandsAndGivesNothingBack) {
  const auto m = standing();
  for (const std::size_t node : {0, 1, 2}) {
    EXPECT_TRUE(m.was_asked(node));
    EXPECT_FALSE(m.may_hold(node));
    EXPECT_FALSE(m.waits_for(node));
  }
}

TEST(QuorumWaiting, OneThatDoesNotWaitIsOverWhenItIsBusy) {
  quorum_machine m{{.nodes = 3, .ttl = ttl}};
  (void)m.ask({.proposal = p, .at = start});
  (void)m.on_vote(0, fresh(), start);
  (void)m.on_vote(1, busy(), start);
  const auto steps = m.on_vote(2, busy(), start);
  EXPECT_TRUE(m.over());
  EXPECT_EQ(nodes_of(steps, verb::release), list{0}) << "it is in nobody's line";
}

TEST(QuorumWaiting, IsAskedAgainWhereItHoldsNothingAndNothingIsOnItsWay) {
  auto m = standing(5, {0, 1, 2});
  EXPECT_TRUE(m.on_vote(4, fresh(), start).empty());
  const auto steps = ask_again(m, 50ms);
  EXPECT_EQ(nodes_of(steps, verb::acquire), (list{0, 1, 2})) << "3 has not answered, 4 is held";
  EXPECT_EQ(steps[0].token, p + 1);
  EXPECT_EQ(m.outcome(), quorum_outcome::undecided);
  EXPECT_TRUE(m.waits_for(3));
}

TEST(QuorumWaiting, OfThoseToAskFirstOnlyThoseThatAreWorthItAreAsked) {
  auto m = standing(5, {0, 1, 2, 3, 4});
  m.on_call(0, 51);
  const auto some = m.ask({.proposal = p, .at = start + 50ms, .first = {0, 1, 3}});
  EXPECT_EQ(nodes_of(some, verb::acquire), (list{1, 3}));

  auto called = standing(5, {0, 1, 2});
  called.on_call(0, 51);
  const auto others = called.ask({.proposal = p, .at = start + 50ms, .first = {0, 3, 4}});
  EXPECT_EQ(nodes_of(others, verb::acquire), (list{1, 2})) << "none of the first is worth it";
}

TEST(QuorumWaiting, SilentNodeIsNotAskedAgainUntilItHasAnswered) {
  auto m = waiting(3);
  (void)m.ask({.proposal = p, .at = start});
  (void)m.on_silence(0, start);
  (void)m.on_vote(1, busy(), start);
  (void)m.on_vote(2, busy(), start);
  EXPECT_EQ(nodes_of(ask_again(m, 50ms), verb::acquire), (list{1, 2}));
  EXPECT_FALSE(m.waits_for(0));
  (void)m.on_vote(1, busy(), start);
  (void)m.on_vote(2, busy(), start);
  (void)m.on_vote(0, failed(errc::outcome_unknown), start);
  EXPECT_EQ(nodes_of(ask_again(m, 100ms), verb::acquire), (list{0, 1, 2}));
}

TEST(QuorumCalls, OfAMajorityWithOneTokenGrantWithoutARequest) {
  auto m = standing();
  (void)ask_again(m, 50ms);
  for (const std::size_t node : {0, 1, 2})
    (void)m.on_vote(node, busy(), start + 60ms);
  m.on_call(0, 51);
  m.on_call(2, 51);
  EXPECT_TRUE(ask_again(m, 120ms).empty());
  // All that is known of when they voted is that they had not when they were last asked.
  expect_granted(m, 51, start + 50ms, claim);
}

TEST(QuorumCalls, WithDifferentTokensAreRaised) {
  auto m = standing();
  m.on_call(0, 51);
  m.on_call(1, 57);
  const auto steps = ask_again(m, 50ms, 40);
  EXPECT_EQ(nodes_of(steps, verb::raise), (list{0, 1}));
  EXPECT_EQ(steps[0].token, 58U);
  (void)m.on_vote(0, raised(58), start + 60ms);
  (void)m.on_vote(1, raised(58), start + 60ms);
  expect_granted(m, 58, start, claim);
}

TEST(QuorumCalls, OfAMinorityAreNoGrantAndTheRestIsAsked) {
  auto m = standing();
  m.on_call(1, 51);
  EXPECT_EQ(nodes_of(ask_again(m, 50ms), verb::acquire), (list{0, 2}));
  EXPECT_FALSE(m.decided());
  (void)m.on_vote(0, busy(), start + 60ms);
  const auto steps = m.on_vote(2, busy(), start + 60ms);
  EXPECT_EQ(m.outcome(), quorum_outcome::busy);
  EXPECT_TRUE(m.over()) << "its vote is in the way of others";
  EXPECT_EQ(nodes_of(steps, verb::release), (list{0, 1, 2}));
}

TEST(QuorumCalls, CountTogetherWithWhatIsGrantedWhenItAsks) {
  auto m = standing();
  m.on_call(1, 51);
  (void)ask_again(m, 50ms, p);
  EXPECT_EQ(nodes_of(m.on_vote(0, fresh(), start + 60ms), verb::raise), (list{0, 1}));
  (void)m.on_vote(0, raised(p + 1), start + 60ms);
  (void)m.on_vote(1, raised(p + 1), start + 60ms);
  expect_granted(m, p + 1, start, claim);
}

TEST(QuorumCalls, NotAboveTheCounterThatWasToldAreFromBefore) {
  auto m = standing();
  m.on_call(0, c);
  m.on_call(1, c - 1);
  EXPECT_EQ(m.calls_missing(), 2U);
  EXPECT_EQ(nodes_of(ask_again(m, 50ms), verb::acquire), (list{0, 1, 2}));
}

TEST(QuorumCalls, ThatOvertakeTheBusyAnswerCount) {
  auto m = standing(3, {1, 2});
  m.on_call(0, c + 1);
  EXPECT_TRUE(m.on_vote(0, busy(c), start).empty());
  EXPECT_TRUE(m.may_hold(0)) << "called after that answer was given";
  m.on_call(1, c + 1);
  EXPECT_TRUE(ask_again(m, 50ms).empty());
  expect_granted(m, c + 1, start, claim);
}

TEST(QuorumCalls, ThatCameBeforeTheBusyAnswerWasGivenAreLost) {
  for (const auto counter : {c + 1, c + 9}) {
    auto m = standing(3, {1, 2});
    m.on_call(0, c + 1);
    (void)m.on_vote(0, busy(counter), start);
    EXPECT_FALSE(m.may_hold(0)) << counter;
    EXPECT_EQ(m.calls_missing(), 2U) << counter;
  }
}

// The nodes were asked at `start` only: that was never answered.
TEST(QuorumCalls, OfNodesThatNeverAnsweredCountFromTheFirstAsk) {
  auto m = standing(5, {2, 3, 4});
  (void)ask_again(m, 50ms);
  for (const std::size_t node : {2, 3, 4})
    (void)m.on_vote(node, busy(), start + 50ms);
  for (const std::size_t node : {0, 1, 2})
    m.on_call(node, 51);
  EXPECT_TRUE(ask_again(m, 100ms).empty());
  expect_granted(m, 51, start, claim);
}

// Asked again, it was found to hold the key: that it was called there is known already, or later.
TEST(QuorumCalls, KeepTheirTokenOnANodeThatAnswersStaleIfItsCounterIsTheSame) {
  for (const bool heard_first : {true, false}) {
    auto m = called_and_found(stale(51, 51), heard_first);
    EXPECT_TRUE(ask_again(m, 100ms).empty()) << heard_first;
    expect_granted(m, 51, start + 50ms, claim);
  }
}

TEST(QuorumCalls, LoseTheirTokenOnANodeThatAnswersStaleWithAnotherCounter) {
  for (const bool heard_first : {true, false}) {
    auto m = called_and_found(stale(52, 51), heard_first);
    EXPECT_EQ(nodes_of(ask_again(m, 100ms), verb::raise), (list{0, 1})) << heard_first;
  }
}

// The key that it was called to has run out, and the ask has set it anew: no renewal would count
// it.
TEST(QuorumCalls, LoseTheirTokenOnANodeThatHasSetTheKeyAnew) {
  for (const bool heard_first : {true, false}) {
    auto m = called_and_found(stale(51), heard_first);
    EXPECT_EQ(nodes_of(ask_again(m, 100ms), verb::raise), (list{0, 1})) << heard_first;
  }
}

// The key that it found there was over when the node voted for it once more.
TEST(QuorumCalls, AreNotUndoneByAnAnswerFromBefore) {
  auto m = standing();
  (void)ask_again(m, 50ms);
  m.on_call(0, 52);
  m.on_call(1, 52);
  (void)m.on_vote(0, stale(51, 51), start + 60ms);
  expect_granted(m, 52, start, claim);
}

TEST(QuorumCalls, ThatAreFoundOutByAskingNeedNotBeHeard) {
  auto m = standing();
  (void)ask_again(m, 50ms);
  (void)m.on_vote(0, stale(51, 51), start + 60ms);
  EXPECT_TRUE(m.on_vote(1, stale(51, 51), start + 60ms).empty());
  expect_granted(m, 51, start + 50ms, ttl);
}

TEST(QuorumCalls, WhoseClaimHasRunOutAreAskedAgain) {
  auto m = standing();
  m.on_call(0, 51);
  m.on_call(1, 51);
  EXPECT_EQ(nodes_of(ask_again(m, claim), verb::acquire), (list{0, 1, 2}));
  EXPECT_FALSE(m.decided());
  // The nodes had voted later than was known, and nobody has been there since.
  (void)m.on_vote(0, stale(51, 51), start + claim);
  (void)m.on_vote(1, stale(51, 51), start + claim);
  expect_granted(m, 51, start + claim, ttl);
}

// Ours by the node's count perhaps, which began later.
TEST(QuorumCalls, WhoseClaimHasRunOutAreGivenBackThoughTheNodeIsNotAskedAgain) {
  auto m = standing(5, {0, 1, 2, 3, 4});
  m.on_call(0, 51);
  (void)m.ask({.proposal = p, .at = start + claim, .first = {1, 2, 3}});
  const auto steps = m.on_give_up(start + claim);
  ASSERT_EQ(m.outcome(), quorum_outcome::failed);
  EXPECT_EQ(nodes_of(steps, verb::release), (list{0, 1, 2, 3}));
}

TEST(QuorumCalls, GrantForAsLongAsTheFirstOfThemToEnd) {
  auto m = standing(3, {1, 2});
  (void)ask_again(m, 50ms);
  (void)m.on_vote(1, busy(), start + 50ms);
  (void)m.on_vote(2, busy(), start + 50ms);
  m.on_call(2, 51);
  m.on_call(0, 51);  // counts from the first ask, the other from the second
  EXPECT_TRUE(ask_again(m, 100ms).empty());
  expect_granted(m, 51, start, claim);
}

TEST(QuorumCalls, OutsideTheMajorityDoNotShortenTheGrant) {
  auto m = standing(5, {0, 1, 2, 3, 4});
  m.on_call(0, 51);
  (void)ask_again(m, 150ms);
  for (const std::size_t node : {1, 2, 3})
    (void)m.on_vote(node, fresh(), start + 160ms);
  for (const std::size_t node : {1, 2, 3})
    (void)m.on_vote(node, raised(p + 2), start + 170ms);
  expect_granted(m, p + 2, start + 150ms, ttl);
}

TEST(QuorumCalls, ThatHaveRunOutWhenItIsDecidedAreLate) {
  auto m = standing();
  m.on_call(0, 51);
  m.on_call(1, 57);
  (void)ask_again(m, 150ms);
  (void)m.on_vote(0, raised(p + 2), start + 160ms);
  const auto steps = m.on_vote(1, raised(p + 2), start + claim);
  EXPECT_EQ(m.outcome(), quorum_outcome::late);
  EXPECT_TRUE(m.over());
  EXPECT_EQ(nodes_of(steps, verb::release), (list{0, 1}));
  EXPECT_EQ(m.granted().counted_from, start);
  EXPECT_EQ(m.granted().ttl, claim);
}

TEST(QuorumCalls, AreNotHeardOnceItIsGrantedOrOver) {
  auto granted = standing();
  granted.on_call(0, 51);
  granted.on_call(1, 51);
  (void)ask_again(granted, 50ms);
  granted.on_call(2, 60);
  expect_granted(granted, 51, start, claim);
  EXPECT_FALSE(granted.may_hold(2));

  auto over = standing();
  over.on_call(0, 51);
  (void)ask_again(over, 50ms);
  for (const std::size_t node : {1, 2})
    (void)over.on_vote(node, busy(), start + 60ms);
  ASSERT_TRUE(over.over());
  over.on_call(1, 60);
  EXPECT_FALSE(over.may_hold(1)) << "it has been given back";
}

TEST(QuorumCalls, MissingAreThoseOfAMajorityAndOneAtLeast) {
  auto m = standing(5, {0, 1, 2, 3, 4});
  EXPECT_EQ(m.calls_missing(), 3U);
  m.on_call(0, 51);
  m.on_call(0, 51);
  EXPECT_EQ(m.calls_missing(), 2U);
  m.on_call(1, 52);
  EXPECT_EQ(m.calls_missing(), 1U);
  m.on_call(2, 53);
  EXPECT_EQ(m.calls_missing(), 1U) << "or nobody would be waited for";
}

TEST(QuorumCalls, CountInTheNextProposal) {
  auto m = standing();
  EXPECT_EQ(m.highest_seen(), c);
  m.on_call(0, 77);
  EXPECT_EQ(m.highest_seen(), 77U);
}

TEST(QuorumWaiting, GrantThatComesLateIsKeptAndCountsWhenItAsksAgain) {
  auto m = standing(3, {1, 2});
  EXPECT_TRUE(m.on_vote(0, fresh(), start + 10ms).empty());
  EXPECT_TRUE(m.may_hold(0));
  EXPECT_EQ(m.calls_missing(), 1U);
  EXPECT_EQ(nodes_of(ask_again(m, 50ms), verb::acquire), (list{1, 2}));
  EXPECT_EQ(nodes_of(m.on_vote(1, fresh(), start + 60ms), verb::raise), (list{0, 1}));
}

TEST(QuorumWaiting, GrantThatComesLateIsGivenBackOnceItIsOver) {
  auto m = waiting(5);
  (void)m.ask({.proposal = p, .at = start});
  (void)m.on_vote(0, fresh(), start);
  for (const std::size_t node : {1, 2, 3})
    (void)m.on_vote(node, busy(), start);
  ASSERT_TRUE(m.over());
  EXPECT_EQ(nodes_of(m.on_vote(4, fresh(), start), verb::release), list{4});
}

// Its successor is put in line by the same request, everywhere: the next vote is not split.
TEST(QuorumWaiting, SplitVoteIsGivenBackWhereverItWasAsked) {
  auto m = waiting(5);
  (void)m.ask({.proposal = p, .at = start, .first = {0, 1, 2, 3}});
  (void)m.on_vote(0, fresh(), start);
  (void)m.on_vote(1, busy(), start);
  (void)m.on_vote(2, busy(), start);
  EXPECT_EQ(nodes_of(m.on_vote(3, busy(), start), verb::release), (list{0, 1, 2, 3}));
  EXPECT_EQ(m.outcome(), quorum_outcome::busy);
  EXPECT_TRUE(m.over());
}

// What it is called to later must not be taken for what it was raised to.
TEST(QuorumWaiting, OneThatHasRaisedDoesNotStand) {
  auto m = standing();
  m.on_call(0, 51);
  m.on_call(1, 57);
  (void)ask_again(m, 50ms);
  EXPECT_EQ(nodes_of(m.on_vote(0, not_ours(), start + 60ms), verb::acquire), list{2});
  const auto steps = m.on_vote(1, not_ours(), start + 60ms);
  EXPECT_EQ(m.outcome(), quorum_outcome::busy);
  EXPECT_TRUE(m.over());
  EXPECT_EQ(nodes_of(steps, verb::release), (list{0, 1, 2}));
}

TEST(QuorumWaiting, TooFewNodesAreNoReasonToStand) {
  auto m = standing();
  (void)ask_again(m, 50ms);
  (void)m.on_vote(0, failed(errc::store_unreachable), start + 60ms);
  const auto steps = m.on_vote(1, failed(errc::outcome_unknown), start + 60ms);
  EXPECT_EQ(m.outcome(), quorum_outcome::failed);
  EXPECT_TRUE(m.over());
  EXPECT_EQ(nodes_of(steps, verb::release), (list{1, 2}));
}

TEST(QuorumSuccessor, IsCalledBeforeItHasAsked) {
  auto m = waiting(3);
  for (const std::size_t node : {0, 1})
    m.stand(node, start - 10ms);
  EXPECT_TRUE(m.was_asked(0));
  EXPECT_FALSE(m.was_asked(2));
  m.on_call(0, 51);
  m.on_call(1, 51);
  EXPECT_TRUE(m.ask({.proposal = p, .at = start}).empty());
  expect_granted(m, 51, start - 10ms, claim);
}

TEST(QuorumSuccessor, AsksWhereItStandsAndIsInLineSinceThen) {
  auto m = waiting(3);
  for (const std::size_t node : {0, 1})
    m.stand(node, start - 10ms);
  EXPECT_EQ(nodes_of(m.ask({.proposal = p, .at = start}), verb::acquire), (list{0, 1, 2}));
  (void)m.on_vote(1, busy(), start);
  (void)m.on_vote(2, busy(), start);
  ASSERT_FALSE(m.over());
  m.on_call(0, 51);
  m.on_call(2, 51);
  EXPECT_TRUE(ask_again(m, 50ms).empty());
  expect_granted(m, 51, start - 10ms, claim);
}

TEST(QuorumSuccessor, GivesBackWhereItOnlyStands) {
  auto m = waiting(5);
  m.stand(4, start);
  (void)m.ask({.proposal = p, .at = start, .first = {0, 1, 2}});
  (void)m.on_vote(0, fresh(), start);
  EXPECT_EQ(nodes_of(m.on_give_up(start), verb::release), (list{0, 1, 2, 4}));
}

// A node has one ask of this attempt on its way at a time: nothing in an answer says to which ask
// it belongs, and so for what proposal and from when it counts.
TEST(QuorumCalls, WhoseClaimHasRunOutAreNotAskedAgainWhereAnAnswerIsOnItsWay) {
  auto m = standing();
  (void)ask_again(m, 50ms, 101);
  (void)m.on_vote(1, busy(), start + 60ms);
  (void)m.on_vote(2, busy(), start + 60ms);
  m.on_call(0, 51);
  EXPECT_EQ(nodes_of(ask_again(m, claim, 102), verb::acquire), (list{1, 2}));
  (void)m.on_vote(0, fresh(), start + claim);  // to 101: its claim had run out there, too
  (void)m.on_vote(1, fresh(), start + claim);  // to 102
  EXPECT_FALSE(m.decided()) << "102 is on one node only";
}

TEST(QuorumCalls, OfANodeThatWasSilentAreRaisedAndWaitedFor) {
  auto m = standing();
  (void)ask_again(m, 50ms);
  (void)m.on_silence(0, start + 60ms);
  (void)m.on_vote(1, busy(), start + 60ms);
  (void)m.on_vote(2, busy(), start + 60ms);
  m.on_call(0, 51);
  m.on_call(1, 57);
  EXPECT_EQ(nodes_of(ask_again(m, 100ms), verb::raise), (list{0, 1}));
  EXPECT_TRUE(m.waits_for(0)) << "that it called is a sign of life";
  EXPECT_TRUE(m.on_vote(1, raised(p + 2), start + 110ms).empty());
  (void)m.on_vote(0, raised(p + 2), start + 110ms);
  EXPECT_EQ(m.outcome(), quorum_outcome::granted);
}

TEST(QuorumWaiting, KeyOfAnAnswerThatWasLostIsGivenBackThoughTheNodeCouldNotBeAskedSince) {
  auto m = standing(3, {1, 2});
  (void)m.on_vote(0, failed(errc::outcome_unknown), start);
  (void)ask_again(m, 50ms);
  (void)m.on_vote(0, failed(errc::store_unreachable), start + 50ms);
  EXPECT_TRUE(m.may_hold(0));
  const auto steps = m.on_vote(1, failed(errc::store_unreachable), start + 50ms);
  ASSERT_TRUE(m.over());
  EXPECT_EQ(nodes_of(steps, verb::release), (list{0, 2}));
}

TEST(QuorumWaiting, BusyDoesNotNameWhatANodeSaidBeforeItCalled) {
  auto m = waiting(3);
  (void)m.ask({.proposal = p, .at = start});
  for (const std::size_t node : {0, 1, 2})
    (void)m.on_vote(node, busy(c, 10ms), start);
  m.on_call(0, 51);
  (void)ask_again(m, 50ms);
  for (const std::size_t node : {1, 2})
    (void)m.on_vote(node, busy(c, 500ms), start + 60ms);
  ASSERT_EQ(m.outcome(), quorum_outcome::busy);
  EXPECT_EQ(m.met().remaining, 500ms) << "one is ours: one more is needed";
}

// A node that has forgotten what it voted for votes again after max_ttl, with a counter that may be
// below: an old call would look new, and so would a token that was kept.
TEST(QuorumWaiting, AttemptThatHasStoodForTooLongIsGivenUpForAnother) {
  quorum_machine m{{.nodes = 3, .ttl = 1s, .claim_ttl = claim, .stands_max = 10s}};
  (void)m.ask({.proposal = p, .at = start});
  for (const std::size_t node : {0, 1, 2})
    (void)m.on_vote(node, busy(), start);
  EXPECT_EQ(nodes_of(m.ask({.proposal = p + 1, .at = start + 9s}), verb::acquire), (list{0, 1, 2}));
  for (const std::size_t node : {0, 1, 2})
    (void)m.on_vote(node, busy(), start + 9s);
  EXPECT_FALSE(m.over());
  m.on_call(0, 51);
  m.on_call(1, 51);
  EXPECT_FALSE(m.is_too_old(start + 9s));
  EXPECT_TRUE(m.is_too_old(start + 10s)) << "though a majority calls it";
  const auto steps = m.retire();
  EXPECT_EQ(m.outcome(), quorum_outcome::busy);
  EXPECT_TRUE(m.over());
  EXPECT_EQ(nodes_of(steps, verb::release), (list{0, 1, 2}));
  EXPECT_EQ(nodes_of(steps, verb::acquire), list{});
}

TEST(QuorumWaiting, AttemptThatBecomesTooOldWhileItAsksIsNotGranted) {
  quorum_machine m{{.nodes = 3, .ttl = 5s, .claim_ttl = claim, .stands_max = 10s}};
  m.stand(0, start);
  (void)m.ask({.proposal = p, .at = start + 9s});
  (void)m.on_vote(0, fresh(), start + 9s);
  const auto steps = m.on_vote(1, fresh(), start + 10s);
  EXPECT_EQ(m.outcome(), quorum_outcome::busy);
  EXPECT_TRUE(m.over());
  EXPECT_EQ(nodes_of(steps, verb::release), (list{0, 1, 2}));
}

TEST(QuorumCalls, LaterCallReplacesOneThatWasOverByThen) {
  auto m = standing();
  m.on_call(0, 51);
  m.on_call(0, 53);
  m.on_call(0, 52);
  m.on_call(1, 53);
  EXPECT_TRUE(ask_again(m, 50ms).empty());
  EXPECT_EQ(m.granted().token, fencing_token{53});
}

}  // namespace holdfast::test
