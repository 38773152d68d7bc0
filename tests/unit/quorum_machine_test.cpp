// One attempt on N nodes, by cases.
#include "core/quorum_machine.hpp"

#include <gtest/gtest.h>

#include "unit/quorum_votes.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

constexpr core::time_point now{1h};
constexpr std::uint64_t p = 100;
const std::vector<std::string> names{"n1", "n2", "n3", "n4", "n5"};

quorum_machine machine_for(std::size_t nodes) {
  quorum_machine started{{.nodes = nodes, .ttl = 1s}};
  (void)started.ask(p, now);
  return started;
}

vote fresh() { return {.what = kind::fresh, .counter = p}; }
vote not_raised(std::uint64_t to, std::uint64_t counter) {
  return {.what = kind::not_raised, .counter = counter, .asked = to};
}
vote busy(core::duration remaining, std::string host = "other") {
  vote v{.what = kind::busy};
  v.holder.emplace().host = std::move(host);
  v.remaining = remaining;
  return v;
}
vote kept_for_a_waiter(core::duration remaining) {
  return {.what = kind::busy, .remaining = remaining};
}
vote failed(errc code, std::string why) {
  return {.what = kind::failed, .why = {code, std::move(why), {}}};
}
vote refused(errc code, std::string why) {
  return {.what = kind::refused, .why = {code, std::move(why), {}}};
}

}  // namespace

TEST(QuorumProposal, IsAboveWhatWasSeenAndNotBehindTheClock) {
  EXPECT_EQ(core::propose(0, 50), 50U);
  EXPECT_EQ(core::propose(49, 50), 50U);
  EXPECT_EQ(core::propose(50, 50), 51U);
  EXPECT_EQ(core::propose(90, 50), 91U);
}

TEST(QuorumAcquire, AsksEveryNodeAtOnce) {
  quorum_machine m{{.nodes = 5, .ttl = 1s}};
  const auto steps = m.ask(p, now);
  EXPECT_EQ(nodes_of(steps, verb::acquire), (list{0, 1, 2, 3, 4}));
  EXPECT_EQ(steps[3].token, p);
}

TEST(QuorumAcquire, FreshOnAMajorityGrantsInOneRoundTrip) {
  auto m = machine_for(5);
  EXPECT_TRUE(m.on_vote(4, fresh(), now).empty());
  EXPECT_TRUE(m.on_vote(0, fresh(), now).empty());
  EXPECT_FALSE(m.decided());
  EXPECT_TRUE(m.on_vote(2, fresh(), now).empty());
  EXPECT_EQ(m.outcome(), quorum_outcome::granted);
  EXPECT_EQ(m.granted().token, fencing_token{p});
  EXPECT_EQ(m.granted().counted_from, now);
  EXPECT_EQ(m.granted().ttl, 1s);
  EXPECT_TRUE(m.on_vote(1, fresh(), now).empty()) << "one more copy of a held lock is kept";
}

TEST(QuorumAcquire, MajorityOfAnEvenNumberIsMoreThanHalf) {
  auto m = machine_for(4);
  (void)m.on_vote(0, fresh(), now);
  (void)m.on_vote(1, fresh(), now);
  EXPECT_FALSE(m.decided());
  (void)m.on_vote(2, fresh(), now);
  EXPECT_EQ(m.outcome(), quorum_outcome::granted);
}

TEST(QuorumAcquire, OneStaleVoteMakesItRaiseAllThatGranted) {
  auto m = machine_for(3);
  (void)m.on_vote(0, fresh(), now);
  const auto steps = m.on_vote(1, stale(130), now);
  EXPECT_EQ(nodes_of(steps, verb::raise), (list{0, 1}));
  EXPECT_EQ(steps[0].token, 131U);
  (void)m.on_vote(0, raised(131), now);
  EXPECT_FALSE(m.decided());
  (void)m.on_vote(1, raised(131), now);
  EXPECT_EQ(m.outcome(), quorum_outcome::granted);
  EXPECT_EQ(m.granted().token, fencing_token{131});
}

