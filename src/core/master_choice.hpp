// Decides which server is the master of a replicated Redis, from what Sentinels say of it or what
// the servers say of themselves.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace holdfast::core {

struct server_address {
  std::string host;
  std::uint16_t port = 0;
  friend bool operator==(const server_address&, const server_address&) = default;
};

// What one Sentinel says. The epoch goes up with each failover, and a majority of all Sentinels has
// to agree to it: of two Sentinels that differ, the one with the lower epoch has not heard yet.
struct sentinel_word {
  server_address master;
  std::uint64_t epoch = 0;
};

// What a client knows of a master that Sentinels watch. Not thread-safe.
//
// | what the Sentinels that answered say                        | believed then           |
// |-------------------------------------------------------------|-------------------------|
// | nothing                                                     | as before               |
// | an epoch that is known or newer                             | the newest              |
// | the same epoch, several addresses                           | as before, if it is one |
// |                                                             | of them; else the most  |
// | older epochs than known                                     | as before: stale views  |
// | that for `stale_max` on end, from more than half of those   | the newest of these:    |
// | named                                                       | they were set up anew   |
class sentinel_views {
 public:
  // Sentinels tell each other of a failover within two seconds.
  static constexpr duration stale_max = std::chrono::seconds{10};

  explicit sentinel_views(std::size_t named) noexcept : named_{named} {}

  // Those who did not answer are left empty. Gives whom to believe; empty: nobody ever said.
  const std::optional<server_address>& hear(std::span<const std::optional<sentinel_word>> said,
                                            time_point now);

  [[nodiscard]] const std::optional<server_address>& master() const noexcept { return master_; }

 private:
  std::size_t named_;
  std::optional<server_address> master_;
  std::uint64_t epoch_ = 0;
  std::optional<time_point> stale_since_;  // a majority has said so again and again
};

// What one server says of its own part in replication (INFO replication).
struct replication_word {
  bool is_master = false;
  std::string history;         // master_replid: changes when a replica is promoted
  std::string history_before;  // master_replid2: whose replica it was until then
};

// The master among servers that nobody watches. A replica that was promoted while the old master
// goes on carries the old master's history: it is the later one. Two masters of which neither comes
// from the other are two stores, and to choose one would be a guess.
struct master_found {
  enum class verdict { one, none, several };
  verdict is = verdict::none;
  std::size_t which = 0;  // one
};
// `lately`: what servers that did not answer said last. One of them is not chosen, but a master
// that it has succeeded is not gone back to.
[[nodiscard]] master_found find_master(std::span<const std::optional<replication_word>> said,
                                       std::span<const std::optional<replication_word>> lately);
[[nodiscard]] inline master_found find_master(
    std::span<const std::optional<replication_word>> said) {
  return find_master(said, said);
}

// What servers said last of their parts. Not thread-safe.
class replication_views {
 public:
  // A promoted server that is silent for longer may be gone for good, and the old master be all
  // that is left.
  static constexpr duration silent_max = std::chrono::seconds{10};

  // Those who did not answer are left empty.
  [[nodiscard]] master_found hear(std::span<const std::optional<replication_word>> said,
                                  time_point now);

 private:
  struct view {
    std::optional<replication_word> word;
    time_point at{};
  };
  std::vector<view> views_;
};

}  // namespace holdfast::core
