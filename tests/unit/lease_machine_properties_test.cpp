// The lease machine against a model that shares none of its code: random lives of a lease.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "core/lease_machine.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using core::duration;
using core::lease_machine;
using core::lease_rule;
using core::time_point;

constexpr time_point origin{1h};

enum class happening { tick, renewed, refused, failed, progress, take, end };

struct step {
  happening what;
  duration later;  // since the step before
  duration age;    // renewed: how long ago the request left
  duration ttl;    // renewed: what was granted
};

std::ostream& operator<<(std::ostream& out, const step& s) {
  return out << "{" << static_cast<int>(s.what) << " +" << s.later.count() << "ns age "
             << s.age.count() << " ttl " << s.ttl.count() << "}";
}

rc::Gen<duration> any_ms(int least, int most) {
  return rc::gen::map(rc::gen::inRange(least, most + 1),
                      [](int ms) { return duration{std::chrono::milliseconds{ms}}; });
}

rc::Gen<lease_rule> any_rule() {
  return rc::gen::exec([] {
    lease_rule rule;
    rule.ttl = *any_ms(20, 3000);
    rule.validity.drift_per_mille = static_cast<unsigned>(*rc::gen::inRange(0, 101));
    rule.validity.margin = rule.ttl * *rc::gen::inRange(0, 51) / 100;
    rule.renew = *rc::gen::weightedElement<bool>({{4, true}, {1, false}});
    rule.max_hold = *rc::gen::oneOf(rc::gen::just(duration::zero()), any_ms(1, 6000));
    rule.progress_within = *rc::gen::oneOf(rc::gen::just(duration::zero()), any_ms(1, 1000));
    return rule;
  });
}

rc::Gen<std::vector<step>> any_life() {
  return rc::gen::container<std::vector<step>>(rc::gen::exec([] {
    step s{};
    s.what = *rc::gen::weightedElement<happening>({{6, happening::tick},
                                                   {8, happening::renewed},
                                                   {1, happening::refused},
                                                   {3, happening::failed},
                                                   {4, happening::progress},
                                                   {6, happening::take},
                                                   {1, happening::end}});
    s.later = *any_ms(0, 400);
    s.age = *any_ms(0, 600);
    s.ttl = *any_ms(10, 3000);
    return s;
  }));
}

// What must be true of a lease, written from the promise and not from the machine. Floating point
// is deliberate: a second way to the same number, and exact for such TTLs.
class model {
 public:
  model(const lease_rule& rule, duration ttl) : rule_{rule}, end_{end_of(origin, ttl)} {}

  [[nodiscard]] time_point deadline() const {
    return rule_.max_hold == 0ns ? end_ : std::min(end_, origin + rule_.max_hold);
  }
  // Time alone has ended it, whatever the event brings.
  void pass(time_point now) {
    if (now >= deadline()) over_ = true;
  }
  void renewed(const step& s, time_point now) {
    if (over_ || now - s.age <= newest_) return;
    newest_ = now - s.age;
    end_ = end_of(newest_, s.ttl);
    pass(now);
  }
  void finish() { over_ = true; }
  [[nodiscard]] bool over() const { return over_; }

 private:
  [[nodiscard]] time_point end_of(time_point from, duration ttl) const {
    const auto per_mille = static_cast<double>(rule_.validity.drift_per_mille);
    const double drift = static_cast<double>(ttl.count()) / 1000.0 * per_mille;
    const auto whole = static_cast<duration::rep>(drift + 0.5);  // ttl is whole milliseconds
    return from + ttl - duration{whole} - rule_.validity.margin;
  }

  lease_rule rule_;
  time_point newest_ = origin;
  time_point end_;
  bool over_ = false;
};

// Does one step to both and gives what the machine told.
loss play(lease_machine& lease, model& expected, const step& s, time_point now) {
  if (s.what != happening::progress && s.what != happening::take && s.what != happening::end &&
      s.what != happening::refused) {
    expected.pass(now);
  }
  switch (s.what) {
    case happening::tick:
      return lease.tick(now);
    case happening::renewed:
      expected.renewed(s, now);
      return lease.renewed(s.ttl, now - s.age, now);
    case happening::refused:
      expected.finish();
      return lease.refused(loss::taken);
    case happening::failed:
      return lease.renewal_failed(now);
    case happening::progress:
      lease.progress(now);
      return loss::none;
    case happening::take:
      static_cast<void>(lease.take_renewal(now, now));
      return loss::none;
    case happening::end:
      expected.finish();
      static_cast<void>(lease.end());
      return loss::none;
  }
  return loss::none;
}

}  // namespace