// A node does not believe a proposal that is far ahead of its clock: one wrong clock must not carry
// the counters away.
TEST(QuorumAcquire, RaisesAboveTheCountersThatWereAnsweredAndNotAboveItsOwnProposal) {
  auto m = machine_for(3);
  (void)m.on_vote(0, stale(40), now);
  const auto steps = m.on_vote(1, stale(30), now);
  EXPECT_EQ(nodes_of(steps, verb::raise), (list{0, 1}));
  EXPECT_EQ(steps[0].token, 41U);
  (void)m.on_vote(0, raised(41), now);
  (void)m.on_vote(1, raised(41), now);
  EXPECT_EQ(m.granted().token, fencing_token{41});
  EXPECT_EQ(m.highest_seen(), 41U) << "the next proposal is not above what nobody believed";
}

TEST(QuorumAcquire, OwnProposalCountsWhereANodeBelievedIt) {
  auto m = machine_for(3);
  (void)m.on_vote(0, fresh(), now);
  const auto steps = m.on_vote(1, stale(30), now);
  EXPECT_EQ(nodes_of(steps, verb::raise), (list{0, 1}));
  EXPECT_EQ(steps[0].token, p + 1);
}

TEST(QuorumAcquire, NodeThatGrantsDuringARaiseIsRaisedToo) {
  auto m = machine_for(3);
  (void)m.on_vote(0, fresh(), now);
  (void)m.on_vote(1, stale(130), now);
  const auto steps = m.on_vote(2, fresh(), now);
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0], (quorum_step{verb::raise, 2, 131}));
  (void)m.on_vote(2, raised(131), now);
  (void)m.on_vote(0, raised(131), now);
  EXPECT_EQ(m.granted().token, fencing_token{131});
}

TEST(QuorumAcquire, RefusedRaiseIsTriedHigherAndAnAnswerToTheLowerOneDoesNotCount) {
  auto m = machine_for(3);
  (void)m.on_vote(0, fresh(), now);
  (void)m.on_vote(1, stale(130), now);
  EXPECT_TRUE(m.on_silence(2, now).empty());
  const auto steps = m.on_vote(0, not_raised(131, 140), now);
  EXPECT_EQ(nodes_of(steps, verb::raise), (list{0, 1}));
  EXPECT_EQ(steps[0].token, 141U);
  (void)m.on_vote(1, raised(131), now);
  (void)m.on_vote(0, raised(141), now);
  EXPECT_FALSE(m.decided()) << "131 on one node and 141 on another is no majority of either";
  (void)m.on_vote(1, raised(141), now);
  EXPECT_EQ(m.granted().token, fencing_token{141});
}

TEST(QuorumAcquire, RaisesAreBoundedAndThenEverythingIsReleased) {
  auto m = machine_for(1);
  auto steps = m.on_vote(0, stale(130), now);
  unsigned raises = 0;
  while (!m.decided()) {
    ASSERT_EQ(nodes_of(steps, verb::raise), list{0});
    ++raises;
    steps = m.on_vote(0, not_raised(steps[0].token, steps[0].token), now);
  }
  EXPECT_EQ(raises, quorum_machine::raises_max);
  EXPECT_EQ(nodes_of(steps, verb::release), list{0});
}

// Its error does not say that the key is gone, and its answer to the next raise says that it is
// not.
TEST(QuorumAcquire, NodeThatFailsOneRaiseAndAnswersTheNextIsReleased) {
  auto m = machine_for(3);
  (void)m.on_vote(0, fresh(), now);
  (void)m.on_vote(1, stale(130), now);
  (void)m.on_vote(2, stale(130), now);
  (void)m.on_vote(1, not_raised(131, 140), now);
  EXPECT_EQ(nodes_of(m.on_vote(2, not_raised(131, 140), now), verb::raise), (list{0, 1, 2}));
  (void)m.on_vote(0, failed(errc::store_busy, "a script runs"), now);
  EXPECT_TRUE(m.may_hold(0));
  (void)m.on_vote(0, raised(141), now);
  EXPECT_TRUE(m.may_hold(0));
  const auto steps = m.on_vote(1, {.what = kind::not_ours}, now);
  EXPECT_TRUE(m.over());
  EXPECT_EQ(nodes_of(steps, verb::release), (list{0, 2}));
}

