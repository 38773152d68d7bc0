// What a store must be able to do. One suite, tests/contract, holds every store to this.
//
// The interface fits stores that expire keys (Redis), quorums of them, and stores with sessions
// (ZooKeeper, etcd): an attempt asks, waits and is withdrawn; renewal is for a batch, which a
// session store answers with one keep-alive; TTLs are what the store granted; a store that hears of
// a loss by itself pushes it.
//
// Rules: nothing here throws. What takes a `caller` does not block: it ends by `until`, and then
// calls `done` once, perhaps before it returns, and always in turn with the caller
// (stores/waiting.hpp). Calls may come from many threads, except renew(), which only the renewing
// thread calls and which must not queue behind other traffic.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/guarantees.hpp>
#include <holdfast/loss.hpp>
#include <holdfast/result.hpp>
#include <holdfast/status.hpp>

#include "core/lock_kind.hpp"
#include "core/release_machine.hpp"
#include "core/types.hpp"
#include "stores/counter.hpp"
#include "stores/waiting.hpp"

namespace holdfast::stores {

// Waiters of a lock, and holders, that are shown one by one; beyond it they are only counted.
inline constexpr std::size_t waiters_shown_max = 100;

using core::removal;

// What one acquisition wants.
struct attempt_spec {
  core::duration ttl{};
  std::string label{};
  // Whether to take a place in the queue, if the store has one; otherwise it only asks.
  bool may_wait = false;
  // Of a grant that the store makes by itself: how long the attempt has to take it up.
  core::duration claim_ttl{};
  // How many tokens to reserve.
  std::uint64_t block = 1;
  // How much of a lock that several may hold: so many units, or all of it.
  std::uint32_t units = core::whole;
};

// One acquisition, from its first ask to its grant or withdrawal. Not thread-safe, but for wake():
// one call is under way at a time, and the attempt outlives it.
class attempt {
 public:
  using on_answer = std::function<void(result<core::answer>)>;
  // With what the store granted meanwhile, if that ended the wait.
  using on_woken = std::function<void(std::optional<core::grant>)>;
  using on_removal = std::function<void(result<removal>)>;

  attempt() = default;
  attempt(const attempt&) = delete;
  attempt& operator=(const attempt&) = delete;
  virtual ~attempt() = default;

  // Whose the lock is, once it is granted.
  [[nodiscard]] virtual core::owner_id id() const = 0;

  // Asks for the lock. Asking twice with one attempt is answered once: if it holds, it is granted
  // again with the same token. A failure of errc::outcome_unknown may have been granted.
  virtual void ask(core::time_point until, caller& by, on_answer done) = 0;
  // After busy: ends when the lock is granted, when asking again may be answered differently, at
  // `until`, or by wake().
  virtual void wait(core::time_point until, caller& by, on_woken done) = 0;
  // Ends the wait that is under way, and every later one. From any thread, if the caller is a
  // thread that waits; in turn with the caller otherwise.
  virtual void wake() = 0;
  // Takes the attempt back, granted or not, as far as can be known by `until`.
  virtual void withdraw(core::time_point until, caller& by, on_removal done) = 0;
};

// What became of one lease that was to be extended.
struct renewal {
  bool renewed = false;
  // When not renewed. None: of this one it is not known, though others were answered; in a batch.
  loss why = loss::none;
  // When renewed: what was granted.
  core::duration ttl{};
  core::time_point counted_from{};
  fencing_token token{};
};

// One lock of a store. Lives as long as anybody uses the name; keeps what asking costs to compute.
class store_lock {
 public:
  using on_removal = attempt::on_removal;
  using on_renewal = std::function<void(result<renewal>)>;

  store_lock() = default;
  store_lock(const store_lock&) = delete;
  store_lock& operator=(const store_lock&) = delete;
  virtual ~store_lock() = default;

  // The attempt must not outlive the lock.
  [[nodiscard]] virtual std::unique_ptr<attempt> begin(attempt_spec what) = 0;

  // Gives back a held lock and waits for the answer.
  virtual void release(const core::owner_id& id, core::time_point until, caller& by,
                       on_removal done) = 0;
  // Gives it back without waiting. What could not be sent or was not answered is tried again in the
  // background until `give_up`. An ask on this lock that comes later, from this client, is answered
  // after it.
  virtual void release_later(const core::owner_id& id, core::time_point give_up) noexcept = 0;

  // Extends one lease by hand, strictly: never brings one back. `token`: of the grant that is to be
  // extended, and no other; zero: whatever it is, and the answer says.
  virtual void extend(const core::owner_id& id, fencing_token token, core::duration ttl,
                      core::time_point until, caller& by, on_renewal done) = 0;

