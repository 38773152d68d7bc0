#include "stores/zookeeper/queue_nodes.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace holdfast::stores::zookeeper {

namespace {

constexpr std::array<std::pair<node_kind, std::string_view>, 4> marks{{
    {node_kind::mutex, "lock-"},
    {node_kind::reader, "__READ__"},
    {node_kind::writer, "__WRIT__"},
    {node_kind::permit, "lease-"},
}};

// Ten digits, or a sign and ten: "%010d" of a 32-bit number.
std::optional<std::int32_t> sequence_in(std::string_view text) {
  constexpr std::size_t digits = 10;
  const bool negative = text.starts_with('-');
  if (text.size() < digits || text.size() > digits + 1) return std::nullopt;
  if (text.size() == digits + 1 && !negative) return std::nullopt;
  std::int32_t number = 0;
  const auto* end = text.data() + text.size();
  const auto got = std::from_chars(text.data(), end, number);
  if (got.ec != std::errc{} || got.ptr != end) return std::nullopt;
  return number;
}

std::string text_of(std::int32_t sequence) {
  const auto wide = static_cast<std::int64_t>(sequence);
  auto digits = std::to_string(wide < 0 ? -wide : wide);
  const std::size_t width = wide < 0 ? 9 : 10;
  if (digits.size() < width) digits.insert(0, width - digits.size(), '0');
  return wide < 0 ? "-" + digits : digits;
}

}  // namespace

std::string_view mark_of(node_kind kind) noexcept {
  for (const auto& [which, mark] : marks) {
    if (which == kind) return mark;
  }
  return {};
}

std::optional<contender_node> parse_node(std::string_view name) {
  for (const auto& [kind, mark] : marks) {
    const auto at = name.rfind(mark);
    if (at == std::string_view::npos) continue;
    if (const auto number = sequence_in(name.substr(at + mark.size())))
      return contender_node{std::string{name}, kind, *number};
  }
  return std::nullopt;
}

bool comes_before(const contender_node& a, const contender_node& b) noexcept {
  const auto distance =
      static_cast<std::uint32_t>(b.sequence) - static_cast<std::uint32_t>(a.sequence);
  if (distance == 0) return a.name < b.name;
  return distance < (std::uint32_t{1} << 31);
}

std::vector<contender_node> queue_of(const std::vector<std::string>& children) {
  std::vector<contender_node> queue;
  queue.reserve(children.size());
  for (const auto& child : children) {
    if (auto node = parse_node(child)) queue.push_back(std::move(*node));
  }
  if (queue.empty()) return queue;
  // Distances from one node are numbers that sort; from each to each they would go in a circle.
  const auto origin = *std::min_element(queue.begin(), queue.end(), comes_before);
  std::sort(queue.begin(), queue.end(), [&](const contender_node& a, const contender_node& b) {
    const auto from = [&](const contender_node& one) {
      return static_cast<std::int32_t>(static_cast<std::uint32_t>(one.sequence) -
                                       static_cast<std::uint32_t>(origin.sequence));
    };
    return std::pair{from(a), std::string_view{a.name}} <
           std::pair{from(b), std::string_view{b.name}};
  });
  return queue;
}

std::size_t owners_of(const std::vector<contender_node>& queue) noexcept {
  if (queue.empty()) return 0;
  std::size_t readers = 0;
  while (readers < queue.size() && queue[readers].kind == node_kind::reader)
    ++readers;
  return std::max<std::size_t>(readers, 1);
}

standing standing_of(const std::vector<contender_node>& queue, std::string_view name) {
  standing where;
  const auto mine = std::find_if(queue.begin(), queue.end(),
                                 [&](const contender_node& one) { return one.name == name; });
  if (mine == queue.end()) return where;
  where.exists = true;
  const auto at = static_cast<std::size_t>(mine - queue.begin());
  where.owns = at < owners_of(queue);
  if (where.owns) return where;
  where.watched = at - 1;
  // A reader waits for writers only: the nearest is the last that can let it in.
  if (mine->kind == node_kind::reader) {
    while (queue[where.watched].kind == node_kind::reader)
      --where.watched;
  }
  return where;
}

bool may_share(node_kind a, node_kind b) noexcept {
  const auto family = [](node_kind kind) {
    return kind == node_kind::writer ? node_kind::reader : kind;
  };
  return family(a) == family(b);
}

std::string own_prefix(const core::owner_id& id) {
  const auto digits = id.text();
  std::string name = "_c_";
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i == 8 || i == 12 || i == 16 || i == 20) name += '-';
    name += digits[i];
  }
  return name + "-";
}

std::string name_to_create(const core::owner_id& id, node_kind kind) {
  return own_prefix(id) + std::string{mark_of(kind)};
}

std::string name_in_place_of(const contender_node& old, const core::owner_id& id, node_kind kind,
                             const core::owner_id& fresh) {
  return own_prefix(id) + std::string{fresh.text()} + "-" + std::string{mark_of(kind)} +
         text_of(old.sequence);
}

}  // namespace holdfast::stores::zookeeper
