// Which node of a cluster has which hash slot, as one node told it.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/result.hpp>

#include "stores/redis/resp.hpp"

namespace holdfast::stores::redis {

// Where a node listens, as the cluster says or as the URL does. These may differ for one node.
struct node_address {
  std::string host;
  std::uint16_t port = 0;

  [[nodiscard]] std::string text() const;
  friend auto operator<=>(const node_address&, const node_address&) = default;
};

// "host:port" as redirections have it: an IPv6 address has no brackets there, and an empty host
// means that of the node which said so. Port 0: it is no address.
[[nodiscard]] node_address read_address(std::string_view text, const std::string& said_by);

// A value type.
class slot_map {
 public:
  static constexpr unsigned slots = 16384;
  // Nodes that have slots; a cluster of more is refused. Redis itself advises against more.
  static constexpr std::size_t masters_max = 1000;

  // Null: no node has it, as far as is known.
  [[nodiscard]] const node_address* owner(unsigned slot) const noexcept;
  [[nodiscard]] const std::vector<node_address>& masters() const noexcept { return masters_; }
  [[nodiscard]] bool empty() const noexcept { return masters_.empty(); }
  // One slot has another node by now. False: there are too many nodes already.
  bool assign(unsigned slot, const node_address& to);

 private:
  static constexpr std::uint16_t nobody = 0xffff;
  std::vector<node_address> masters_;
  std::vector<std::uint16_t> owner_ = std::vector<std::uint16_t>(slots, nobody);
};

// The answer to CLUSTER SLOTS. errc::incompatible: it makes no sense.
[[nodiscard]] result<slot_map> read_slot_map(const reply_value& answer, const std::string& said_by);

// What a node says of its cluster in CLUSTER INFO.
struct cluster_health {
  bool ok = true;           // it serves; also if the node did not say
  std::uint64_t epoch = 0;  // of two nodes' views the one with the higher number is the newer
};
[[nodiscard]] cluster_health read_health(std::string_view info) noexcept;

}  // namespace holdfast::stores::redis
