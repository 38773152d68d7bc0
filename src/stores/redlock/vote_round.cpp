#include "stores/redlock/vote_round.hpp"

#include <utility>

#include "core/planted.hpp"
#include "runtime/clock.hpp"

namespace holdfast::stores::redlock {

namespace {

// The tag of an answer to an acquire. That of an answer to a raise is what it raises to.
constexpr std::uint64_t to_acquire = 0;

using core::planted;
using core::planted_bug;

}  // namespace

vote_round::vote_round(std::shared_ptr<node_set> on, std::shared_ptr<redlock_lock> lock,
                       const core::owner_id& id, core::duration ttl,
                       std::shared_ptr<queued_waiter> waiter)
    : fan_out{on->calls(), on->config.node_timeout, on->polling},
      set_{std::move(on)},
      lock_{std::move(lock)},
      id_{id},
      ttl_{ttl},
      waiter_{std::move(waiter)},
      machine_{{.nodes = set_->size(),
                .ttl = planted(planted_bug::elapsed) ? core::never.time_since_epoch() : ttl}} {}

template <class Event>
bool vote_round::tell(Event event) {
  core::quorum_machine::steps next;
  {
    const std::lock_guard guard{m_};
    const bool was_over = machine_.over();
    next = event(machine_);
    if (machine_.over() && !was_over) to_give_back_.swap(next);
  }
  perform(next);
  return !next.empty();
}

void vote_round::ask(std::uint64_t proposal, redlock_lock::acquire_args args) {
  args_ = std::move(args);
  tell([&](auto& machine) { return machine.ask(proposal, runtime::now()); });
}

void vote_round::perform(const core::quorum_machine::steps& steps) {
  using verb = core::quorum_step::verb;
  for (const auto& one : steps) {
    switch (one.what) {
      case verb::acquire:
        // Another one failed at once, and that was decisive: this would come after its release.
        if (is_over()) break;
        send(one.node, lock_->acquire_request(one.node, id_, args_), to_acquire, {},
             [this] { return !is_over(); });
        break;
      case verb::raise:
        if (planted(planted_bug::write_back)) {
          take(one.node, one.token,
               {.what = core::vote::kind::raised, .counter = one.token, .asked = one.token});
          break;
        }
        send(one.node, lock_->raise_request(one.node, id_, one.token), one.token);
        break;
      case verb::release:
        if (planted(planted_bug::late_release)) break;
        release(one.node);
        break;
    }
  }
}

void vote_round::send_for_sure(std::size_t node, const request& what) {
  set_->calls()[node]->send_for_sure(what, core::after(runtime::now(), ttl_), nullptr);
  set_->watch_replies();
}

void vote_round::release(std::size_t node) {
  send_for_sure(node, lock_->release_request(id_, {}, redlock_lock::turn::nobodys));
}

void vote_round::leave_queue(std::size_t node) {
  const auto entry = waiter_->entry();
  const bool granted = decided() && !is_over();
  send_for_sure(node, granted ? lock_->leave_request(entry)
                              : lock_->release_request(id_, entry, redlock_lock::turn::nobodys));
}

void vote_round::give_back() {
  core::quorum_machine::steps what;
  {
    const std::lock_guard guard{m_};
    what.swap(to_give_back_);
  }
  perform(what);
}

// Where the lock was taken the waiter has left the queue. Where an answer is still to come, that
// answer sees to it.
void vote_round::leave_queues() {
  std::vector<std::size_t> where;
  {
    const std::lock_guard guard{m_};
    for (std::size_t i = 0; i < all().size(); ++i) {
      if (machine_.is_out(i)) where.push_back(i);
    }
  }
  for (const auto node : where)
    leave_queue(node);
}

void vote_round::on_answer(std::size_t node, std::uint64_t tag, result<redis::reply> answer) {
  core::vote v;
  const auto& name = set_->names()[node];
  if (!answer) {
    v = {.what = core::vote::kind::failed, .why = std::move(answer.error())};
  } else if (tag == to_acquire) {
    v = read_acquire(**answer, name, set_->identity());
  } else {
    v = read_raise(**answer, tag, name, set_->identity());
  }
  if (answer && asks_for_admission(**answer)) set_->look_after_nodes();
  take(node, tag, std::move(v));
}

void vote_round::take(std::size_t node, std::uint64_t tag, core::vote v) {
  const bool grants = v.what == core::vote::kind::fresh || v.what == core::vote::kind::stale;
  // A node that refuses or fails may have the waiter in its queue since an earlier ask.
  const bool may_be_queued = waiter_ && tag == to_acquire && !grants;
  const bool followed =
      tell([&](auto& machine) { return machine.on_vote(node, std::move(v), runtime::now()); });
  // It was served elsewhere meanwhile, or gave up.
  if (may_be_queued && waiter_->done) leave_queue(node);
  // Granted here after it was given back: a node that had to be sent the script itself may have run
  // the release before it.
  if (grants && !followed && !lock_->holds(id_) && !planted(planted_bug::late_release)) {
    release(node);
  }
}

void vote_round::on_silence(std::size_t node) {
  tell([node](auto& machine) { return machine.on_silence(node, runtime::now()); });
}

void vote_round::on_give_up() {
  tell([](auto& machine) { return machine.on_give_up(runtime::now()); });
}

bool vote_round::is_over() {
  const std::lock_guard guard{m_};
  return machine_.over();
}

bool vote_round::decided() {
  const std::lock_guard guard{m_};
  return machine_.decided();
}

bool vote_round::waits_for_all() {
  const std::lock_guard guard{m_};
  return machine_.waits_for_all();
}

bool vote_round::waits_for(std::size_t node) {
  const std::lock_guard guard{m_};
  return machine_.waits_for(node);
}

vote_round::verdict vote_round::look() {
  const std::lock_guard guard{m_};
  verdict v{machine_.outcome(),
            machine_.majority_works(),
            machine_.granted(),
            machine_.highest_seen(),
            {},
            {}};
  if (v.outcome == core::quorum_outcome::busy) v.met = machine_.met();
  if (v.outcome == core::quorum_outcome::failed) {
    v.why = machine_.why(set_->names(), set_->config.node_timeout);
  }
  return v;
}

}  // namespace holdfast::stores::redlock
