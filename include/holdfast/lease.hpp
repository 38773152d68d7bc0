// A held lock.
#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include <holdfast/export.hpp>
#include <holdfast/loss.hpp>
#include <holdfast/result.hpp>
#include <holdfast/token.hpp>

namespace holdfast {

namespace detail {
class lease_state;
class lease_access;
}  // namespace detail

// What is needed to take a lease up again in another process: see lease::detach().
struct lease_ticket {
  std::string name{};
  std::string owner{};  ///< 32 hexadecimal digits; a capability: it is all that a release needs
  fencing_token token{};
};

// A lock that is held. Thread-safe, but for moving and destroying. It goes with the object, not
// with a thread. Renewed in the background until it is released, lost or detached.
//
// | state    | held()  | lost() fired | release()       |
// |----------|---------|--------------|-----------------|
// | held     | true    | no           | gives it back   |
// | lost     | false   | yes          | errc::lease_lost|
// | released | false   | no, never    | ok, does nothing|
//
//   if (auto lease = mutex.try_acquire(500ms)) {
//     db.write(row, lease->token());
//     do_long_work(lease->lost());
//   }  // given back
class HOLDFAST_API lease {
 public:
  lease(lease&& other) noexcept;
  lease& operator=(lease&& other) noexcept;  // gives back what this one held, first
  lease(const lease&) = delete;
  lease& operator=(const lease&) = delete;

  // Sends the release and does not wait for it; if the store does not take it, it is tried in the
  // background for client_options::release_budget. Never throws.
  ~lease();

  [[nodiscard]] fencing_token token() const noexcept;
  // For a resource that is also shown tokens of other clients, which count 1, 2, 3 by INCR on a key
  // of their own (bsm/redislock's FenceKey): counts that key, in one request, if this lease has the
  // lock. Show that resource these and never token(), which is near 1.8e15: after one of those it
  // would refuse all others for ever. Once for each lease; a counter is only as good as the
  // server's data. For a mutex on one Redis server; errc::unsupported elsewhere. errc::lease_lost.
  // errc::outcome_unknown: a number may be left out, ask again.
  [[nodiscard]] result<fencing_token> counted_token(std::string_view counter);
  [[nodiscard]] const std::string& name() const noexcept;
  [[nodiscard]] std::string_view owner() const noexcept;

  // True while nobody else can hold the lock, as far as clocks can tell. Once false, false for
  // good: the first query after a pause that was too long says so.
  [[nodiscard]] bool held() const noexcept;

  // How long held() stays true if no renewal succeeds. Zero once lost or released.
  [[nodiscard]] std::chrono::nanoseconds remaining() const noexcept;

  // Fires once when the lease is lost, `margin` before the store could let go if it is because
  // nothing could be renewed. Callbacks run on a background thread of their own. Never fires
  // after release.
  [[nodiscard]] std::stop_token lost() const;
  [[nodiscard]] loss why_lost() const noexcept;

  // Extends now, by hand. Strict: a lock that is gone or has another holder is lost, never retaken.
  // errc::lease_lost; errc::outcome_unknown or store_unreachable leave the lease as it was.
  [[nodiscard]] result<void> renew();

  // Says that work moves on, for leases with lock_options::progress_within. Cheap.
  void progress() noexcept;

  // Gives the lock back and waits for the answer. Ok: it was still ours to the end.
  // errc::lease_lost: it had ended before; if the store still has it for us, because it was our
  // clock that ended it, it is given back all the same, so call this when the work has stopped.
  // errc::outcome_unknown: no answer came; the lock is free after at most one TTL, and the release
  // goes on being tried for the release budget.
  [[nodiscard]] result<void> release();

  // Stops renewing without giving the lock back, and returns what mutex::adopt() needs. The lock
  // is free at most one TTL later if nobody adopts it. Throws errc::lease_lost if it has ended.
  lease_ticket detach();

 private:
  friend class detail::lease_access;
  explicit lease(std::shared_ptr<detail::lease_state> state) noexcept;
  std::shared_ptr<detail::lease_state> state_;
};

}  // namespace holdfast
