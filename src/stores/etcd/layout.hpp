// What is stored: a key for each attempt at a lock, as etcd's own clients have it, and who it is in
// the value, which they leave empty. See docs/decisions/0043-etcd-layout.md.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/status.hpp>

#include "core/types.hpp"
#include "stores/etcd/messages.hpp"

namespace holdfast::stores::etcd {

// All keys of a lock begin so: the prefix of the store, the name, a slash. Those of locks whose
// names go on after a slash do as well; they are told apart by is_of().
[[nodiscard]] std::string folder_of(std::string_view prefix, std::string_view name);
// Whether a key that begins with the folder is of that lock, and not of one further down.
[[nodiscard]] bool is_of(std::string_view folder, std::string_view key) noexcept;
// The lock that a key is of, if it looks like one: of ours, or of etcdctl's (the id of its lease).
[[nodiscard]] std::optional<std::string> lock_of(std::string_view prefix, const key_value& one);

// What an attempt wants: the lock, or its share of a lock that readers share.
enum class part : std::uint8_t { whole, writer, reader };

// About this process.
[[nodiscard]] std::string value_of(std::string_view label, part what = part::whole);
// What the key says of itself; `whole` if others made it.
[[nodiscard]] part part_of(const key_value& one);
// The same value for a reader; empty if it is not a value of ours.
[[nodiscard]] std::string as_readers(std::string_view value);
// Of a key that others made: foreign, and its value is the end of the key.
[[nodiscard]] holder holder_of(const key_value& one);
[[nodiscard]] waiter waiter_of(const key_value& one);

// Where a key stands among those of its lock.
struct standing {
  bool is_there = false;
  bool owns = false;                 // no other was created before it
  std::optional<key_value> first{};  // who owns the lock
  std::optional<key_value> ahead{};  // the next one before it
};
// `oldest_first`: all that begin with the folder. Those of other locks are passed over.
[[nodiscard]] standing standing_of(std::string_view key, std::string_view folder,
                                   const std::vector<key_value>& oldest_first);

// The same of a lock that readers share: all keys of it, in the order of their coming. A reader is
// let in if no writer came before it, and a writer if nobody did.
struct shared_standing {
  bool is_there = false;
  bool is_in = false;
  bool is_other_kind = false;  // a mutex of ours has this name
  std::optional<key_value> first{};
  std::vector<key_value> ahead{};  // of those who are in the way, oldest first
};
[[nodiscard]] shared_standing shared_standing_of(std::string_view key, std::string_view folder,
                                                 const std::vector<key_value>& oldest_first);

// Which keys of a lock hold it, oldest first; the rest wait.
[[nodiscard]] std::size_t holders_in(const std::vector<key_value>& of_the_lock);

}  // namespace holdfast::stores::etcd