TEST(QuorumAcquire, KeyThatVanishedBeforeTheRaiseDoesNotCount) {
  auto m = machine_for(3);
  (void)m.on_vote(0, fresh(), now);
  (void)m.on_vote(1, stale(130), now);
  (void)m.on_vote(2, busy(1s), now);
  const auto steps = m.on_vote(0, {.what = kind::not_ours}, now);
  EXPECT_EQ(m.outcome(), quorum_outcome::busy);
  EXPECT_EQ(nodes_of(steps, verb::release), list{1});
}

TEST(QuorumAcquire, ReleasesMinorityAndSilentNodesWhenQuorumFails) {
  auto m = machine_for(5);
  (void)m.on_vote(0, fresh(), now);
  (void)m.on_vote(1, busy(1s), now);
  (void)m.on_vote(2, busy(1s), now);
  const auto steps = m.on_vote(3, busy(1s), now);
  EXPECT_EQ(m.outcome(), quorum_outcome::busy);
  EXPECT_TRUE(m.over());
  EXPECT_EQ(nodes_of(steps, verb::release), (list{0, 4})) << "4 has not answered";
}

TEST(QuorumAcquire, NodesWhoseAnswerWasLostAreReleased) {
  auto m = machine_for(3);
  (void)m.on_vote(0, failed(errc::outcome_unknown, "connection lost"), now);
  const auto steps = m.on_vote(1, failed(errc::store_unreachable, "down"), now);
  EXPECT_EQ(m.outcome(), quorum_outcome::failed);
  EXPECT_EQ(nodes_of(steps, verb::release), (list{0, 2})) << "1 was never asked";
}

TEST(QuorumAcquire, LateGrantsAreReleasedAsTheyCome) {
  auto m = machine_for(3);
  (void)m.on_vote(0, busy(1s), now);
  (void)m.on_vote(1, busy(1s), now);
  ASSERT_TRUE(m.decided());
  EXPECT_EQ(nodes_of(m.on_vote(2, fresh(), now), verb::release), list{2});
}

TEST(QuorumAcquire, DoesNotWaitForHungNodes) {
  auto m = machine_for(5);
  (void)m.on_silence(3, now);
  (void)m.on_silence(4, now);
  EXPECT_FALSE(m.waits_for(3));
  (void)m.on_vote(0, fresh(), now);
  (void)m.on_vote(1, fresh(), now);
  (void)m.on_vote(2, fresh(), now);
  EXPECT_EQ(m.outcome(), quorum_outcome::granted);
}

TEST(QuorumAcquire, SilentNodeThatAnswersBeforeTheDecisionCounts) {
  auto m = machine_for(3);
  (void)m.on_silence(0, now);
  (void)m.on_vote(0, fresh(), now);
  (void)m.on_vote(1, fresh(), now);
  EXPECT_EQ(m.outcome(), quorum_outcome::granted);
}

TEST(QuorumAcquire, GrantThatComesTooLateIsGivenBack) {
  auto m = machine_for(3);
  (void)m.on_vote(0, fresh(), now);
  const auto steps = m.on_vote(1, fresh(), now + 1s);
  EXPECT_EQ(m.outcome(), quorum_outcome::late);
  EXPECT_EQ(m.granted().counted_from, now) << "for the caller to see that it is late";
  EXPECT_EQ(m.granted().ttl, 1s);
  EXPECT_EQ(nodes_of(steps, verb::release), (list{0, 1, 2}));
}

