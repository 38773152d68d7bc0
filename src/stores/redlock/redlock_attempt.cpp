#include "stores/redlock/redlock_attempt.hpp"

#include <algorithm>
#include <utility>

#include "core/backoff.hpp"
#include "core/planted.hpp"
#include "runtime/clock.hpp"
#include "runtime/random.hpp"
#include "stores/redis/script_values.hpp"

namespace holdfast::stores::redlock {

namespace {

using core::planted;
using core::planted_bug;
using redis::milliseconds_text;
using std::chrono::milliseconds;

// A waiter asks again this often, whatever it hears: anywhere between, so that they spread.
constexpr core::duration ask_again_min = milliseconds{30};
constexpr core::duration ask_again_max = milliseconds{60};

std::uint64_t wall_us() {
  using std::chrono::microseconds;
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<microseconds>(runtime::wall_now().time_since_epoch()).count());
}

}  // namespace

redlock_attempt::redlock_attempt(std::shared_ptr<node_set> on, std::shared_ptr<redlock_lock> lock,
                                 attempt_spec what)
    : set_{std::move(on)},
      lock_{std::move(lock)},
      spec_{std::move(what)},
      id_{runtime::fresh_owner()} {}

void redlock_attempt::begin_to_wait() {
  if (ticket_.empty()) ticket_ = std::to_string(wall_us());
  auto fresh = std::make_shared<queued_waiter>(runtime::fresh_owner(), set_->turns().inbox(),
                                               ticket_, set_->describe_us(spec_.label));
  const std::lock_guard guard{m_};
  fresh->woken = woken_;
  waiter_ = fresh;
  set_->turns().expect(fresh);
}

std::string redlock_attempt::stop_waiting() {
  const std::lock_guard guard{m_};
  const auto gone = std::exchange(waiter_, nullptr);
  if (!gone) return {};
  gone->done = true;
  set_->turns().forget(*gone);
  return gone->entered ? gone->entry() : std::string{};
}

void redlock_attempt::ask(core::time_point until, caller& by, on_answer done) {
  if (spec_.ttl > set_->config.max_ttl) {
    return done(
        fail(errc::invalid_argument, "the TTL is above the set's max_ttl of " +
                                         milliseconds_text(set_->config.max_ttl) +
                                         " ms, which is how long a node that lost data does not "
                                         "vote"));
  }
  if (spec_.may_wait && !waiter_) begin_to_wait();
  if (asks_++ > 0 && !planted(planted_bug::fresh_id)) id_ = runtime::fresh_owner();
  lock_->asks(id_);
  const auto proposal = lock_->propose(wall_us());
  redlock_lock::acquire_args args{
      .ttl = milliseconds_text(spec_.ttl),
      .token = std::to_string(proposal),
      .since = std::to_string(runtime::wall_ms().count()),
      .holder = waiter_ ? waiter_->holder : set_->describe_us(spec_.label)};
  // A client that a majority does not answer would be told its turn, and could not use it.
  const bool queues = waiter_ && (waiter_->entered || set_->majority_answers());
  if (queues) {
    args.waiter = waiter_->address;
    args.ticket = waiter_->ticket;
    args.asked_before = waiter_->entered.exchange(true);
  }
  if (waiter_) set_->turns().asks(*waiter_);
  const auto votes =
      std::make_shared<vote_round>(set_, lock_, id_, spec_.ttl, queues ? waiter_ : nullptr);
  votes->ask(proposal, std::move(args));
  votes->when_decided(
      until, by, [this, votes = votes.get(), done = std::move(done)] { done(conclude(*votes)); });
}

result<core::answer> redlock_attempt::conclude(vote_round& votes) {
  set_->watch_replies();
  auto verdict = votes.look();
  if (planted(planted_bug::early_count)) verdict.granted.counted_from = runtime::now();
  if (planted(planted_bug::elapsed)) {
    verdict.granted.ttl = std::min(verdict.granted.ttl, spec_.ttl);
  }
  set_->majority_answers(verdict.majority_works);
  lock_->saw(std::max(verdict.highest_seen, verdict.granted.token.value()));
  if (verdict.outcome == core::quorum_outcome::granted) {
    lock_->granted(id_, verdict.granted.token);
    if (!stop_waiting().empty()) votes.leave_queues();
    return core::answer{verdict.granted};
  }
  votes.give_back();
  lock_->take_out(id_);
  switch (verdict.outcome) {
    case core::quorum_outcome::busy:
      if (waiter_) {
        set_->turns().open();
        verdict.met.queued = waiter_->entered;
        verdict.met.ask_within =
            core::between(ask_again_min, ask_again_max, runtime::random_bits());
      }
      return core::answer{std::move(verdict.met)};
    case core::quorum_outcome::late:
      // That it is late is for the caller to see.
      return core::answer{verdict.granted};
    default:
      break;
  }
  if (verdict.why.code == errc::outcome_unknown) unanswered_.push_back(id_);
  // It may not be asked again, nor withdrawn: some nodes may have it in their queue.
  if (const auto entry = stop_waiting(); !entry.empty()) {
    lock_->give_back(id_, entry, redlock_lock::turn::nobodys,
                     core::after(runtime::now(), spec_.ttl));
  }
  if (verdict.why.code == errc::store_loading) {
    verdict.why.message.append(init_advice);
    return core::answer{core::not_yet{std::move(verdict.why)}};
  }
  return fail(std::move(verdict.why));
}

void redlock_attempt::wait(core::time_point until, caller& by, on_woken done) {
  set_->turns().wait(waiter_, set_->majority(), until, by,
                     [done = std::move(done)] { done(std::nullopt); });
}

void redlock_attempt::wake() {
  const std::lock_guard guard{m_};
  woken_ = true;
  if (waiter_) set_->turns().wake(*waiter_);
}

// Sure if a majority has confirmed: what is left elsewhere is no majority and ends with its TTL.
void redlock_attempt::withdraw(core::time_point until, caller& by, on_removal done) {
  if (planted(planted_bug::withdrawing)) return done(removal::gone);
  const auto entry = stop_waiting();
  lock_->take_out(id_);
  const auto give_up = core::after(runtime::now(), spec_.ttl);
  for (const auto& id : unanswered_)
    lock_->give_back(id, {}, redlock_lock::turn::nobodys, give_up);
  const auto asked = lock_->ask_to_release(id_, entry, redlock_lock::turn::nobodys, give_up);
  asked->collect(until, by, [set = set_, done = std::move(done)](const auto& answers) {
    set->watch_replies();
    const auto confirmed =
        std::count_if(answers.begin(), answers.end(), [](const auto& one) { return one && *one; });
    done(static_cast<std::size_t>(confirmed) >= set->majority() ? removal::gone : removal::unsure);
  });
}

}  // namespace holdfast::stores::redlock
