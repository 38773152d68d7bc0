#include "sim/turn_inbox_model.hpp"

#include <algorithm>
#include <bit>

#include "core/quorum_machine.hpp"
#include "stores/redis/script_values.hpp"

namespace holdfast::sim {

namespace {

// As in stores/redlock/turn_inbox.cpp.
constexpr core::duration subscribe_pause = std::chrono::milliseconds{500};
using stores::redlock::line;

}  // namespace

turn_inbox_model::turn_inbox_model(network& net, process& in, const quorum_set& set,
                                   const core::owner_id& name)
    : net_{net}, in_{in}, set_{set}, name_{name}, subscriptions_(set.nodes.size()) {}

void turn_inbox_model::open() {
  for (std::size_t i = 0; i < subscriptions_.size(); ++i) {
    const auto& one = subscriptions_[i];
    if (one.on == nullptr && !one.under_way && in_.now() >= one.not_before) subscribe(i);
  }
}

void turn_inbox_model::subscribe(std::size_t node) {
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
    std::vector<core::owner_id> waiting;
    for (const auto& waiter : waiters_)
      waiting.push_back(waiter.first);
    for (const auto& id : waiting)
      look(id);
  };
  in_.at(core::after(in_.now(), line::connect_patience), [end] { end(nullptr); });
  net_.connect(in_, *set_.nodes[node], [this, &one, node, end](connection* fresh) {
    if (fresh != nullptr) {
      fresh->tell.answered = [](const reply&) {};
      fresh->tell.pushed = [this, node](const std::string& text) { hear(node, text); };
      fresh->tell.broken = [&one, fresh] {
        if (one.on == fresh) one.on = nullptr;
      };
      fresh->subscribe("holdfast:turn:" + std::string{inbox()});
    }
    end(fresh);
  });
}

void turn_inbox_model::hear(std::size_t node, const std::string& text) {
  const auto id = core::owner_id::parse(text);
  const auto found = id ? waiters_.find(*id) : waiters_.end();
  if (found == waiters_.end()) return;
  auto& one = found->second;
  if (one.turns == 0) {
    in_.at(core::after(in_.now(), stores::redlock::turn_inbox::gathering_max),
           [this, id = *id, asks = one.asks] {
             const auto still = waiters_.find(id);
             if (still == waiters_.end() || still->second.asks != asks) return;
             still->second.gathered = true;
             look(id);
           });
  }
  one.turns |= std::uint64_t{1} << node;
  look(*id);
}

bool turn_inbox_model::most_can_tell() const {
  const auto open = std::count_if(subscriptions_.begin(), subscriptions_.end(),
                                  [](const subscription& one) { return one.on != nullptr; });
  return static_cast<std::size_t>(open) >= core::majority_of(subscriptions_.size());
}

void turn_inbox_model::look(const core::owner_id& waiter) {
  const auto found = waiters_.find(waiter);
  if (found == waiters_.end()) return;
  const auto& one = found->second;
  const bool told = static_cast<std::size_t>(std::popcount(one.turns)) >= one.wanted ||
                    one.gathered || (!one.could_be_told && most_can_tell());
  if (told) wake(waiter);
}

void turn_inbox_model::wait(const core::owner_id& waiter, std::size_t nodes, core::time_point until,
                            std::function<void()> done) {
  auto& one = waiters_[waiter];
  one.wanted = nodes;
  one.wake = std::move(done);
  const auto waits = ++one.waits;
  in_.at(until, [this, waiter, waits] {
    const auto found = waiters_.find(waiter);
    if (found != waiters_.end() && found->second.waits == waits) wake(waiter);
  });
  look(waiter);
}

void turn_inbox_model::asks(const core::owner_id& waiter) {
  const auto found = waiters_.find(waiter);
  if (found == waiters_.end()) return;
  auto& one = found->second;
  one.turns = 0;
  one.gathered = false;
  one.could_be_told = most_can_tell();
  ++one.asks;
}

void turn_inbox_model::wake(const core::owner_id& waiter) {
  const auto found = waiters_.find(waiter);
  if (found == waiters_.end()) return;
  if (const auto woken = std::exchange(found->second.wake, nullptr)) woken();
}

}  // namespace holdfast::sim