TEST(QuorumAcquire, GivingUpDecides) {
  auto m = machine_for(3);
  (void)m.on_vote(0, fresh(), now);
  const auto steps = m.on_give_up(now);
  EXPECT_EQ(m.outcome(), quorum_outcome::failed);
  EXPECT_EQ(nodes_of(steps, verb::release), (list{0, 1, 2}));
}

TEST(QuorumAcquire, GivingUpDuringARaiseGivesEverythingBack) {
  auto m = machine_for(3);
  static_cast<void>(m.on_vote(0, fresh(), now));
  static_cast<void>(m.on_vote(1, stale(150), now));
  static_cast<void>(m.on_vote(0, raised(151), now));
  static_cast<void>(m.on_vote(1, not_raised(151, 160), now));
  ASSERT_FALSE(m.decided()) << "the third one may still come";
  const auto all = m.on_give_up(now);
  EXPECT_TRUE(m.decided());
  EXPECT_EQ(nodes_of(all, verb::release), (list{0, 1, 2}));
  EXPECT_EQ(nodes_of(all, verb::raise), list{});
}

TEST(QuorumAcquire, BusyNamesTheHolderOfMostAndWhenAMajorityComesFree) {
  auto m = machine_for(5);
  (void)m.on_vote(0, fresh(), now);
  (void)m.on_vote(1, busy(300ms), now);
  (void)m.on_vote(2, busy(100ms, "few"), now);
  (void)m.on_vote(3, busy(200ms), now);
  ASSERT_EQ(m.outcome(), quorum_outcome::busy);
  EXPECT_EQ(m.met().holder.host, "other");
  EXPECT_EQ(m.met().remaining, 200ms) << "one is ours: two more are needed";
}

TEST(QuorumAcquire, LockThatIsKeptForAWaiterIsBusyAndNamesNobody) {
  auto m = machine_for(3);
  (void)m.on_vote(0, kept_for_a_waiter(50ms), now);
  (void)m.on_vote(1, kept_for_a_waiter(40ms), now);
  ASSERT_EQ(m.outcome(), quorum_outcome::busy);
  EXPECT_EQ(m.met().holder.host, "");
  EXPECT_EQ(m.met().remaining, 50ms);
}

TEST(QuorumAcquire, MajorityWorksUnlessTooManyRefuseOrFailOrAreSilent) {
  auto m = machine_for(3);
  (void)m.on_vote(0, busy(1s), now);
  (void)m.on_vote(1, refused(errc::store_loading, "restarted"), now);
  EXPECT_TRUE(m.majority_works()) << "the third one has time to answer";
  (void)m.on_vote(2, failed(errc::store_unreachable, "down"), now);
  EXPECT_FALSE(m.majority_works());
  auto silent = machine_for(3);
  (void)silent.on_silence(0, now);
  (void)silent.on_silence(1, now);
  EXPECT_FALSE(silent.majority_works());
}

TEST(QuorumAcquire, HeldByAnotherIsBusyThoughAMinorityIsBroken) {
  auto three = machine_for(3);
  static_cast<void>(three.on_vote(0, failed(errc::store_unreachable, "down"), now));
  static_cast<void>(three.on_vote(1, busy(1s), now));
  EXPECT_EQ(three.outcome(), quorum_outcome::busy);

  auto five = machine_for(5);
  static_cast<void>(five.on_vote(0, refused(errc::store_loading, "restarted"), now));
  static_cast<void>(five.on_vote(1, refused(errc::store_loading, "restarted"), now));
  static_cast<void>(five.on_vote(2, busy(1s), now));
  EXPECT_EQ(five.outcome(), quorum_outcome::busy);

  auto broken = machine_for(3);
  static_cast<void>(broken.on_vote(0, failed(errc::store_unreachable, "down"), now));
  static_cast<void>(broken.on_vote(1, failed(errc::store_unreachable, "down"), now));
  EXPECT_EQ(broken.outcome(), quorum_outcome::failed);
}

