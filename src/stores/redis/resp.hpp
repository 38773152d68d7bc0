// Commands as bytes, replies as values.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <hiredis/hiredis.h>

namespace holdfast::stores::redis {

struct free_reply {
  void operator()(redisReply* r) const noexcept { ::freeReplyObject(r); }
};
using reply = std::unique_ptr<redisReply, free_reply>;

struct free_reader {
  void operator()(redisReader* r) const noexcept { ::redisReaderFree(r); }
};
using reply_reader = std::unique_ptr<redisReader, free_reader>;

[[nodiscard]] inline std::string_view text_of(const redisReply& r) noexcept {
  const bool has_text =
      r.type == REDIS_REPLY_STRING || r.type == REDIS_REPLY_STATUS || r.type == REDIS_REPLY_ERROR;
  return has_text ? std::string_view{r.str, static_cast<std::size_t>(r.len)} : std::string_view{};
}
[[nodiscard]] inline std::span<redisReply* const> elements_of(const redisReply& r) noexcept {
  if (r.type != REDIS_REPLY_ARRAY) return {};
  return {r.element, r.elements};
}

// One argument of a command, as it is sent.
[[nodiscard]] inline std::string as_argument(std::string_view text) {
  return "$" + std::to_string(text.size()) + "\r\n" + std::string{text} + "\r\n";
}

// Builds one command. Appends in place: hiredis' formatter allocates for every command.
class command {
 public:
  explicit command(std::size_t arguments) { head('*', arguments); }
  command& arg(std::string_view text) {
    head('$', text.size());
    bytes_ += text;
    bytes_ += "\r\n";
    return *this;
  }
  command& arg(long long number) { return arg(std::string_view{std::to_string(number)}); }
  [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }

 private:
  void head(char kind, std::size_t count) {
    bytes_ += kind;
    bytes_ += std::to_string(count);
    bytes_ += "\r\n";
  }
  std::string bytes_;
};

}  // namespace holdfast::stores::redis
