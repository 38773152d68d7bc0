#include "stores/redlock/replies.hpp"

#include <algorithm>

#include <holdfast/status.hpp>

#include "stores/redis/layout.hpp"
#include "stores/redis/script_values.hpp"

namespace holdfast::stores::redlock {

namespace {

using redis::elements_of;
using redis::read_number;
using redis::read_pttl;
using redis::strange_answer;
using redis::text_of;
using std::chrono::milliseconds;

constexpr std::size_t shown_max = 512;

// Why a client is refused that was given another set, and what to do about it.
std::string other_set(std::string_view theirs, std::string_view ours) {
  constexpr std::string_view last = ", max_ttl ";
  const auto list_of = [&](std::string_view set) { return set.substr(0, set.find(last)); };
  auto text = "it belongs to the set " + escape(theirs.substr(0, shown_max)) +
              ", this client uses " + escape(ours);
  if (list_of(theirs) != list_of(ours)) return text;
  const auto max_ttl = theirs.substr(std::min(theirs.size(), theirs.find(last) + last.size()));
  return text + ": all clients of a set need the same max_ttl. Write max_ttl=" +
         escape(max_ttl.substr(0, max_ttl.find(' '))) +
         " in the URL; to change it, see docs/redlock.md, Limits";
}

long long kind_of(const redis::reply_value& answer) {
  const auto fields = elements_of(answer);
  return fields.empty() || fields[0]->type != redis::reply_kind::integer ? -2 : fields[0]->integer;
}

core::vote refusal(failure why) {
  return {.what = core::vote::kind::refused, .why = std::move(why)};
}

}  // namespace

std::string in_seconds(core::duration left) {
  return std::to_string(std::chrono::ceil<std::chrono::seconds>(left).count()) + " s";
}

bool asks_for_admission(const redis::reply_value& answer) {
  const auto fields = elements_of(answer);
  if (kind_of(answer) != -1 || fields.size() < 2) return false;
  const auto why = text_of(*fields[1]);
  return why == "blank" || why == "restarted";
}

std::optional<core::duration> read_quarantine(const redis::reply_value& answer,
                                              const set_identity& set) {
  const auto fields = elements_of(answer);
  if (!asks_for_admission(answer) || fields.size() < 3) return std::nullopt;
  return std::max(core::duration::zero(), set.max_ttl - milliseconds{fields[2]->integer});
}

std::optional<failure> read_refusal(const redis::reply_value& answer, const std::string& node,
                                    const set_identity& set) {
  if (kind_of(answer) != -1) return std::nullopt;
  const auto fields = elements_of(answer);
  if (fields.size() < 3) return strange_answer(node);
  const auto why = text_of(*fields[1]);
  if (why == "config") {
    return failure{errc::incompatible, other_set(text_of(*fields[2]), set.description), {}};
  }
  if (why == "ttl") {
    return failure{errc::invalid_argument,
                   "the TTL is above the max_ttl of the set, " +
                       in_seconds(milliseconds{read_number(text_of(*fields[2]))}),
                   {}};
  }
  const auto left = read_quarantine(answer, set);
  if (!left) return strange_answer(node);
  return failure{errc::store_loading,
                 (why == "restarted" ? "it was restarted and may have lost locks: it votes again "
                                     : "it is empty and may have lost locks: it votes ") +
                     (*left == core::duration::zero() ? "in a moment" : "in " + in_seconds(*left)),
                 {}};
}

result<const redis::reply_value*> usable_answer(const std::optional<result<redis::reply>>& answer,
                                                const std::string& node, const set_identity& set) {
  if (!answer) return fail(errc::outcome_unknown, "no answer in time");
  if (!*answer) return fail(answer->error());
  if (auto why = read_refusal(***answer, node, set)) return fail(std::move(*why));
  return (*answer)->get();
}

core::vote read_acquire(const redis::reply_value& answer, const std::string& node,
                        const set_identity& set) {
  using kind = core::vote::kind;
  if (auto why = read_refusal(answer, node, set)) return refusal(std::move(*why));
  const auto fields = elements_of(answer);
  core::vote v;
  switch (kind_of(answer)) {
    case 1:
      v.what = kind::fresh;
      return v;
    case 2:
      if (fields.size() < 2) break;
      v.what = kind::stale;
      v.counter = read_number(text_of(*fields[1]));
      return v;
    case 0: {
      if (fields.size() < 4) break;
      if (const auto value = text_of(*fields[2]); !value.empty()) {
        auto holder = redis::parse_holder(value);
        if (!holder) return refusal(std::move(holder.error()));
        v.holder = std::move(*holder);
      }
      v.what = kind::busy;
      v.remaining = read_pttl(*fields[1]);
      v.counter = read_number(text_of(*fields[3]));
      return v;
    }
    default:
      break;
  }
  return {.what = kind::failed, .why = strange_answer(node)};
}

core::vote read_raise(const redis::reply_value& answer, std::uint64_t asked,
                      const std::string& node, const set_identity& set) {
  using kind = core::vote::kind;
  if (auto why = read_refusal(answer, node, set)) return refusal(std::move(*why));
  const auto fields = elements_of(answer);
  switch (kind_of(answer)) {
    case 1:
      return {.what = kind::raised, .counter = asked, .asked = asked};
    case 2:
      if (fields.size() < 2) break;
      return {
          .what = kind::not_raised, .counter = read_number(text_of(*fields[1])), .asked = asked};
    case 0:
      return {.what = kind::not_ours};
    default:
      break;
  }
  return {.what = kind::failed, .why = strange_answer(node)};
}

}  // namespace holdfast::stores::redlock
