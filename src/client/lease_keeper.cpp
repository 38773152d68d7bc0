#include "client/lease_keeper.hpp"

#include <poll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "runtime/clock.hpp"
#include "runtime/socket.hpp"

namespace holdfast::detail {

namespace {

// Connections that end or are made one after the other are one reason to renew, or two.
constexpr core::duration renew_all_pause = std::chrono::milliseconds{100};

}  // namespace

lease_keeper::lease_keeper(stores::store& store, core::duration operation_timeout, hooks tell)
    : store_{store},
      operation_timeout_{operation_timeout},
      batch_max_{store.renewal_batch_max()},
      tell_{std::move(tell)},
      alarm_{::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC)} {}

lease_keeper::~lease_keeper() {
  {
    const std::lock_guard guard{m_};
    stopping_ = true;
    set_alarm(core::time_point{core::duration{1}});
  }
  work_.wake();
  if (timer_.joinable()) timer_.join();
  if (renewer_.joinable()) renewer_.join();
}

// Under m_.
void lease_keeper::set_alarm(core::time_point when) noexcept {
  alarm_at_ = when;
  itimerspec spec{};
  if (when != core::never) {
    const auto ns = std::max<std::int64_t>(1, when.time_since_epoch().count());
    spec.it_value.tv_sec = ns / 1'000'000'000;
    spec.it_value.tv_nsec = ns % 1'000'000'000;
  }
  ::timerfd_settime(alarm_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
}

// Under m_. The alarm only ever moves forward here: an alarm that rings for a lease that has gone
// costs one look every now and then, moving it for every lease a system call each.
void lease_keeper::schedule(lease_state& lease, core::time_point when) {
  if (lease.scheduled_at != core::never) schedule_.erase({lease.scheduled_at, &lease});
  lease.scheduled_at = lease.forgotten ? core::never : when;
  if (lease.scheduled_at == core::never) return;
  schedule_.emplace(when, &lease);
  if (when < alarm_at_) set_alarm(when);
}

result<void> lease_keeper::watch(lease_state& lease) {
  const auto when = lease.next_event();
  const std::lock_guard guard{m_};
  if (!started_) {
    if (!alarm_) return fail(errc::overloaded, "no timer could be made to watch over the lease");
    try {
      // A second try must not start again what the first did start.
      if (!timer_.joinable()) timer_ = std::thread{[this] { keep_time(); }};
      if (!renewer_.joinable()) renewer_ = std::thread{[this] { keep_renewing(); }};
    } catch (const std::system_error&) {
      return fail(errc::overloaded, "no thread could be started to watch over the lease");
    }
    started_ = true;
  }
  schedule(lease, when);
  return {};
}

void lease_keeper::forget(lease_state& lease) noexcept {
  const std::lock_guard guard{m_};
  // For good: a renewal under way must not put it back, for it may be gone by then.
  lease.forgotten = true;
  schedule(lease, core::never);
}

void lease_keeper::renew_all() {
  std::vector<std::shared_ptr<lease_state>> all;
  const auto now = runtime::now();
  auto due = now;
  {
    const std::lock_guard guard{m_};
    // A server that ends every connection must not be asked without a pause.
    if (all_due_at_ <= now) all_due_at_ = std::max(now, core::after(all_due_at_, renew_all_pause));
    due = all_due_at_;
    for (const auto& [when, lease] : schedule_) {
      if (auto alive = lease->weak_from_this().lock()) all.push_back(std::move(alive));
    }
  }
  for (const auto& lease : all)
    apply(lease, {loss::none, false, lease->hurry(due)});
}

void lease_keeper::on_pushed_loss(const core::owner_id& id, loss why) {
  std::shared_ptr<lease_state> found;
  {
    const std::lock_guard guard{m_};
    for (const auto& [when, lease] : schedule_) {
      if (lease->id == id) found = lease->weak_from_this().lock();
    }
  }
  if (found) apply(found, {found->on_pushed_loss(why), false, core::never});
}

void lease_keeper::keep_time() {
  for (;;) {
    std::uint64_t rings = 0;
    if (::read(alarm_.get(), &rings, sizeof rings) < 0 && errno != EINTR) return;
    std::unique_lock lock{m_};
    if (stopping_) return;
    const auto now = runtime::now();
    const auto due = take_due(now);
    lock.unlock();
    std::vector<std::shared_ptr<lease_state>> renewing;
    for (const auto& lease : due) {
      const auto what = lease->on_due(now + core::renewal_slack(lease->ttl()), now);
      apply(lease, what);
      if (what.renew) renewing.push_back(lease);
    }
    lock.lock();
    // All at once, or the first few would leave in a request of their own.
    to_renew_.insert(to_renew_.end(), renewing.begin(), renewing.end());
    if (!to_renew_.empty()) work_.wake();
    if (!stopping_) {
      set_alarm(schedule_.empty() ? core::never : schedule_.begin()->first);
    }
  }
}

// Under m_. What is due, and what is nearly due anyway: it can travel in the same request.
std::vector<std::shared_ptr<lease_state>> lease_keeper::take_due(core::time_point now) {
  std::vector<std::shared_ptr<lease_state>> due;
  if (schedule_.empty() || schedule_.begin()->first > now) return due;
  constexpr core::duration farthest = core::renewal_slack_max;
  std::size_t must_go = 0;
  for (const auto& [when, lease] : schedule_) {
    if (when > now + farthest) break;
    if (when > now + core::renewal_slack(lease->ttl())) continue;
    if (auto alive = lease->weak_from_this().lock()) due.push_back(std::move(alive));
    if (when <= now) must_go = due.size();
  }
  due.resize(core::worth_taking(must_go, due.size(), batch_max_));
  return due;
}

// A lease that was released meanwhile has nothing more to be done; its next event is never.
void lease_keeper::apply(const std::shared_ptr<lease_state>& lease, const lease_state::due& what) {
  {
    const std::lock_guard guard{m_};
    schedule(*lease, what.next);
  }
  if (what.lost != loss::none) tell_.lost(lease, what.lost);
}

void lease_keeper::keep_renewing() {
  std::unique_lock lock{m_};
  while (!stopping_) {
    if (to_renew_.empty()) {
      lock.unlock();
      if (store_.await_doubt(work_.fd())) {
        renew_all();
      } else {
        static_cast<void>(runtime::wait_ready(work_.fd(), POLLIN, core::never));
        work_.reset();
      }
      lock.lock();
      continue;
    }
    std::vector<std::shared_ptr<lease_state>> batch;
    while (!to_renew_.empty() && batch.size() < batch_max_) {
      batch.push_back(std::move(to_renew_.front()));
      to_renew_.pop_front();
    }
    lock.unlock();
    renew(batch);
    batch.clear();
    lock.lock();
  }
}

void lease_keeper::renew(const std::vector<std::shared_ptr<lease_state>>& batch) {
  std::vector<stores::held> held;
  std::vector<std::shared_ptr<lease_state>> asked;
  auto earliest = core::never;
  for (const auto& lease : batch) {
    // While its renewal is under way, the next event of a lease is its deadline.
    const auto deadline = lease->next_event();
    if (deadline == core::never) continue;  // released while it waited here
    earliest = std::min(earliest, deadline);
    held.push_back({lease->lock->store.get(), lease->id, lease->ttl(), lease->token});
    asked.push_back(lease);
  }
  if (held.empty()) return;
  tell_.renewal_call();
  const auto sent = runtime::now();
  const auto patience = core::renewal_patience(earliest, sent, operation_timeout_);
  const auto answers =
      stores::wait_here<result<std::vector<stores::renewal>>>([&](auto& by, auto done) {
        store_.renew(std::move(held), core::after(sent, patience), by, std::move(done));
      });
  const auto now = runtime::now();
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const auto& lease = asked[i];
    if (!answers) {
      apply(lease, lease->on_renewal_failed(now));
      tell_.renewal_failed(lease, answers.error());
      continue;
    }
    const auto& answer = (*answers)[i];
    apply(lease, lease->on_renewed(answer, now));
    if (answer.renewed) {
      tell_.renewed(lease, now - sent);
    } else if (answer.why == loss::none) {
      tell_.renewal_failed(lease, {errc::outcome_unknown, "too few nodes answered for it", {}});
    }
  }
}

}  // namespace holdfast::detail
