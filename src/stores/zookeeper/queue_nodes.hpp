// Who owns a lock among the nodes that contend for it, and whom each of the others watches.
//
// The layout is Curator's. A contender is a node `_c_<uuid>-lock-<sequence>` below the lock's path;
// readers and writers have `__READ__` and `__WRIT__` in place of `lock-`. What other clients write
// before the name of the kind does not matter, as it does not to Curator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"

namespace holdfast::stores::zookeeper {

enum class node_kind : std::uint8_t { mutex, reader, writer, permit };

// What stands before the sequence number in a node's name.
[[nodiscard]] std::string_view mark_of(node_kind kind) noexcept;

struct contender_node {
  std::string name{};
  node_kind kind = node_kind::mutex;
  std::int32_t sequence = 0;
};

// Empty for a child that contends for nothing.
[[nodiscard]] std::optional<contender_node> parse_node(std::string_view name);

// The server counts a parent's children in 32 bits and goes on at the lowest negative number, so
// "before" is by the distance, which is right while fewer than 2^31 were created since the older of
// the two.
[[nodiscard]] bool comes_before(const contender_node& a, const contender_node& b) noexcept;

// Those that contend, in the order in which they came; other children are left out.
[[nodiscard]] std::vector<contender_node> queue_of(const std::vector<std::string>& children);

// Where a node stands in its queue.
struct standing {
  bool exists = false;
  bool owns = false;
  // When it does not own the lock: the one node whose end may change that, so that a release wakes
  // one waiter, and the first owner. Both are indexes into the queue.
  std::size_t watched = 0;
  std::size_t owner = 0;
};
[[nodiscard]] standing standing_of(const std::vector<contender_node>& queue, std::string_view name);

// How many from the front own the lock together: readers up to the first writer, or one node.
[[nodiscard]] std::size_t owners_of(const std::vector<contender_node>& queue) noexcept;

// Whether locks of both kinds would share a path and not a lock.
[[nodiscard]] bool may_share(node_kind a, node_kind b) noexcept;

// `_c_<uuid>-`, by which an attempt finds a node whose creation was not answered.
[[nodiscard]] std::string own_prefix(const core::owner_id& id);
// All but the sequence number, which the server adds.
[[nodiscard]] std::string name_to_create(const core::owner_id& id, node_kind kind);
// In place of `old`, in the same place of the queue, but another node, so that what is still under
// way for the old one misses it. `fresh` makes the difference.
[[nodiscard]] std::string name_in_place_of(const contender_node& old, const core::owner_id& id,
                                           node_kind kind, const core::owner_id& fresh);

}  // namespace holdfast::stores::zookeeper
