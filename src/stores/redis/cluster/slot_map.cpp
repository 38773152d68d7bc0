#include "stores/redis/cluster/slot_map.hpp"

#include <algorithm>
#include <charconv>

#include "core/fail.hpp"
#include "stores/redis/script_values.hpp"

namespace holdfast::stores::redis {

namespace {

// The text behind "name:" in lines that end with \r\n.
std::string_view line_of(std::string_view info, std::string_view name) noexcept {
  auto at = info.find(name);
  while (at != std::string_view::npos && at > 0 && info[at - 1] != '\n')
    at = info.find(name, at + 1);
  if (at == std::string_view::npos) return {};
  info.remove_prefix(at + name.size());
  return info.substr(0, info.find_first_of("\r\n"));
}

bool is_slot(const reply_value& what) noexcept {
  return what.type == reply_kind::integer && what.integer >= 0 &&
         what.integer < static_cast<long long>(slot_map::slots);
}

}  // namespace

std::string node_address::text() const {
  const bool is_v6 = host.find(':') != std::string::npos;
  return (is_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

node_address read_address(std::string_view text, const std::string& said_by) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return {};
  const auto digits = text.substr(colon + 1);
  node_address where;
  const auto* end = digits.data() + digits.size();
  const auto got = std::from_chars(digits.data(), end, where.port);
  if (got.ec != std::errc{} || got.ptr != end) return {};
  where.host = colon == 0 ? said_by : std::string{text.substr(0, colon)};
  return where;
}

const node_address* slot_map::owner(unsigned slot) const noexcept {
  const auto at = owner_[slot % slots];
  return at == nobody ? nullptr : &masters_[at];
}

bool slot_map::assign(unsigned slot, const node_address& to) {
  auto found = std::find(masters_.begin(), masters_.end(), to);
  if (found == masters_.end()) {
    if (masters_.size() >= masters_max) return false;
    found = masters_.insert(masters_.end(), to);
  }
  owner_[slot % slots] = static_cast<std::uint16_t>(found - masters_.begin());
  return true;
}

result<slot_map> read_slot_map(const reply_value& answer, const std::string& said_by) {
  const auto strange = [&](std::string_view what) {
    return core::fail(errc::incompatible,
                      said_by + " gave an answer to CLUSTER SLOTS that " + std::string{what});
  };
  slot_map all;
  if (answer.type != reply_kind::array) return strange("is no list");
  for (const auto* range : elements_of(answer)) {
    // first slot, last slot, the master, its replicas
    const auto fields = elements_of(*range);
    if (fields.size() < 3 || !is_slot(*fields[0]) || !is_slot(*fields[1]))
      return strange("makes no sense");
    const auto master = elements_of(*fields[2]);
    if (master.size() < 2 || master[1]->type != reply_kind::integer) return strange("has no node");
    const auto host = text_of(*master[0]);
    // A node that does not know its own name says nothing, and one whose name it does not know "?".
    const bool is_itself = master[0]->type == reply_kind::nothing || host.empty();
    if (host == "?") continue;
    const auto port = master[1]->integer;
    if (port <= 0 || port > 0xffff) return strange("has a node without a port");
    const node_address where{is_itself ? said_by : std::string{host},
                             static_cast<std::uint16_t>(port)};
    for (auto slot = fields[0]->integer; slot <= fields[1]->integer; ++slot) {
      if (!all.assign(static_cast<unsigned>(slot), where))
        return strange("has more than " + std::to_string(slot_map::masters_max) + " masters");
    }
  }
  return all;
}

cluster_health read_health(std::string_view info) noexcept {
  const auto state = line_of(info, "cluster_state:");
  return {state.empty() || state == "ok", read_number(line_of(info, "cluster_current_epoch:"))};
}

}  // namespace holdfast::stores::redis
