#include "stores/redlock/sight.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "core/quorum_machine.hpp"
#include "stores/redis/layout.hpp"
#include "stores/redis/script_values.hpp"
#include "stores/redlock/place_in_line.hpp"
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
    one.is = view.trouble;
    one.remaining = in_ms(view.quarantine);
    one.said = view.why.message;
    return one;
  }
  one.is = view.value.empty()                 ? state::free
           : held && same_holder(view, *held) ? state::held
                                              : state::other;
  if (one.is == state::free) return one;
  one.remaining = in_ms(view.remaining);
  if (auto who = redis::parse_holder(view.value)) {
    one.holder = std::move(*who);
  } else {
    one.said = who.error().message;
  }
  return one;
}

// The attempts of one waiter follow one another: one node may have the last, another the next. They
// have the waiter's ticket and its client's inbox.
void tell_who_waits(lock_status& status, std::span<const node_view> views, const node_view* held) {
  const auto holder = held ? owner_in(held->value) : std::nullopt;
  std::map<std::pair<std::uint64_t, std::string_view>, waiter> all;
  for (const auto& one : views) {
    auto waiting = one.waiting;
    for (const auto& place : one.line) {
      const auto ask = standing_ask::parse(place.ask);
      if (ask && ask->attempt != holder) {
        const auto since =
            std::chrono::floor<milliseconds>(std::chrono::microseconds{place.ticket});
        all.try_emplace({place.ticket, ask->inbox}, redis::describe_waiter(ask->holder, since));
      } else {
        waiting -= std::min<std::size_t>(waiting, 1);
      }
    }
    status.waiting = std::max(status.waiting, waiting);
  }
  status.waiting = std::max(status.waiting, all.size());
  for (auto& [when, who] : all) {
    if (status.waiters.size() < waiters_shown_max) status.waiters.push_back(std::move(who));
  }
}

failure too_few(std::size_t known, std::span<const node_view> views) {
  failure why{errc::store_unreachable,
              "only " + std::to_string(known) + " of " + std::to_string(views.size()) +
                  " nodes could say who holds the lock",
              {}};
  for (const auto& one : views) {
    if (one.known) continue;
    // A list of nodes that is wrong is not a matter of patience.
    if (one.why.code == errc::incompatible) why.code = errc::incompatible;
    why.nodes.push_back({one.node, one.why.message});
    why.message += "; " + one.node + ": " + one.why.message;
  }
  return why;
}

}  // namespace

std::optional<core::owner_id> owner_in(std::string_view value) {
  return core::owner_id::parse(value.substr(0, core::owner_id::digits));
}

std::vector<node_view> read_views(const std::optional<result<redis::reply>>& answer,
                                  std::size_t locks, const std::string& node,
                                  const set_names& set) {
  node_view unknown;
  unknown.node = node;
  auto said = usable_answer(answer, node, set);
  if (!said) {
    unknown.why = std::move(said.error());
    const bool answered = answer && *answer;
    if (answered) {
      unknown.quarantine = read_quarantine(***answer);
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
    const auto line = elements_of(*of[3]);
    for (std::size_t k = 0; k + 1 < line.size(); k += 2)
      all[i].line.push_back(
          {redis::read_number(text_of(*line[k + 1])), std::string{text_of(*line[k])}});
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
  tell_who_waits(status, views, holder);
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
