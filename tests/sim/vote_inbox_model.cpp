#include "sim/hint_model.hpp"

#include "core/quorum_machine.hpp"
#include "stores/redlock/hints.hpp"

namespace holdfast::sim {

namespace {

// As in stores/redlock/hints.cpp.
constexpr core::duration subscribe_pause = std::chrono::milliseconds{500};
using stores::redlock::hints;
using stores::redlock::line;

}  // namespace

hint_model::hint_model(network& net, process& in, const quorum_set& set, const core::owner_id& name)
    : net_{net}, in_{in}, set_{set}, name_{name}, subscriptions_(set.nodes.size()) {}

void hint_model::open() {
  for (std::size_t i = 0; i < subscriptions_.size(); ++i) {
    const auto& one = subscriptions_[i];
    if (one.on == nullptr && !one.under_way && in_.now() >= one.not_before) subscribe(i);
  }
}

void hint_model::subscribe(std::size_t node) {
  auto& one = subscriptions_[node];
  one.under_way = true;
  const auto settled = std::make_shared<bool>(false);
  const auto end = [this, &one, settled](connection* open) {
    if (std::exchange(*settled, true)) {
      if (open != nullptr) open->close();
      return;
    }
    one.under_way = false;
    one.not_before = core::after(in_.now(), subscribe_pause);
    one.on = open;
  };
  in_.at(core::after(in_.now(), line::connect_patience), [end] { end(nullptr); });
  net_.connect(in_, *set_.nodes[node], [this, &one, node, end](connection* fresh) {
    if (fresh != nullptr) {
      fresh->tell.answered = [](const reply&) {};
      fresh->tell.pushed = [this, node](const std::string& text) { hear(node, text); };
      fresh->tell.broken = [&one, fresh] {
        if (one.on == fresh) one.on = nullptr;
      };
      fresh->subscribe("holdfast:hint:" + std::string{inbox()});
    }
    end(fresh);
  });
}

void hint_model::hear(std::size_t node, const std::string& text) {
  const auto id = core::owner_id::parse(text);
  const auto found = id ? waiters_.find(*id) : waiters_.end();
  if (found == waiters_.end()) return;
  found->second.called.insert(node);
  called(*id);
}

// After the first hint, a moment for the others: asking before the release has reached a majority
// would be for nothing.
void hint_model::called(const core::owner_id& waiter) {
  const auto& one = waiters_[waiter];
  if (!one.wake || one.called.empty()) return;
  if (one.called.size() >= core::majority_of(set_.nodes.size())) return wake(waiter);
  in_.at(core::after(in_.now(), hints::gather_max), [this, waiter, waits = one.waits] {
    const auto found = waiters_.find(waiter);
    if (found != waiters_.end() && found->second.waits == waits) wake(waiter);
  });
}

void hint_model::wait(const core::owner_id& waiter, core::time_point until,
                      std::function<void()> done) {
  auto& one = waiters_[waiter];
  one.wake = std::move(done);
  const auto waits = ++one.waits;
  in_.at(until, [this, waiter, waits] {
    const auto found = waiters_.find(waiter);
    if (found != waiters_.end() && found->second.waits == waits) wake(waiter);
  });
  called(waiter);
}

void hint_model::wake(const core::owner_id& waiter) {
  const auto found = waiters_.find(waiter);
  if (found == waiters_.end()) return;
  if (const auto woken = std::exchange(found->second.wake, nullptr)) woken();
}

}  // namespace holdfast::sim
