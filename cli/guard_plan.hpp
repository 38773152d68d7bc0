// When a command must be told to stop and when it must be killed: the decision, without the doing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace holdfast::cli {

// Times are nanoseconds of one clock, passed in. Once it says terminate there is no way back: a
// command that was told to stop is not trusted with the lock again, whatever arrives later.
//
// | state       | on                         | goes to     | due() says |
// |-------------|----------------------------|-------------|------------|
// | guarding    | extend()                   | guarding    | wait       |
// | guarding    | term_at, lose(), abandon() | terminating | terminate  |
// | terminating | kill_at                    | killed      | kill       |
// | guarding    | finish()                   | finished    | wait       |
//
// Not thread-safe.
class guard_plan {
 public:
  enum class step { wait, terminate, kill };
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  // The lease was renewed: both moments move.
  void extend(std::int64_t term_at, std::int64_t kill_at) noexcept {
    if (state_ != state::guarding) return;
    term_at_ = term_at;
    kill_at_ = std::max(term_at, kill_at);
  }

  // The lease is known to be lost: terminate now, and kill at `kill_at`, never later than planned.
  void lose(std::int64_t now, std::int64_t kill_at) noexcept {
    if (state_ != state::guarding) return;
    term_at_ = std::min(term_at_, now);
    kill_at_ = std::min(kill_at_, std::max(now, kill_at));
  }

  // Nobody is there to renew any more; the lease runs on until it expires.
  void abandon(std::int64_t now, std::int64_t grace) noexcept { lose(now, now + grace); }

  // The command has ended by itself: nothing is left to guard.
  void finish() noexcept {
    if (state_ == state::guarding) state_ = state::finished;
  }

  [[nodiscard]] step due(std::int64_t now) noexcept {
    if (state_ == state::guarding && now >= term_at_) {
      state_ = state::terminating;
      return step::terminate;
    }
    if (state_ == state::terminating && now >= kill_at_) {
      state_ = state::killed;
      return step::kill;
    }
    return step::wait;
  }

  // When to ask due() again if nothing else happens.
  [[nodiscard]] std::int64_t next() const noexcept {
    if (state_ == state::guarding) return term_at_;
    if (state_ == state::terminating) return kill_at_;
    return never;
  }

  [[nodiscard]] bool terminating() const noexcept {
    return state_ == state::terminating || state_ == state::killed;
  }
  [[nodiscard]] bool killed() const noexcept { return state_ == state::killed; }
  [[nodiscard]] std::int64_t kill_at() const noexcept { return kill_at_; }

 private:
  enum class state { guarding, terminating, killed, finished };
  state state_ = state::guarding;
  std::int64_t term_at_ = never;
  std::int64_t kill_at_ = never;
};

}  // namespace holdfast::cli
