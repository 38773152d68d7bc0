// What the nodes say of a lock, put together.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <holdfast/result.hpp>
#include <holdfast/status.hpp>

#include "core/types.hpp"
#include "stores/redlock/replies.hpp"

namespace holdfast::stores::redlock {

// A waiter in a node's queue.
struct queued {
  std::uint64_t ticket = 0;  // when it came, µs: scripts/acquire.lua
  std::string entry{};       // as queue_entry
};

// One lock, as one node has it.
struct node_view {
  std::string node{};
  bool known = false;  // it may vote, so what it says counts
  // Known:
  std::string value{};  // empty: free
  std::optional<core::duration> remaining{};
  std::size_t waiting = 0;
  std::vector<queued> queue{};  // the first of those
  // Not known:
  lock_on_node::state trouble = lock_on_node::state::unreachable;
  std::optional<core::duration> quarantine{};  // how long it lasts
  failure why{};
};

// A node's answer to scripts/inspect.lua for so many locks: a view of each.
[[nodiscard]] std::vector<node_view> read_views(const std::optional<result<redis::reply>>& answer,
                                                std::size_t locks, const std::string& node,
                                                const set_identity& set);

// Held by the attempt that has a majority; a failure, with what each node said, if too few know.
// Not every waiter is in the queue of every node: one that is in any queue waits.
[[nodiscard]] result<lock_status> judge_status(std::string name, std::span<const node_view> views);

// Whose value it is, if it is one of ours.
[[nodiscard]] std::optional<core::owner_id> owner_in(std::string_view value);

}  // namespace holdfast::stores::redlock
