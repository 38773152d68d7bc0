#include "client/client_state.hpp"

#include <utility>

#include "runtime/clock.hpp"

namespace holdfast::detail {

namespace {

event failed(std::string_view lock, const failure& why) {
  return {.type = event::kind::failed, .lock = lock, .code = why.code, .detail = why.message};
}

}  // namespace

counters atomic_counters::read() const noexcept {
  counters c;
  c.acquisitions = acquisitions;
  c.waits = waits;
  c.waiting_now = waiting_now;
  c.held_now = held_now;
  c.releases = releases;
  c.renewals = renewals;
  c.renewal_calls = renewal_calls;
  c.renewal_failures = renewal_failures;
  c.losses = losses;
  c.failures = failures;
  c.unknown_outcomes = unknown_outcomes;
  c.reconnects = reconnects;
  c.clock_steps = clock_steps;
  c.events_dropped = events_dropped;
  return c;
}

std::shared_ptr<client_state> client_state::make(std::unique_ptr<stores::store> store,
                                                 std::shared_ptr<runtime::background> store_work,
                                                 client_options options) {
  return {new client_state{std::move(store), std::move(store_work), std::move(options)},
          [](client_state* self) {
            if (!self->forked()) delete self;
          }};
}

client_state::client_state(std::unique_ptr<stores::store> store,
                           std::shared_ptr<runtime::background> store_work,
                           client_options options_given)
    : options{std::move(options_given)},
      generation_{runtime::fork_generation()},
      losses_{loss_threads_max},
      events_{event_threads_max},
      store_work_{std::move(store_work)},
      store_{std::move(store)},
      keeper_{*store_, options.operation_timeout, keeper_hooks()} {
  store_->on_events(store_hooks());
}

client_state::~client_state() {
  gate_->close();
  store_->flush(core::after(runtime::now(), options.release_budget));
  store_->close();
  store_work_->stop();
}

result<void> client_state::usable() const {
  if (!forked()) return {};
  return fail(errc::forked,
              "this client was made before fork() and belongs to the parent: make a new one here");
}

result<std::shared_ptr<lock_state>> client_state::open(std::string_view name,
                                                       const core::lock_kind& kind) {
  if (auto ok = usable(); !ok) return fail(std::move(ok.error()));
  if (auto ok = core::check_name(name); !ok) return fail(std::move(ok.error()));
  const std::lock_guard guard{m_};
  const auto called = lock_state::registered_as(name, kind);
  if (auto known = locks_.find(called)) return known;
  auto in_store = store_->open(name, kind);
  if (!in_store) return fail(std::move(in_store.error()));
  auto lock = std::make_shared<lock_state>(std::string{name}, kind, std::move(*in_store));
  locks_.put(called, lock);
  return lock;
}

void client_state::request_stop() noexcept {
  stop_.request_stop();
  const auto in_use = [this] {
    const std::lock_guard guard{m_};
    return locks_.all();
  };
  for (const auto& lock : in_use())
    lock->here.close();
}

void client_state::tell(const event& e) const noexcept {
  if (options.observer) options.observer->on_event(e);
}

void client_state::tell_later(event::kind type, const std::shared_ptr<lease_state>& lease,
                              core::duration took, errc code, std::string detail) {
  if (!options.observer) return;
  const bool queued = events_.run(
      [watcher = options.observer, type, lease, took, code, detail = std::move(detail)] {
        watcher->on_event({.type = type,
                           .lock = lease ? std::string_view{lease->lock->name} : std::string_view{},
                           .token = lease ? lease->token : fencing_token{},
                           .duration = took,
                           .code = code,
                           .detail = detail});
      });
  if (!queued) ++counts.events_dropped;
}

void client_state::on_lost(const std::shared_ptr<lease_state>& lease, loss why) {
  ++counts.losses;
  --counts.held_now;
  lease->leave_cohort();
  losses_.run_always([lease] { lease->fire(); });
  const auto expiry = lease->expiry();
  // Best effort: a full queue leaves it to the store, or to the user's own release.
  static_cast<void>(store_work_->run_at(expiry, [lease, budget = options.release_budget] {
    lease->release_leftover(core::after(runtime::now(), budget));
  }));
  tell_later(event::kind::lost, lease, runtime::now() - lease->granted_at, errc::lease_lost,
             std::string{to_string(why)});
}

failure client_state::record_failure(const std::string& lock, failure why) {
  ++counts.failures;
  if (why.code == errc::outcome_unknown) ++counts.unknown_outcomes;
  tell(failed(lock, why));
  return why;
}

// The keeper's hooks run on threads that end before this client does.
lease_keeper::hooks client_state::keeper_hooks() {
  lease_keeper::hooks tell_us;
  tell_us.lost = [this](const auto& lease, loss why) { on_lost(lease, why); };
  tell_us.renewed = [this](const auto& lease, core::duration took) {
    ++counts.renewals;
    tell_later(event::kind::renewed, lease, took, {}, {});
  };
  tell_us.renewal_failed = [this](const auto& lease, const failure& why) {
    ++counts.renewal_failures;
    tell_later(event::kind::renewal_failed, lease, {}, why.code, why.message);
  };
  tell_us.renewal_call = [this] { ++counts.renewal_calls; };
  return tell_us;
}

stores::store_events client_state::store_hooks() {
  stores::store_events events;
  events.lost = [this, gate = gate_](const core::owner_id& id, loss why) {
    gate->pass([&] { keeper_.on_pushed_loss(id, why); });
  };
  events.reconnected = [this, gate = gate_] {
    gate->pass([this] {
      ++counts.reconnects;
      tell_later(event::kind::reconnected, nullptr, {}, {}, {});
    });
  };
  events.doubtful = [this, gate = gate_] { gate->pass([this] { keeper_.renew_all(); }); };
  events.release_given_up = [this, gate = gate_, watcher = options.observer](std::string_view lock,
                                                                             const failure& why) {
    const bool counted = gate->pass([&] {
      ++counts.failures;
      if (why.code == errc::outcome_unknown) ++counts.unknown_outcomes;
      if (!options.observer) return;
      const bool queued = events_.run([watcher = options.observer, name = std::string{lock}, why] {
        watcher->on_event(failed(name, why));
      });
      if (!queued) ++counts.events_dropped;
    });
    // The client is being destroyed: nobody can read its counters, but its observer is there.
    if (!counted && watcher) {
      watcher->on_event(failed(lock, why));
    }
  };
  events.clock_stepped = [this, gate = gate_](core::duration step) {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(step).count();
    gate->pass([&] {
      ++counts.clock_steps;
      tell_later(event::kind::clock_stepped, nullptr, step, {},
                 "the store's clock moved by " + std::to_string(ms) + " ms against ours");
    });
  };
  return events;
}

}  // namespace holdfast::detail
