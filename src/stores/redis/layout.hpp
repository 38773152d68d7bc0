// What is stored in Redis, and its version.
//
//   <prefix><name>            the lock, a plain string with a TTL, so that every client that uses
//                             SET NX PX on the same key excludes us and we them:
//                             <32 hex>;holdfast=1;token=…;since=<ms>;host=…;pid=…;label=…
//                             A lock that several may hold is a hash (scripts/parts/shares.lua).
//   holdfast:{<tag>}:slot     a hash without TTL, one for each of the 16,384 hash slots of a
//                             cluster, whatever the number of locks: `layout`, the newest layout
//                             that wrote here, and `token`, the last token granted. <tag> is a
//                             text of three letters that hashes to the lock's own slot, so that
//                             a script may touch both. ({name} would break on a name like "a}b".)
//
//   holdfast:{<tag>}:queue:<key>    a list of who waits, first come first; gone when nobody does
//   holdfast:{<tag>}:waiters:<key>  a hash: when each of them was last heard of; with
//                                   foreign=share also hands, began and room (leave_room.lua);
//                                   mute, if a message to a waiter was refused (hand_over.lua)
//   holdfast:inbox:<32 hex>         a channel for each client: grants are sent there
//   holdfast:inbox@<32 hex>         the same in a cluster, for each client and node. Every node
//                                   passes on what any of them publishes, so a script looks first
//                                   whether anybody listens where it runs (parts/tell.lua)
//   holdfast:{<tag>}:latch:<key>    a channel: the latch <key> (scripts/parts/latch.lua) is open,
//                                   or was started anew
//
// A version shares locks with the one before and the one after it. Further apart is an error.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <holdfast/result.hpp>
#include <holdfast/status.hpp>

#include "core/lock_kind.hpp"
#include "core/types.hpp"

namespace holdfast::stores::redis {

inline constexpr int layout_written = 1;
inline constexpr int layout_readable_max = layout_written + 1;

// Keys of our own start so; a lock may not.
inline constexpr std::string_view reserved_prefix = "holdfast:{";
// What a server has that votes in a quorum (stores/redlock).
inline constexpr std::string_view quorum_record_key = "holdfast:{redlock}:node";

[[nodiscard]] unsigned hash_slot(std::string_view key) noexcept;
// Three letters whose hash slot this is. Part of the stored layout: the same for ever.
[[nodiscard]] std::string slot_tag(unsigned slot);

// The keys of one lock.
struct lock_keys {
  explicit lock_keys(std::string lock_key);
  std::string lock;
  std::string slot;
  std::string queue;
  std::string waiters;
};

// "host=…;pid=…;label=…", with what would break the format as %XX.
[[nodiscard]] std::string describe_holder(std::string_view host, std::int64_t pid,
                                          std::string_view label);

// Who waits, as it stands in the queue; read by parts/hand_over.lua by the positions of its fields:
// "id;claim TTL, ms;block;layout;inbox;joined, ms;holder", fixed in width but for the last.
// For a lock that several may hold, block is 0 and the holder's text begins with units_wanted().
struct queue_entry {
  core::owner_id id;
  std::chrono::milliseconds claim{};
  std::uint64_t block = 1;
  std::string_view inbox;
  std::chrono::milliseconds joined{};  // by the waiter's wall clock
  std::string_view holder;             // as describe_holder() wrote it

  [[nodiscard]] std::string text() const;
  // Nothing if it was not written so.
  [[nodiscard]] static std::optional<queue_entry> parse(std::string_view text);
};
// "shared=1;": what a waiter wants of which kind of lock.
[[nodiscard]] std::string units_wanted(const core::lock_kind& kind, std::uint32_t units);
// How a latch is called where kind_name() says what a lock is.
inline constexpr std::string_view latch_kind_name = "latch";
// As the scripts call it; empty for a mutex, which they have no name for.
[[nodiscard]] std::string_view kind_name(core::lock_kind::form of) noexcept;
[[nodiscard]] lock_status::form kind_called(std::string_view name) noexcept;
// `holder` as describe_holder() wrote it; since when by the waiter's wall clock.
[[nodiscard]] waiter describe_waiter(std::string_view holder, std::chrono::milliseconds since);
inline constexpr std::string_view inbox_prefix = "holdfast:inbox:";
// Of an inbox on a node of a cluster. As long as the other: entries of the queue have fixed fields.
inline constexpr std::string_view node_inbox_prefix = "holdfast:inbox@";
static_assert(inbox_prefix.size() == node_inbox_prefix.size());
// Where those who wait for this latch listen.
[[nodiscard]] std::string latch_channel(const std::string& key);

// How the value of a lock begins that was granted to this attempt with this token.
[[nodiscard]] std::string value_begins(const core::owner_id& id, fencing_token token);

// Reads a stored value back. A value that is not ours gives a foreign holder; one of a layout too
// new for us is errc::incompatible.
[[nodiscard]] result<holder> parse_holder(std::string_view value);

}  // namespace holdfast::stores::redis
