#include "client/lease_keeper.hpp"

#include <poll.h>

#include <algorithm>
#include <utility>

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
      threads_{{.look = [this] { look(); },
                .renew = [this](auto& by, auto done) { return renew_next(by, std::move(done)); },
                .watch_connection = [this](int wake_fd) { watch_connection(wake_fd); }}} {}

// Under m_.
void lease_keeper::set_alarm(core::time_point when) noexcept {
  alarm_at_ = when;
  threads_.set_alarm(when);
}

// Under m_. The alarm only ever moves forward here: an alarm that rings for a lease that has gone
// costs one look every now and then, moving it for every lease a system call each.
void lease_keeper::schedule(lease_state& lease, core::time_point when) {
  if (lease.scheduled_at != core::never) schedule_.erase({lease.scheduled_at, &lease});
  lease.scheduled_at = lease.forgotten ? core::never : when;
  if (lease.scheduled_at == core::never) {
    if (!std::exchange(lease.known_as_renewed, false)) return;
    const auto [first, last] = renewed_.equal_range(lease.lock->name);
    renewed_.erase(
        std::find_if(first, last, [&](const auto& one) { return one.second == &lease; }));
    return;
  }
  schedule_.emplace(when, &lease);
  if (when < alarm_at_) set_alarm(when);
}

result<void> lease_keeper::watch(lease_state& lease) {
  const auto when = lease.next_event();
  const std::lock_guard guard{m_};
  if (!started_ && !threads_.start()) {
    return fail(errc::overloaded, "no thread could be started to watch over the lease");
  }
  started_ = true;
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

// Most names are of leases that this client has just given back itself.
void lease_keeper::renew_named(const std::vector<std::string>& names) {
  std::vector<std::pair<std::shared_ptr<lease_state>, core::time_point>> due;
  {
    const std::lock_guard guard{m_};
    const auto now = runtime::now();
    for (const auto& name : names) {
      const auto [first, last] = renewed_.equal_range(name);
      for (auto one = first; one != last; ++one) {
        auto& lease = *one->second;
        lease.doubted_at = std::max(now, core::after(lease.doubted_at, renew_all_pause));
        if (auto alive = lease.weak_from_this().lock()) {
          due.emplace_back(std::move(alive), lease.doubted_at);
        }
      }
    }
  }
  for (const auto& [lease, when] : due)
    apply(lease, {loss::none, false, lease->hurry(when)});
}

// Under m_.
void lease_keeper::remember_renewed(lease_state& lease) {
  if (lease.scheduled_at == core::never || std::exchange(lease.known_as_renewed, true)) return;
  renewed_.emplace(lease.lock->name, &lease);
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

void lease_keeper::look() {
  const auto now = runtime::now();
  const auto due = [&] {
    const std::lock_guard guard{m_};
    return take_due(now);
  }();
  std::vector<std::shared_ptr<lease_state>> renewing;
  for (const auto& lease : due) {
    const auto what = lease->on_due(now + core::renewal_slack(lease->ttl()), now);
    apply(lease, what);
    if (what.renew) renewing.push_back(lease);
  }
  const std::lock_guard guard{m_};
  // All at once, or the first few would leave in a request of their own.
  to_renew_.insert(to_renew_.end(), renewing.begin(), renewing.end());
  if (!to_renew_.empty()) threads_.wake_renewer();
  set_alarm(schedule_.empty() ? core::never : schedule_.begin()->first);
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

// Waits between renewals.
void lease_keeper::watch_connection(int wake_fd) {
  const auto doubt = store_.await_doubt(wake_fd);
  if (doubt.about_all) return renew_all();
  if (!doubt.names.empty()) return renew_named(doubt.names);
  static_cast<void>(runtime::wait_ready(wake_fd, POLLIN, core::never));
}

std::shared_ptr<lease_state> lease_keeper::take_to_renew() {
  const std::lock_guard guard{m_};
  if (to_renew_.empty()) return nullptr;
  auto next = std::move(to_renew_.front());
  to_renew_.pop_front();
  return next;
}

bool lease_keeper::renew_next(stores::caller& by, std::function<void()> done) {
  auto batch = std::make_shared<renewal_batch>();
  std::vector<stores::held> held;
  auto earliest = core::never;
  while (held.size() < batch_max_) {
    auto lease = take_to_renew();
    if (!lease) break;
    // While its renewal is under way, the next event of a lease is its deadline.
    const auto deadline = lease->next_event();
    if (deadline == core::never) continue;  // it was released while it waited here
    earliest = std::min(earliest, deadline);
    held.push_back({lease->lock->store.get(), lease->id, lease->ttl(), lease->token});
    batch->leases.push_back(std::move(lease));
  }
  if (held.empty()) return false;
  tell_.renewal_call();
  batch->sent = runtime::now();
  const auto patience = core::renewal_patience(earliest, batch->sent, operation_timeout_);
  store_.renew(std::move(held), core::after(batch->sent, patience), by,
               [this, batch, done = std::move(done)](const auto& answers) {
                 apply(*batch, answers);
                 done();
               });
  return true;
}

void lease_keeper::apply(const renewal_batch& batch,
                         const result<std::vector<stores::renewal>>& answers) {
  const auto now = runtime::now();
  for (std::size_t i = 0; i < batch.leases.size(); ++i) {
    const auto& lease = batch.leases[i];
    if (!answers) {
      apply(lease, lease->on_renewal_failed(now));
      tell_.renewal_failed(lease, answers.error());
      continue;
    }
    const auto& answer = (*answers)[i];
    apply(lease, lease->on_renewed(answer, now));
    if (answer.renewed) {
      {
        const std::lock_guard guard{m_};
        remember_renewed(*lease);
      }
      tell_.renewed(lease, now - batch.sent);
    } else if (answer.why == loss::none) {
      tell_.renewal_failed(
          lease, {errc::outcome_unknown, "the store did not say whether it was renewed", {}});
    }
  }
}

}  // namespace holdfast::detail
