// What the scripts answer, as the types of core.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/result.hpp>

#include "core/quorum_machine.hpp"
#include "core/types.hpp"
#include "stores/redis/resp.hpp"

namespace holdfast::stores::redlock {

// The set of nodes that a client was given, as their records have it.
struct set_identity {
  // Of each node: names the set, the node's place in it and max_ttl. Travels in every script.
  std::vector<std::string> configs;
  std::string description;  // for people: describe_set()
  unsigned epoch = 1;
  core::duration max_ttl{};
};

// What a person can do about nodes that have to wait before they vote.
inline constexpr std::string_view init_advice =
    "; if nothing is held, `holdfast redlock init` lets them vote at once";

// For a person, rounded up.
[[nodiscard]] std::string in_seconds(core::duration left);

// Why a node refuses to vote; nothing if the answer is no refusal.
[[nodiscard]] std::optional<failure> read_refusal(const redis::reply_value& answer,
                                                  const std::string& node, const set_identity& set);
// What a node said, if it is of use: an answer, and no refusal.
[[nodiscard]] result<const redis::reply_value*> usable_answer(
    const std::optional<result<redis::reply>>& answer, const std::string& node,
    const set_identity& set);
// For how long, by its clock, the node does not vote because it may have forgotten something;
// nothing if it does.
[[nodiscard]] std::optional<core::duration> read_quarantine(const redis::reply_value& answer,
                                                            const set_identity& set);
// Whether the node says that it has to be let in first.
[[nodiscard]] bool asks_for_admission(const redis::reply_value& answer);

[[nodiscard]] core::vote read_acquire(const redis::reply_value& answer, const std::string& node,
                                      const set_identity& set);
[[nodiscard]] core::vote read_raise(const redis::reply_value& answer, std::uint64_t asked,
                                    const std::string& node, const set_identity& set);

}  // namespace holdfast::stores::redlock
