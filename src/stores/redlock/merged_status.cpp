#include "stores/redlock/merged_status.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "core/by_node.hpp"
#include "core/quorum_machine.hpp"
#include "stores/redis/layout.hpp"
#include "stores/redis/script_values.hpp"
#include "stores/redlock/queue_entry.hpp"
#include "stores/store.hpp"

namespace holdfast::stores::redlock {

namespace {

using redis::elements_of;
using redis::text_of;
using state = lock_on_node::state;
using std::chrono::milliseconds;

constexpr std::size_t fields_of_a_lock = 4;  // in the answer of scripts/inspect.lua

bool same_holder(const node_view& a, const node_view& b) {
  if (!a.known || !b.known || a.value.empty() || b.value.empty()) return false;
  const auto ours = owner_in(a.value);
  return ours ? owner_in(b.value) == ours : a.value == b.value;
}

std::optional<milliseconds> in_ms(std::optional<core::duration> of) {
  if (!of) return std::nullopt;
  return std::chrono::duration_cast<milliseconds>(*of);
}

lock_on_node shown(const node_view& view, const node_view* held) {
  lock_on_node one;
  one.node = view.node;
  if (!view.known) {
    one.status = view.trouble;
    one.remaining = in_ms(view.quarantine);
    one.reason = view.why.message;
    return one;
  }
  one.status = view.value.empty()                 ? state::free
               : held && same_holder(view, *held) ? state::held
                                                  : state::other;
  if (one.status == state::free) return one;
  one.remaining = in_ms(view.remaining);
  if (auto who = redis::parse_holder(view.value)) {
    one.holder = std::move(*who);
  } else {
    one.reason = who.error().message;
  }
  return one;
}

// A waiter is in the queues of several nodes, each of which has it with a ticket within the last
// second of its own clock: its place is that of the lowest.
void tell_who_waits(lock_status& status, std::span<const node_view> views) {
  struct place {
    std::uint64_t ticket;
    std::string_view holder;
  };
  std::map<core::owner_id, place> all;
  for (const auto& one : views) {
    for (const auto& queued : one.queue) {
      const auto entry = queue_entry::parse(queued.entry);
      if (!entry) continue;
      const auto known = all.try_emplace(entry->waiter, place{queued.ticket, entry->holder});
      known.first->second.ticket = std::min(known.first->second.ticket, queued.ticket);
    }
    status.waiting = std::max(status.waiting, one.waiting);
  }
  status.waiting = std::max(status.waiting, all.size());
  std::vector<place> in_order;
  in_order.reserve(all.size());
  for (const auto& [waiter, where] : all)
    in_order.push_back(where);
  std::stable_sort(in_order.begin(), in_order.end(),
                   [](const place& a, const place& b) { return a.ticket < b.ticket; });
  for (const auto& one : in_order) {
    if (status.waiters.size() >= waiters_shown_max) break;
    const auto since = std::chrono::floor<milliseconds>(std::chrono::microseconds{one.ticket});
    status.waiters.push_back(redis::describe_waiter(one.holder, since));
  }
}

failure too_few(std::size_t known, std::span<const node_view> views) {
  failure why{errc::store_unreachable,
              "only " + std::to_string(known) + " of " + std::to_string(views.size()) +
                  " nodes could say who holds the lock",
              {}};
  std::size_t waiting = 0;
  for (const auto& one : views) {
    if (one.known) continue;
    // A list of nodes that is wrong is not a matter of patience.
    if (one.why.code == errc::incompatible) why.code = errc::incompatible;
    waiting += one.quarantine ? 1 : 0;
    why.nodes.push_back({one.node, one.why.message});
  }
  const bool passes = waiting > 0 && known + waiting >= core::majority_of(views.size());
  if (passes && why.code != errc::incompatible) why.code = errc::store_loading;
  if (why.code == errc::store_loading) why.message = "no majority votes yet";
  why.message += "; " + core::by_node(why.nodes);
  if (why.code == errc::store_loading) why.message += init_advice;
  return why;
}

}  // namespace

std::optional<core::owner_id> owner_in(std::string_view value) {
  return core::owner_id::parse(value.substr(0, core::owner_id::digits));
}

std::vector<node_view> read_views(const std::optional<result<redis::reply>>& answer,
                                  std::size_t locks, const std::string& node,
                                  const set_identity& set) {
  node_view unknown;
  unknown.node = node;
  auto said = usable_answer(answer, node, set);
  if (!said) {
    unknown.why = std::move(said.error());
    const bool answered = answer && *answer;
    if (answered) {
      unknown.quarantine = read_quarantine(***answer, set);
      unknown.trouble = unknown.quarantine ? state::quarantined : state::refused;
    }
    return std::vector<node_view>(locks, unknown);
  }
  const auto fields = elements_of(**said);
  if (fields.size() != fields_of_a_lock * locks) {
    unknown.trouble = state::refused;
    unknown.why = redis::strange_answer(node);
    return std::vector<node_view>(locks, unknown);
  }
  std::vector<node_view> all(locks);
  for (std::size_t i = 0; i < locks; ++i) {
    const auto of = fields.subspan(fields_of_a_lock * i, fields_of_a_lock);
    all[i].node = node;
    all[i].known = true;
    all[i].value = text_of(*of[0]);
    all[i].remaining = redis::read_pttl(*of[1]);
    all[i].waiting = static_cast<std::size_t>(std::max(0LL, of[2]->integer));
    const auto queue = elements_of(*of[3]);
    for (std::size_t k = 0; k + 1 < queue.size(); k += 2)
      all[i].queue.push_back(
          {redis::read_number(text_of(*queue[k + 1])), std::string{text_of(*queue[k])}});
  }
  return all;
}

result<lock_status> judge_status(std::string name, std::span<const node_view> views) {
  lock_status status;
  status.name = std::move(name);
  const auto majority = core::majority_of(views.size());
  const auto supporters = [&](const node_view& of) {
    return static_cast<std::size_t>(std::count_if(
        views.begin(), views.end(), [&](const auto& other) { return same_holder(of, other); }));
  };
  const auto held = std::find_if(views.begin(), views.end(),
                                 [&](const auto& one) { return supporters(one) >= majority; });
  const node_view* holder = held == views.end() ? nullptr : &*held;
  if (!holder) {
    const auto known = static_cast<std::size_t>(
        std::count_if(views.begin(), views.end(), [](const auto& one) { return one.known; }));
    if (known < majority) return fail(too_few(known, views));
  }
  for (const auto& one : views) {
    status.nodes.push_back(shown(one, holder));
  }
  tell_who_waits(status, views);
  if (!holder) return status;
  std::vector<core::duration> left;
  for (const auto& one : views) {
    if (!same_holder(*holder, one)) continue;
    left.push_back(one.remaining.value_or(core::duration::max()));
    auto who = redis::parse_holder(one.value);
    if (!who) return fail(std::move(who.error()));
    // Nodes that were not raised have a lower token.
    if (!status.holder || who->token > status.holder->token) status.holder = std::move(*who);
  }
  // Held for as long as a majority holds it.
  std::sort(left.rbegin(), left.rend());
  if (left[majority - 1] != core::duration::max()) status.remaining = in_ms(left[majority - 1]);
  return status;
}

}  // namespace holdfast::stores::redlock