RC_GTEST_PROP(LeaseMachineProperty, AgreesWithTheModelOnWhenItIsHeldAndUntilWhen, ()) {
  const auto rule = *any_rule();
  lease_machine lease{rule, {fencing_token{1}, rule.ttl, origin}, origin};
  model expected{rule, rule.ttl};
  auto now = origin;
  for (const auto& s : *any_life()) {
    now += s.later;
    static_cast<void>(play(lease, expected, s, now));
    RC_ASSERT(lease.is_held() == !expected.over());
    if (lease.is_held()) RC_ASSERT(lease.deadline() == expected.deadline());
  }
}

RC_GTEST_PROP(LeaseMachineProperty, TellsLossExactlyOnceAndNeverAfterItsEnd, ()) {
  const auto rule = *any_rule();
  lease_machine lease{rule, {fencing_token{1}, rule.ttl, origin}, origin};
  model expected{rule, rule.ttl};
  auto now = origin;
  int told = 0;
  bool ended = false;
  for (const auto& s : *any_life()) {
    now += s.later;
    const bool held_before = lease.is_held();
    const auto what = play(lease, expected, s, now);
    if (s.what == happening::end && held_before) ended = true;
    if (what != loss::none) {
      ++told;
      RC_ASSERT(held_before);
      RC_ASSERT(!lease.is_held());
      RC_ASSERT(lease.why_lost() == what);
    }
    RC_ASSERT((held_before && !lease.is_held()) == (what != loss::none || (held_before && ended)));
  }
  if (!ended && lease.tick(now + 1h) != loss::none) ++told;
  RC_ASSERT(told == (ended ? 0 : 1));
  RC_ASSERT((lease.why_lost() == loss::none) == ended);
}

// What the client does: sleeps until next_event(), ticks, takes the renewal if there is one, and
// hears its answer some time later. It must never find itself woken with nothing to do.
RC_GTEST_PROP(LeaseMachineProperty, NextEventNeverMakesItsCallerSpin, ()) {
  const auto rule = *any_rule();
  lease_machine lease{rule, {fencing_token{1}, rule.ttl, origin}, origin};
  const auto slack = core::renewal_slack(rule.ttl);
  auto now = origin;
  for (const auto& s : *any_life()) {
    if (lease.next_event() == core::never) break;
    now = std::max(now, lease.next_event());
    const bool told = lease.tick(now) != loss::none;
    const bool asked = lease.is_held() && lease.take_renewal(now + slack, now);
    RC_ASSERT(told || asked || lease.next_event() > now);
    if (!asked) continue;
    const auto sent = now;
    now += s.later + 1ns;
    static_cast<void>(s.what == happening::failed ? lease.renewal_failed(now)
                                                  : lease.renewed(rule.ttl, sent, now));
    // An answer that took longer than a third of the TTL leaves the next renewal due already.
    const bool late = now - sent >= rule.ttl / 3;
    RC_ASSERT(late || lease.next_event() > now);
  }
}

RC_GTEST_PROP(LeaseMachineProperty, RenewedInTimeItIsHeldForAsLongAsIsAllowed, ()) {
  auto rule = *any_rule();
  rule.renew = true;
  rule.progress_within = 0ns;
  lease_machine lease{rule, {fencing_token{1}, rule.ttl, origin}, origin};
  for (int round = 0; round < 100; ++round) {
    const auto now = lease.next_event();
    if (rule.max_hold > 0ns && now == origin + rule.max_hold) {
      RC_ASSERT(lease.tick(now) == loss::max_hold);
      return;
    }
    RC_ASSERT(lease.tick(now) == loss::none);
    RC_ASSERT(lease.take_renewal(now, now));
    RC_ASSERT(lease.renewed(rule.ttl, now, now) == loss::none);
  }
  RC_ASSERT(lease.is_held());
}

}  // namespace holdfast::test
