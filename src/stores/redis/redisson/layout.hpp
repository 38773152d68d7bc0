// What Redisson stores for its locks, and how it names keys and channels. The same for ever, or
// Java's clients and ours would not see each other.
//
//   <name>                             a hash with one field, which names the owner; its value is
//                                      how often the owner holds it. The TTL is on the whole key.
//                                      Any text may name an owner; ours says who it is:
//                                      <32 hex>;holdfast=1;token=…;ask=…;since=<ms>;host=…;pid=…;…
//   redisson_lock__channel:{<name>}    a channel: "0" wakes one waiter of each client
//   redisson_unlock_latch:{<name>}:<32 hex>   the answer to one release, until it has arrived
//   redisson_lock_token:{<name>}       the last token of a fenced lock, counting from 1; no TTL
//
// Of a read/write lock, which scripts/parts/redisson_holds.lua says more of:
//   <name>                             a hash: mode, "read" or "write"; for each reader's owner,
//                                      and for a writer's with ":write", how many holds it has. An
//                                      owner of ours is 32 hex digits, and has one
//   {<name>}:<field>:rwlock_timeout:<i>   a string for each hold, whose TTL is the hold's. That of
//                                      ours says who it is; Redisson has "1", and none for a writer
//   redisson_rwlock:{<name>}           a channel: "0" after the last reader, "1" after a writer
//
// Of a fair lock, beside what a plain one has:
//   redisson_lock_queue:{<name>}       a list of waiters, first come first; any text. Ours say
//                                      <32 hex>;holdfast=1;place=<ms>;since=<ms>;host=…;pid=…;…
//   redisson_lock_timeout:{<name>}     a sorted set: until when each keeps its place, in ms since
//                                      1970
//   redisson_lock__channel:{<name>}:<waiter>   a channel: "0" when it is the first and may ask
//
// Of a semaphore whose permits expire:
//   <name>                             a string: how many permits are to be had
//   {<name>}:timeout                   a sorted set: who has a permit, any text, and until when, in
//                                      ms since 1970, by the clock of the client that took it. Ours
//                                      take the server's.
//   redisson_sc:{<name>}               a channel: how many are to be had now
//
// Of a semaphore whose permits have no lease, and of a latch:
//   <name>                             a string: how many permits are to be had; how many have to
//                                      count yet, and no key at zero
//   redisson_sc:{<name>}               as above
//   redisson_countdownlatch__channel__{<name>}   a channel: "0" the latch is open, "1" it has a
//                                      count again. Always in braces.
//
// A name that holds "{" is not put into braces.
#pragma once

#include <string>
#include <string_view>

namespace holdfast::stores::redis::redisson {

[[nodiscard]] inline std::string key_for(std::string_view what, std::string_view name) {
  const bool has_tag = name.find('{') != std::string_view::npos;
  return std::string{what} + (has_tag ? ":" : ":{") + std::string{name} + (has_tag ? "" : "}");
}

[[nodiscard]] inline std::string key_of(std::string_view name, std::string_view part) {
  const bool has_tag = name.find('{') != std::string_view::npos;
  return (has_tag ? "" : "{") + std::string{name} + (has_tag ? ":" : "}:") + std::string{part};
}

// The message of a lock's release. All others are for every waiter: that of a reader's, and those
// of a semaphore, which say how many permits there are.
inline constexpr std::string_view wakes_one = "0";

// A latch's messages are for every waiter, though one of them is "0", too.
inline constexpr std::string_view latch_is_open = "0";
inline constexpr std::string_view latch_is_new = "1";
inline constexpr std::string_view latch_channels = "redisson_countdownlatch__channel__";
[[nodiscard]] inline std::string latch_channel(std::string_view name) {
  return std::string{latch_channels} + '{' + std::string{name} + '}';
}
[[nodiscard]] inline bool is_for_all(std::string_view channel, std::string_view message) {
  return message != wakes_one || channel.starts_with(latch_channels);
}

}  // namespace holdfast::stores::redis::redisson
