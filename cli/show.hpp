// Who holds a lock, for people and for programs. What a holder wrote about itself is untrusted and
// leaves here escaped, in JSON too: JSON has no way to say "these bytes".
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <holdfast/status.hpp>

namespace holdfast::cli {

// `held by web1 pid 4711 (nightly) for 3m2s, 21s left unless renewed`; `free`.
[[nodiscard]] std::string describe(const lock_status& status);

[[nodiscard]] std::string show_table(const std::vector<lock_status>& locks);

// Who waits, in order, a line each; nothing if nobody does.
[[nodiscard]] std::string show_queue(const lock_status& status);

// What kind of lock it is, and how much of it is in use; nothing for a mutex.
[[nodiscard]] std::string show_units(const lock_status& status);

// On a quorum: how far its nodes agree, then what each says; nothing for a store without nodes.
[[nodiscard]] std::string show_nodes(const lock_status& status);

[[nodiscard]] nlohmann::ordered_json to_json(const lock_status& status);

}  // namespace holdfast::cli