TEST(QuorumAcquire, ErrorSaysWhatEachNodeSaid) {
  auto m = machine_for(5);
  (void)m.on_vote(0, fresh(), now);
  (void)m.on_vote(1, fresh(), now);
  (void)m.on_vote(2, failed(errc::store_unreachable, "connection refused"), now);
  (void)m.on_vote(3, refused(errc::store_loading, "restarted 12 s ago"), now);
  (void)m.on_silence(4, now);
  ASSERT_EQ(m.outcome(), quorum_outcome::failed);
  const auto why = m.why(names, 50ms);
  EXPECT_EQ(why.message,
            "2 of 5 granted; n3: connection refused; n4: restarted 12 s ago; "
            "n5: no answer in 50 ms");
  EXPECT_EQ(why.code, errc::store_loading) << "with n4 three nodes vote";
  ASSERT_EQ(why.nodes.size(), 5U);
  EXPECT_EQ(why.nodes[0].answer, "granted");
  EXPECT_EQ(why.nodes[4].answer, "no answer in 50 ms");
}

TEST(QuorumAcquire, ErrorSaysOnceWhatSeveralNodesSaid) {
  auto m = machine_for(5);
  (void)m.on_vote(0, fresh(), now);
  (void)m.on_vote(1, failed(errc::store_unreachable, "connection refused"), now);
  (void)m.on_vote(2, refused(errc::incompatible, "another set"), now);
  (void)m.on_vote(3, failed(errc::store_unreachable, "connection refused"), now);
  (void)m.on_vote(4, refused(errc::incompatible, "another set"), now);
  const auto why = m.why(names, 50ms);
  EXPECT_EQ(why.message, "1 of 5 granted; n2, n4: connection refused; n3, n5 refused: another set");
  EXPECT_EQ(why.nodes.size(), 5U);
}

TEST(QuorumAcquire, NodesThatOnlyHaveToWaitAreNoOutage) {
  const auto why_of = [](errc second, errc third) {
    auto m = machine_for(3);
    (void)m.on_vote(0, refused(errc::store_loading, "is empty"), now);
    (void)m.on_vote(1, refused(second, "is empty"), now);
    (void)m.on_vote(2, failed(third, "connection refused"), now);
    return m.why(names, 50ms);
  };
  const auto passes = why_of(errc::store_loading, errc::store_unreachable);
  EXPECT_EQ(passes.code, errc::store_loading);
  EXPECT_EQ(passes.message, "0 of 3 granted; n1, n2: is empty; n3: connection refused");
  EXPECT_EQ(why_of(errc::incompatible, errc::incompatible).code, errc::incompatible);
}

// It is decided before the second node answers, which may say either.
TEST(QuorumAcquire, NodeOfAnotherSetIsNoReasonToWait) {
  auto m = machine_for(3);
  (void)m.on_vote(0, refused(errc::store_loading, "is empty"), now);
  (void)m.on_vote(2, refused(errc::incompatible, "another set"), now);
  ASSERT_TRUE(m.decided());
  EXPECT_EQ(m.why(names, 50ms).code, errc::incompatible);
}

TEST(QuorumAcquire, OutcomeIsUnknownOnlyIfAMajorityMayHoldIt) {
  auto silent = machine_for(3);
  (void)silent.on_silence(0, now);
  (void)silent.on_silence(1, now);
  EXPECT_EQ(silent.why(names, 50ms).code, errc::outcome_unknown);
  auto down = machine_for(3);
  (void)down.on_vote(0, failed(errc::store_unreachable, "down"), now);
  (void)down.on_vote(1, failed(errc::store_unreachable, "down"), now);
  EXPECT_EQ(down.why(names, 50ms).code, errc::store_unreachable);
  auto other = machine_for(3);
  (void)other.on_vote(0, refused(errc::incompatible, "another configuration"), now);
  (void)other.on_vote(1, refused(errc::incompatible, "another configuration"), now);
  EXPECT_EQ(other.why(names, 50ms).code, errc::incompatible);
}

}  // namespace holdfast::test
