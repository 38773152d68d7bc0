// Decides whether to poll a socket for a moment before sleeping on it.
#pragma once

namespace holdfast::core {

// Polling is cheaper than sleeping when the reply comes sooner than a sleeping thread could be
// woken; when it does not, it wastes a core. So it goes on while two polls in three succeed, and
// then rests. A trial after the rest is a few polls, not one: on an idle machine the first of them
// fails because everything sleeps, and the ones after it show what polling is worth.
// A value type.
class adaptive_spin {
 public:
  static constexpr int credit_max = 16;
  static constexpr int trial_credit = 6;
  static constexpr int missed_costs = 2;
  static constexpr int waits_at_rest = 256;

  // Before each wait.
  [[nodiscard]] bool worth_it() noexcept {
    if (credit_ > 0) return true;
    if (--rest_ > 0) return false;
    credit_ = trial_credit;
    return true;
  }
  [[nodiscard]] bool pays() const noexcept { return credit_ > 0; }
  // After a wait that was polled: whether the reply came meanwhile.
  void on_polled(bool caught) noexcept {
    credit_ = caught ? (credit_ < credit_max ? credit_ + 1 : credit_max) : credit_ - missed_costs;
    if (credit_ <= 0) rest_ = waits_at_rest;
  }

 private:
  int credit_ = credit_max;
  int rest_ = 0;
};

}  // namespace holdfast::core
