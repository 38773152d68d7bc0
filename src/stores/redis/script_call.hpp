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
  [[nodiscard]] const std::string& by_hash() const noexcept { return by_hash_; }
  // Null: it is no script.
  [[nodiscard]] const scripts::script* which() const noexcept { return which_; }
  // For a server that does not know the script: after a restart, or SCRIPT FLUSH.
  [[nodiscard]] std::string by_source() const;

 private:
  const scripts::script* which_ = nullptr;
  std::string by_hash_;
  std::size_t tail_at_ = 0;
  std::size_t arguments_ = 0;
};

}  // namespace holdfast::stores::redis
