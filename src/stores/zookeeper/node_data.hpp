// What a contender's node says of its owner, for people who look. Other clients ignore it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <holdfast/status.hpp>

namespace holdfast::stores::zookeeper {

// Of what a foreign client wrote; Curator writes an address.
inline constexpr std::size_t foreign_data_shown_max = 256;

// What a node says. Of one that took the place of another, `who.token` is that one's.
struct node_note {
  holder who{};
  // How long the server waits for a sign of life; empty: a foreign client's, who knows.
  std::optional<std::chrono::milliseconds> session_ttl{};
};
// With who.token only if that is not zero.
[[nodiscard]] std::string node_data(const node_note& note);

// `made`: what the server knows of the node, its czxid and the time of its creation.
struct node_birth {
  std::int64_t czxid = 0;
  std::int64_t at_ms = 0;
};
[[nodiscard]] node_note note_in(std::string_view data, const node_birth& made);

}  // namespace holdfast::stores::zookeeper
