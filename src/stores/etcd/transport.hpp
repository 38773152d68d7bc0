// HTTP to the servers of a cluster: requests and their replies, and streams of lines.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"
#include "stores/component.hpp"

namespace holdfast::stores::etcd {

struct http_request {
  std::size_t server = 0;  // which of the servers
  std::string path;
  std::string body;
  std::string token{};  // "Authorization", if any
  core::time_point until = core::never;
};

struct http_reply {
  enum class outcome : std::uint8_t {
    answered,    // status and body are the server's
    unsent,      // nothing was sent
    unanswered,  // it may have been done
    untrusted,   // TLS: a certificate was refused
  };
  outcome how = outcome::unsent;
  long status = 0;
  std::string body{};
  // libcurl sent it twice: it does so when a connection that was open ends before a byte came.
  bool is_repeated = false;
  std::string why{};  // printable: what went wrong on the way
};

// Thread-safe. One thread does all the I/O, by libcurl, from the first request on. Connections stay
// open and are used again; each request has one to itself, so that none waits for another.
class transport {
 public:
  using on_reply = std::function<void(http_reply)>;
  using on_line = std::function<void(std::string_view)>;

  // More than these at a time are refused, as unsent.
  static constexpr std::size_t requests_max = 4096;
  static constexpr std::size_t streams_max = 256;
  // A longer answer is cut off, as unanswered: of 10,000 waiters, with room to spare.
  static constexpr std::size_t answer_bytes_max = 64U * 1024 * 1024;

  transport(std::vector<component_config::server> servers, bool has_tls, runtime::tls_settings tls);
  transport(const transport&) = delete;
  transport& operator=(const transport&) = delete;
  // As stop().
  ~transport();

  // `done` is called once, on the thread of the transport, or at once if the request is refused.
  void send(http_request what, on_reply done);

  // A request whose answer has no end. `line` is called for each line of it and `end` once, when it
  // ended, both on the transport's thread. 0: refused, and neither will be called. A stream that
  // was closed calls neither any more, but for a call that is under way.
  [[nodiscard]] std::uint64_t open_stream(http_request what, on_line line, on_reply end);
  void close_stream(std::uint64_t id) noexcept;

  // Ends what is under way with "unanswered", and refuses what comes.
  void close() noexcept;

  // close(), and nothing is called any more when it returns. Not from the transport's thread.
  void stop() noexcept;

  [[nodiscard]] std::size_t servers() const noexcept;
  // "host:port", for messages.
  [[nodiscard]] std::string name_of(std::size_t server) const;

 private:
  class engine;
  const std::unique_ptr<engine> engine_;
};

}  // namespace holdfast::stores::etcd
