// Decides, for one lease, when to renew and when it is lost.
#pragma once

#include <holdfast/loss.hpp>

#include "core/settings.hpp"
#include "core/types.hpp"

namespace holdfast::core {

// No I/O, no clock: `now` comes with every event. Not thread-safe.
//
// | state | event                           | next  | tells   |
// |-------|---------------------------------|-------|---------|
// | held  | tick, before the deadline       | held  |         |
// | held  | tick, at the deadline           | lost  | why     |
// | held  | renewed, answer in time         | held  |         |
// | held  | renewed, answer after deadline  | lost  | expired |
// | held  | refused (gone, taken, session)  | lost  | why     |
// | held  | end (release, detach)           | ended |         |
// | lost  | anything                        | lost  |         |
// | ended | anything                        | ended |         |
//
// A loss is told by exactly one call; `loss::none` from all others.
class lease_machine {
 public:
  // `held_from`: when its holder got it, which for a hand-over is later than the store's grant.
  lease_machine(const lease_rule& rule, const grant& granted, time_point held_from) noexcept;

  // Lets time pass.
  [[nodiscard]] loss tick(time_point now) noexcept;

  // When tick() or a renewal is due next; `never` once lost or ended.
  [[nodiscard]] time_point next_event() const noexcept;
  // Whether to send a renewal now: it is due at `due_by`, none is under way and the holder makes
  // progress. True promises that renewed(), refused() or renewal_failed() will follow.
  [[nodiscard]] bool take_renewal(time_point due_by, time_point now) noexcept;
  [[nodiscard]] loss renewed(duration ttl, time_point counted_from, time_point now) noexcept;
  [[nodiscard]] loss refused(loss why) noexcept;
  // Not known what became of it: tried again soon, until the deadline.
  [[nodiscard]] loss renewal_failed(time_point now) noexcept;

  // A renewal is due at `when`, if not before: the store may have forgotten the lease.
  void renew_by(time_point when) noexcept;

  void progress(time_point now) noexcept { last_progress_ = now; }

  // Released or detached: no renewal and no loss from here on. False if it was over already.
  bool end() noexcept;

  [[nodiscard]] bool is_held() const noexcept { return state_ == state::held; }
  [[nodiscard]] loss why_lost() const noexcept { return why_; }
  // Until when the lease can be relied on. Moves with renewals.
  [[nodiscard]] time_point deadline() const noexcept;
  // When a store that counts by TTL lets go by itself, as far as we know.
  [[nodiscard]] time_point expiry() const noexcept { return counted_from_ + granted_ttl_; }
  // What the store granted last, as it was asked for then.
  [[nodiscard]] duration granted_ttl() const noexcept { return granted_ttl_; }
  [[nodiscard]] time_point counted_from() const noexcept { return counted_from_; }
  [[nodiscard]] const lease_rule& rule() const noexcept { return rule_; }

 private:
  enum class state { held, lost, ended };

  [[nodiscard]] loss lose(loss why) noexcept;
  [[nodiscard]] bool wants_renewal() const noexcept;
  [[nodiscard]] bool is_stalled(time_point now) const noexcept;

  lease_rule rule_;
  state state_ = state::held;
  loss why_ = loss::none;
  bool renewing_ = false;
  duration granted_ttl_;
  time_point counted_from_;
  time_point valid_until_;
  time_point hold_ends_;
  time_point renew_at_;
  time_point last_progress_;
};

// How long to wait for the answer to a renewal: little enough that there is time to try again on
// another connection before the first of its leases is lost.
[[nodiscard]] duration renewal_patience(time_point earliest_deadline, time_point now,
                                        duration operation_timeout) noexcept;

// A grant by claim is short: it is renewed after so long, by when a lock that is held briefly has
// been given back, not at a third of its time.
inline constexpr duration claim_renewal_pause = std::chrono::milliseconds{50};

// Leases that come due within this of each other are renewed together: waiting for company costs
// nothing while two thirds of the TTL are left, and is what makes one request carry a hundred.
// How many of `nearly_due` to take along with the `due` ones among them: so that requests are full,
// and what would only begin another one waits for its own time.
[[nodiscard]] std::size_t worth_taking(std::size_t due, std::size_t nearly_due,
                                       std::size_t batch_max) noexcept;
inline constexpr duration renewal_slack_max = std::chrono::seconds{5};
[[nodiscard]] duration renewal_slack(duration ttl) noexcept;

}  // namespace holdfast::core
