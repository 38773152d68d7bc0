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

// About this process.
[[nodiscard]] std::string value_of(std::string_view label);
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

}  // namespace holdfast::stores::etcd
