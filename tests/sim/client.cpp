#include "sim/client.hpp"

#include <algorithm>
#include <utility>

#include "core/quorum_machine.hpp"
#include "sim/stream.hpp"
#include "stores/redis/redis_store.hpp"
#include "stores/redlock/redlock_lock.hpp"
#include "stores/redlock/redlock_store.hpp"

namespace holdfast::sim {

namespace {

using stores::redis::endpoint;

std::unique_ptr<stores::store> make_store(network& net, process& in,
                                          const std::vector<std::unique_ptr<node>>& nodes,
                                          const plan& the,
                                          const std::shared_ptr<runtime::background>& background) {
  const auto dial = [&net, &in, &nodes](const endpoint& to) {
    const auto found = std::find_if(nodes.begin(), nodes.end(),
                                    [&](const auto& one) { return one->name == to.node; });
    return std::make_shared<sim_dialer>(net, in, **found);
  };
  if (the.store == store_kind::redlock) {
    auto config = quorum_config(nodes, the);
    config.make_dialer = dial;
    return stores::redlock::make_redlock_store(std::move(config), background);
  }
  stores::redis::redis_config config;
  config.server.node = nodes[0]->name;
  config.make_dialer = dial;
  return stores::redis::make_redis_store(std::move(config), background);
}

const stores::redlock::redlock_lock& on_quorum(const stores::store_lock& lock) {
  return static_cast<const stores::redlock::redlock_lock&>(observed(lock));
}

// Longer than nobody does anything with a latch that is not over.
constexpr core::duration latch_kept = std::chrono::minutes{5};

client_options options_of(const plan& the) {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  client_options options;
  options.operation_timeout = duration_cast<milliseconds>(the.operation_timeout);
  options.unreachable_limit = duration_cast<milliseconds>(the.unreachable_limit);
  options.release_budget = duration_cast<milliseconds>(the.release_budget);
  options.hand_over_here = the.hands_over;
  return options;
}

}  // namespace

stores::redlock::redlock_config quorum_config(const std::vector<std::unique_ptr<node>>& nodes,
                                              const plan& the) {
  stores::redlock::redlock_config config;
  for (const auto& one : nodes)
    config.nodes.emplace_back().node = one->name;
  config.node_timeout = the.node_timeout;
  config.max_ttl = the.max_ttl;
  return config;
}

client::client(network& net, process& in, const std::vector<std::unique_ptr<node>>& nodes,
               const plan& the, const core::lease_rule& rule, store_observer tell)
    : is_quorum_{the.store == store_kind::redlock},
      in_{in},
      life_{in.life()},
      nodes_{nodes},
      background_{std::make_shared<runtime::background>(1)},
      state_{[&] {
        tell.may_arrive = [this](const auto& id) { return may_arrive_late(id); };
        return detail::client_state::make(
            observe(make_store(net, in, nodes, the, background_), std::move(tell)), background_,
            options_of(the));
      }()},
      kind_{the.of},
      rule_{rule},
      latch_kind_{core::counter_kind::form::latch, the.latch_parts, latch_kept} {
  for (std::size_t i = 0; i < locks_max; ++i)
    locks_[i] = *state_->open(keys_of(i).lock, kind_);
}

// Its process is gone, or the world ends: nothing that it would still do counts.
client::~client() {
  in_.enter([this] {
    background_->stop();
    state_->store().close();
  });
}

const stores::store_lock& client::lock(std::size_t which) const { return *locks_[which]->store; }

void client::acquire(std::size_t lock, std::uint32_t units, core::duration wait,
                     std::stop_token stop, on_done done) {
  const auto mine = under_way_.emplace(under_way_.end());
  *mine = std::make_shared<detail::acquisition>(
      std::make_shared<const detail::mutex_state>(state_, locks_[lock],
                                                  detail::lock_terms{rule_, {}, units}),
      wait, std::move(stop), in_.events, [this, mine, done](auto got) {
        const auto until_told = std::move(*mine);
        under_way_.erase(mine);
        if (got && *got) return done(std::move(**got), {});
        done(nullptr, got ? "not acquired" : got.error().message);
      });
  const auto begun = *mine;
  begun->begin();
}

void client::count(std::size_t latch, core::counter_request what,
                   std::optional<core::duration> wait, on_counted done) {
  const auto of = detail::open_counter(state_, "latch" + std::to_string(latch), latch_kind_);
  if (!of) return done(detail::fail(of.error()));
  const auto mine = counting_.emplace(counting_.end());
  *mine = std::make_shared<detail::counting>(*of, std::move(what), wait, std::stop_token{},
                                             in_.events, [this, mine, done](auto got) {
                                               const auto until_told = std::move(*mine);
                                               counting_.erase(mine);
                                               done(got);
                                             });
  const auto begun = *mine;
  begun->begin();
}

bool client::may_arrive_late(const core::owner_id& id) const {
  return in_.life() == life_ && in_.traffic.may_arrive(id);
}

// Of a quorum it is sure of a majority only: elsewhere it may still arrive.
bool client::withdrawn_for_good(const core::owner_id& id) const {
  return !is_quorum_ || !may_arrive_late(id);
}

// A node that has lost something since does not vote: to others it is as if it still had the lock.
bool client::has_at_store(std::size_t which, const core::owner_id& id) {
  const auto& key = keys_of(which).lock;
  if (core::is_shared(kind_)) {
    const auto all = nodes_[0]->shares_of(key);
    return std::any_of(all.begin(), all.end(), [&](const auto& one) { return one.id == id; });
  }
  const auto having = std::count_if(nodes_.begin(), nodes_.end(), [&](const auto& one) {
    return one->owner_of(key) == id || (is_quorum_ && one->excused());
  });
  return static_cast<std::size_t>(having) >= core::majority_of(nodes_.size());
}

bool client::gave_back(std::size_t which, const core::owner_id& id) const {
  const auto& sent = in_.traffic;
  return is_quorum_ && sent.knows(id) && !sent.may_linger(id) && !on_quorum(lock(which)).holds(id);
}

bool client::left_line(std::string_view waiter) const {
  const auto id = core::owner_id::parse(waiter.substr(0, core::owner_id::digits));
  const auto& sent = in_.traffic;
  return is_quorum_ && id && sent.knows_waiter(*id) && !sent.may_linger(*id) &&
         !on_quorum(lock(0)).has_waiter(*id);
}

}  // namespace holdfast::sim
