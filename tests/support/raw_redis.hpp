// A bare Redis connection for tests: to look at keys, and to be the client Holdfast is not.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct redisReader;

namespace holdfast::test {

struct reply {
  enum class kind { text, integer, nil, error, array };
  kind type = kind::nil;
  std::string text{};  // of a string, a status or an error
  std::int64_t integer = 0;
  std::vector<reply> items{};

  [[nodiscard]] bool is_error() const noexcept { return type == kind::error; }
  // As a person would read it: nil is "(nil)", errors start with "(error) ", items are lines.
  [[nodiscard]] std::string shown() const;
};

// Where a server listens: a unix socket, or a port on the loopback address.
struct endpoint {
  std::string socket_path{};
  std::uint16_t port = 0;
};

// A connected stream socket; throws std::system_error. Nothing in the tests raises SIGPIPE.
[[nodiscard]] int connect_to(const endpoint& where);

// One connection. Not thread-safe. Throws std::runtime_error when the connection fails or nothing
// is answered in time.
class raw_redis {
 public:
  explicit raw_redis(const endpoint& where,
                     std::chrono::milliseconds answer_within = std::chrono::seconds{20});
  raw_redis(const raw_redis&) = delete;
  raw_redis& operator=(const raw_redis&) = delete;
  ~raw_redis();

  reply command(const std::vector<std::string>& words);
  // The two halves of command(), for a request that stays under way.
  void send(const std::vector<std::string>& words);
  [[nodiscard]] reply receive();

 private:
  int fd_ = -1;
  std::chrono::milliseconds answer_within_;
  redisReader* reader_ = nullptr;
};

}  // namespace holdfast::test
