// What the servers behind a store said of themselves when they were asked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/result.hpp>

#include "core/types.hpp"

namespace holdfast::core {

// Keys that are, or could be taken for, locks and what belongs to them.
struct key_facts {
  struct group {
    std::size_t count = 0;
    std::string example{};  // the first of them, printable

    void add(std::string name) {
      if (count++ == 0) example = std::move(name);
    }
  };
  bool complete = true;   // false: there are more keys than were looked at
  group without_expiry;   // of ours, which nobody frees
  group damaged;          // begin as ours do, and go on otherwise
  group newer;            // written by a version too new for this one
  group foreign;          // hold something else
  group expiring_record;  // token counters that the server will forget
  group damaged_record;   // token counters that are no such thing
};

// What a server does not say, or lets nobody ask, is empty.
struct server_facts {
  std::string node;                // for messages
  std::optional<failure> trouble;  // why nothing could be looked at; the rest is empty then
  std::string version;
  std::string run_id;  // of this run of the server's process
  bool is_replica = false;
  bool in_cluster = false;
  std::optional<std::uint64_t> replicas;
  bool wants_replicas = false;  // refuses writes without them
  std::optional<bool> keeps_log;
  std::string syncs_log;  // appendfsync
  bool log_fails = false;
  bool snapshot_fails = false;
  std::string eviction;  // maxmemory-policy
  std::uint64_t memory_max = 0;
  std::uint64_t memory_used = 0;
  std::uint64_t evicted = 0;
  std::optional<duration> up_for;
  // How far its clock is ahead of ours, to within the doubt.
  std::optional<duration> clock_ahead;
  duration clock_doubt{};
  duration clock_stepped{};            // while it was looked at
  std::optional<duration> round_trip;  // half of them took longer
  // What the user may not do, as access rules call it, and what that is for.
  struct missing_right {
    std::string right;
    std::string used_for;
    bool essential = true;
  };
  std::vector<missing_right> missing_rights;
  std::vector<std::string> unseen;  // what could not be looked at, and why
  std::optional<key_facts> keys;
  // On a quorum.
  std::optional<bool> votes;
  std::string standing;  // why not, for a person
};

struct deployment {
  enum class form { one_server, quorum };
  form is = form::one_server;
  bool on_this_host = false;  // a host that crashes takes all users of its locks with it
  bool has_prefix = false;
  duration max_ttl = std::chrono::seconds{60};            // of a quorum
  duration node_timeout = std::chrono::milliseconds{50};  // of a quorum
  std::vector<server_facts> servers;
};

}  // namespace holdfast::core
