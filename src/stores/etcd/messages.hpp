// What is sent to etcd's JSON gateway, and what it answers. Knows nothing of locks or connections.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <holdfast/result.hpp>

#include "core/fail.hpp"

namespace holdfast::stores::etcd {

using revision = std::int64_t;
using lease_id = std::int64_t;

struct key_value {
  std::string key;
  std::string value{};  // empty if only keys were asked for
  revision created = 0;
  lease_id lease = 0;  // 0: it has none
};

struct read {
  enum class order : std::uint8_t { by_key, oldest_first, newest_first };  // of creation
  std::string from;
  std::string to{};  // exclusive; empty: the one key
  order sorted = order::by_key;
  std::int64_t limit = 0;   // 0: none
  revision created_by = 0;  // not those created later; 0: all
  bool keys_only = false;
};
struct put {
  std::string key;
  std::string value{};
  lease_id lease = 0;
  bool keeps_value = false;  // of a key that is there
};
struct remove {
  std::string key;
};
using operation = std::variant<read, put, remove>;

// About when a key was created: 0 stands for one that is not there.
struct condition {
  std::string key;
  std::string to{};  // as of read: then it is said of all keys that are there
  revision created = 0;
  bool is_more = false;  // created later than that; not: just then
};

struct transaction {
  std::vector<condition> if_all{};
  std::vector<operation> then{};
  std::vector<operation> otherwise{};
};

struct found {
  std::vector<key_value> keys{};
  std::int64_t count = 0;  // also of those beyond the limit
};
struct transaction_answer {
  bool succeeded = false;
  revision at = 0;             // of the store, when it answered
  std::vector<found> reads{};  // of the operations that were done, in order; of the rest nothing
};

struct lease_answer {
  lease_id id = 0;
  std::int64_t ttl_s = 0;  // granted, or left; 0 or less: it is gone
};

struct watch_event {
  bool is_removal = false;
  std::string key;
};
struct watch_answer {
  bool created = false;   // it hears what comes from now on
  bool canceled = false;  // also: the revision to start from is compacted
  std::string why{};
  std::vector<watch_event> events{};
};

// What etcd says when it does not do what was asked.
struct refusal {
  int code = 0;  // of gRPC
  std::string message;
};

// Bytes as the gateway wants them. decode: nothing if it is not base64.
[[nodiscard]] std::string to_base64(std::string_view bytes);
[[nodiscard]] std::optional<std::string> from_base64(std::string_view text);

// The first key that does not begin with `prefix`: the end of a range of those that do.
[[nodiscard]] std::string end_of_prefix(std::string_view prefix);

[[nodiscard]] std::string to_json(const transaction& what);
[[nodiscard]] std::string to_json(const read& what);
[[nodiscard]] std::string lease_grant_json(std::int64_t ttl_s);
[[nodiscard]] std::string lease_json(lease_id id);  // keep alive, revoke, time to live
// What becomes of this key, from a revision on: its removal, and if need be other values.
[[nodiscard]] std::string watch_json(std::string_view key, revision from, bool with_puts = false);
[[nodiscard]] std::string credentials_json(std::string_view user, std::string_view password);

// Each fails with errc::incompatible for what is not such an answer.
[[nodiscard]] result<transaction_answer> read_transaction(std::string_view json);
[[nodiscard]] result<found> read_found(std::string_view json);
[[nodiscard]] result<lease_answer> read_lease(std::string_view json);
[[nodiscard]] result<watch_answer> read_watch(std::string_view json);
[[nodiscard]] result<std::string> read_token(std::string_view json);
[[nodiscard]] refusal read_refusal(std::string_view json);

}  // namespace holdfast::stores::etcd
