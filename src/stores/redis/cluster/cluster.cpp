#include "stores/redis/cluster/cluster.hpp"

#include <algorithm>

#include "runtime/clock.hpp"
#include "stores/background_caller.hpp"
#include "stores/redis/cluster/carrier.hpp"
#include "stores/redis/layout.hpp"

namespace holdfast::stores::redis {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// So old a map may be while locks are used or held. One request to one node.
constexpr core::duration map_age_max = seconds{2};
// Reasons to fetch the map come in crowds.
constexpr core::duration look_pause = milliseconds{50};
// A node that is no master any more answers what was sent to it, or never will.
constexpr core::duration departed_grace = milliseconds{500};

std::string name_of(const std::vector<node_address>& seeds) {
  std::string text = "the cluster at ";
  for (const auto& one : seeds)
    text += (&one == seeds.data() ? "" : ",") + escape(one.text());
  return text;
}

}  // namespace

cluster::cluster(std::vector<node_address> seeds, hooks tell,
                 std::shared_ptr<runtime::background> background)
    : seeds_{std::move(seeds)},
      tell_{std::move(tell)},
      name_{name_of(seeds_)},
      background_{std::move(background)},
      calls_{std::make_unique<carrier>(*this, &server_node::calls)},
      renewals_{std::make_unique<carrier>(*this, &server_node::renewals)},
      looks_{*background_, look_pause, [this] { return !look_in_background(); }},
      age_{*background_, map_age_max, [this] { return check_age(); }} {}

cluster::~cluster() { close(); }

request_carrier& cluster::calls() noexcept { return *calls_; }
request_carrier& cluster::renewals() noexcept { return *renewals_; }

void cluster::close() noexcept {
  std::vector<std::shared_ptr<pause>> waiting;
  {
    const lock held{m_};
    closed_ = true;
    waiting.swap(until_fetched_);
  }
  for (const auto& one : waiting)
    one->end();
  for (const auto& one : nodes())
    one->close();
}

// ---- who has what ------------------------------------------------------------------------------

unsigned cluster::group_of(std::string_view key) const noexcept { return hash_slot(key); }

std::shared_ptr<server_node> cluster::node_of(std::string_view key) {
  return node_of_slot(hash_slot(key));
}

std::shared_ptr<server_node> cluster::node_of_slot(unsigned slot) {
  const lock held{m_};
  const auto* at = map_.owner(slot);
  if (at == nullptr) return nullptr;
  return members_[static_cast<std::size_t>(at - map_.masters().data())].node;
}

std::shared_ptr<server_node> cluster::node_at(const node_address& where) {
  const lock held{m_};
  return closed_ ? nullptr : find_or_make(where);
}

std::shared_ptr<server_node> cluster::find_or_make(const node_address& where) {
  for (const auto* all : {&members_, &others_}) {
    for (const auto& one : *all) {
      if (one.at == where) return one.node;
    }
  }
  auto made = tell_.make_node(where);
  others_.push_back({where, made});
  return made;
}

topology::nodes_list cluster::nodes() {
  const lock held{m_};
  nodes_list all;
  for (const auto* some : {&members_, &others_}) {
    for (const auto& one : *some)
      all.push_back(one.node);
  }
  return all;
}

result<topology::nodes_list> cluster::nodes_with_keys(core::time_point until) {
  auto looked =
      wait_here<result<void>>([&](auto& by, auto done) { look_anew(until, by, std::move(done)); });
  if (!looked) return fail(std::move(looked.error()));
  const lock held{m_};
  nodes_list all;
  for (const auto& one : members_)
    all.push_back(one.node);
  return all;
}

void cluster::moved(unsigned slot, const node_address& to) {
  aftermath after;
  {
    const lock held{m_};
    auto changed = map_;
    if (closed_ || !changed.assign(slot, to)) return;
    after = adopt(std::move(changed));
  }
  settle(std::move(after));
  look_soon();
}

// A node that lost its last slot is no member any more. Those that were only asked for the map are
// not needed once it is there.
cluster::aftermath cluster::adopt(slot_map fresh) {
  aftermath after;
  std::vector<member> now;
  for (const auto& where : fresh.masters())
    now.push_back({where, find_or_make(where)});
  const auto is_kept = [&](const member& one) {
    return std::any_of(now.begin(), now.end(),
                       [&](const auto& other) { return other.at == one.at; });
  };
  const auto index_in = [](const slot_map& map, unsigned slot) {
    const auto* at = map.owner(slot);
    return at == nullptr ? -1 : static_cast<int>(at - map.masters().data());
  };
  std::vector<std::vector<bool>> lost(members_.size());
  for (unsigned slot = 0; slot < slot_map::slots; ++slot) {
    const auto before = index_in(map_, slot);
    const auto later = index_in(fresh, slot);
    if (before < 0 || later < 0) continue;
    const auto at = static_cast<std::size_t>(before);
    if (members_[at].at == fresh.masters()[static_cast<std::size_t>(later)]) continue;
    lost[at].resize(slot_map::slots);
    lost[at][slot] = true;
  }
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const bool departed = !is_kept(members_[i]);
    if (departed) after.departed.push_back(members_[i].node);
    if (lost[i].empty()) continue;
    after.replaced = after.replaced || departed;
    after.lost_slots.emplace_back(members_[i].node, std::move(lost[i]));
  }
  for (const auto& one : others_) {
    if (!is_kept(one)) after.departed.push_back(one.node);
  }
  others_.clear();
  members_ = std::move(now);
  map_ = std::move(fresh);
  return after;
}

void cluster::settle(aftermath what) {
  for (const auto& [node, slots] : what.lost_slots) {
    node->grants.ask_again([&slots = slots](unsigned slot) { return slots[slot]; });
  }
  for (const auto& node : what.departed) {
    node->renounce();
    // What is under way there belongs to callers, who learn soon whether it was run.
    const auto when = core::after(runtime::now(), departed_grace);
    const bool planned = background_->run_at(when, [node, owner = tell_.owner()] {
      if (const auto alive = owner.lock()) node->close();
    });
    if (!planned) node->close();
  }
  if (what.replaced && tell_.replaced) tell_.replaced();
}

}  // namespace holdfast::stores::redis
