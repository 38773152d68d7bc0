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

constexpr std::size_t shown_max = 512;

std::string in_seconds(long long ms) { return std::to_string((ms + 999) / 1000) + " s"; }

long long kind_of(const redis::reply_value& answer) {
  const auto fields = elements_of(answer);
  return fields.empty() || fields[0]->type != redis::reply_kind::integer ? -2 : fields[0]->integer;
}

core::vote refusal(failure why) {
  return {.what = core::vote::kind::refused, .why = std::move(why)};
}

}  // namespace

bool asks_for_admission(const redis::reply_value& answer) {
  const auto fields = elements_of(answer);
  if (kind_of(answer) != -1 || fields.size() < 2) return false;
  const auto why = text_of(*fields[1]);
  return why == "blank" || why == "restarted";
}

std::optional<core::duration> read_quarantine(const redis::reply_value& answer) {
  const auto fields = elements_of(answer);
  if (!asks_for_admission(answer) || fields.size() < 4) return std::nullopt;
  const auto lasts = static_cast<long long>(read_number(text_of(*fields[3])));
  return std::chrono::milliseconds{std::max(0LL, lasts - fields[2]->integer)};
}

std::optional<failure> read_refusal(const redis::reply_value& answer, const std::string& node,
                                    const set_names& set) {
  if (kind_of(answer) != -1) return std::nullopt;
  const auto fields = elements_of(answer);
  if (fields.size() < 3) return strange_answer(node);
  const auto why = text_of(*fields[1]);
  if (why == "config") {
    return failure{errc::incompatible,
                   "it belongs to the set " + escape(text_of(*fields[2]).substr(0, shown_max)) +
                       ", this client uses " + escape(set.ours),
                   {}};
  }
  if (why == "ttl") {
    return failure{errc::invalid_argument,
                   "the TTL is above the max_ttl of the set, " +
                       in_seconds(static_cast<long long>(read_number(text_of(*fields[2])))),
                   {}};
  }
  if (why == "moved") {
    return failure{errc::store_loading,
                   "it came from another set of nodes, where locks may still be held: it lets new "
                   "nodes in after " +
                       in_seconds(fields[2]->integer),
                   {}};
  }
  if (fields.size() < 4) return strange_answer(node);
  const auto waited = fields[2]->integer;
  const auto wait = static_cast<long long>(read_number(text_of(*fields[3])));
  const auto left = std::max(0LL, wait - waited);
  if (why == "restarted") {
    return failure{errc::store_loading,
                   "restarted " + in_seconds(waited) +
                       " ago and may have lost locks: it votes again in " + in_seconds(left) +
                       ", with its counters from a majority of the others",
                   {}};
  }
  return failure{errc::store_loading,
                 "it is empty and may have lost locks: it votes in " +
                     (wait == 0 ? "max_ttl" : in_seconds(left)) +
                     "; if the whole set is new, `holdfast redlock init` lets it begin at once",
                 {}};
}

result<const redis::reply_value*> usable_answer(const std::optional<result<redis::reply>>& answer,
                                                const std::string& node, const set_names& set) {
  if (!answer) return fail(errc::outcome_unknown, "no answer in time");
  if (!*answer) return fail(answer->error());
  if (auto why = read_refusal(***answer, node, set)) return fail(std::move(*why));
  return (*answer)->get();
}

core::vote read_acquire(const redis::reply_value& answer, const std::string& node,
                        const set_names& set) {
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
                      const std::string& node, const set_names& set) {
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
