// A script of ours with its keys and arguments, ready to be sent.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "scripts.hpp"

namespace holdfast::stores::redis {

class script_call {
 public:
  // `to_come`: arguments that are added when it is sent.
  script_call(const scripts::script& which, std::span<const std::string_view> keys,
              std::span<const std::string_view> args, std::size_t to_come = 0);
  // Another command, which has one form only.
  explicit script_call(std::string bytes) : by_hash_{std::move(bytes)} {}
  // For a command that has a key. In a cluster one without goes to any node.
  script_call(std::string bytes, std::string_view key) : by_hash_{std::move(bytes)} {
    key_at_ = by_hash_.find(key);
    key_bytes_ = key.size();
  }
  [[nodiscard]] const std::string& by_hash() const noexcept { return by_hash_; }
  // The first one; all are in one hash slot. Empty: none.
  [[nodiscard]] std::string_view key() const noexcept {
    return std::string_view{by_hash_}.substr(key_at_, key_bytes_);
  }
  // Whether ASKING goes in front of it: to a node of a cluster that is just being given the slot.
  void ask_first(bool asking) noexcept { asks_first_ = asking; }
  [[nodiscard]] bool asks_first() const noexcept { return asks_first_; }
  // Null: it is no script.
  [[nodiscard]] const scripts::script* which() const noexcept { return which_; }
  // For a server that does not know the script: after a restart, or SCRIPT FLUSH.
  [[nodiscard]] std::string by_source() const;

 private:
  const scripts::script* which_ = nullptr;
  std::string by_hash_;
  std::size_t tail_at_ = 0;
  std::size_t arguments_ = 0;
  std::size_t key_at_ = 0;
  std::size_t key_bytes_ = 0;
  bool asks_first_ = false;
};

}  // namespace holdfast::stores::redis