  // Of a shared lock: what a writer holds becomes what a reader holds, without a moment in between,
  // and readers that wait next come in. Extends it as well.
  virtual void downgrade(const core::owner_id& id, fencing_token token, core::duration ttl,
                         core::time_point until, caller& by, on_renewal done) {
    static_cast<void>(id), static_cast<void>(token), static_cast<void>(ttl);
    static_cast<void>(until), static_cast<void>(by);
    const auto over = std::move(done);
    over(core::fail(errc::unsupported, "this store has no shared locks"));
  }
  // Of a semaphore: how many permits there are from now on. Blocks.
  [[nodiscard]] virtual result<void> resize(std::uint32_t permits, core::time_point until) {
    static_cast<void>(permits), static_cast<void>(until);
    return core::fail(errc::unsupported, "this store has no semaphores");
  }

  // For the holder: one more than `counter`, a key of the store that clients of other kinds count
  // as well, has said before. errc::lease_lost if another holds the lock, or nobody. Blocks.
  [[nodiscard]] virtual result<fencing_token> count(const core::owner_id& id,
                                                    std::string_view counter,
                                                    core::time_point until) {
    static_cast<void>(id), static_cast<void>(counter), static_cast<void>(until);
    return core::fail(errc::unsupported,
                      "only a mutex on one Redis server counts tokens on a key of its own");
  }

  // Another keeps the lease from now on; it was not given back.
  virtual void forget(const core::owner_id& id) noexcept { static_cast<void>(id); }

  // For people who look. These block.
  [[nodiscard]] virtual result<lock_status> inspect(core::time_point until) = 0;
  // Removes the lock if it is held with this token; errc::not_held otherwise.
  [[nodiscard]] virtual result<void> break_with(fencing_token token, core::time_point until) = 0;
  // From now on the lease with this token is not extended: asked to, the store says loss::recalled.
  // Gives how long it keeps the lock for it at most. errc::not_held as above.
  [[nodiscard]] virtual result<core::duration> recall(fencing_token token, core::time_point until) {
    static_cast<void>(token), static_cast<void>(until);
    return core::fail(errc::unsupported,
                      "this store cannot ask a holder to give back this kind of lock");
  }
};

// A held lease, as renewal sees it.
struct held {
  store_lock* lock;
  core::owner_id id;
  core::duration ttl;
  fencing_token token{};
};

// What a store tells by itself, from any of its threads.
struct store_events {
  std::function<void(const core::owner_id&, loss)> lost;
  std::function<void()> reconnected;
  // Leases must be renewed now: the store may have come back without them.
  std::function<void()> doubtful;
  // A release that nobody waits for did not get through, and is not tried any more.
  std::function<void(std::string_view lock, const failure&)> release_given_up;
  std::function<void(core::duration step)> clock_stepped;
};

// Which leases must be renewed now, because they may be lost.
struct doubt {
  bool about_all = false;
  std::vector<std::string> names{};  // of locks
};

class store {
 public:
  using on_renewals = std::function<void(result<std::vector<renewal>>)>;

  store() = default;
  store(const store&) = delete;
  store& operator=(const store&) = delete;
  virtual ~store() = default;

  // Called once, before anything else.
  virtual void on_events(store_events events) = 0;

  // errc::unsupported, with the reason, if the store cannot carry this kind.
  [[nodiscard]] virtual result<std::shared_ptr<store_lock>> open(std::string_view name,
                                                                 const core::lock_kind& kind) = 0;
  [[nodiscard]] result<std::shared_ptr<store_lock>> open(std::string_view name) {
    return open(name, {});
  }

  // The same for a number that is counted and waited for.
  [[nodiscard]] virtual result<std::shared_ptr<store_counter>> open_counter(
      std::string_view name, const core::counter_kind& kind) {
    static_cast<void>(name), static_cast<void>(kind);
    return core::fail(errc::unsupported, "this store has no latches");
  }

  // Most leases that one renew() call takes.
  [[nodiscard]] virtual std::size_t renewal_batch_max() const noexcept = 0;
  // One answer for each lease, in order, or a failure for all of them.
  virtual void renew(std::vector<held> leases, core::time_point until, caller& by,
                     on_renewals done) = 0;

  // Between renewals, on the renewing thread: returns no doubt when `wake_fd` can be read, and
  // otherwise which leases must be renewed now: because a connection has ended, and the store may
  // come back without them, or because it has told of a change. A store that watches neither says
  // no doubt at once.
  [[nodiscard]] virtual doubt await_doubt(int wake_fd) {
    static_cast<void>(wake_fd);
    return {};
  }
  // True if it tells of changes to a lock once a lease on it has been renewed.
  [[nodiscard]] virtual bool tells_changes() const noexcept { return false; }

  // A walk may take many requests: each has `timeout`. Blocks.
  [[nodiscard]] virtual result<std::vector<lock_status>> list(std::string_view pattern,
                                                              core::duration timeout) = 0;
  [[nodiscard]] virtual guarantees describe() const = 0;

  // Waits until releases under way have ended, or `until`. Called when a client goes.
  virtual void flush(core::time_point until) noexcept = 0;

  // Ends calls that are under way, as far as it can, so that threads in them can be joined soon.
  virtual void close() noexcept {}
};

}  // namespace holdfast::stores
