// TLS on a socket of ours.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <holdfast/result.hpp>

#include "core/types.hpp"
#include "runtime/stream.hpp"
#include "runtime/tls_context.hpp"
#include "runtime/tls_failure.hpp"

struct bio_method_st;  // OpenSSL's BIO_METHOD
struct bio_st;         // BIO

namespace holdfast::runtime {

// Thread-safe as every stream is: OpenSSL's session is behind a mutex, which is never held while
// something is waited for. A child of fork() says nothing in the parent's session.
//
// OpenSSL never learns that the socket is full: what it wants to send and the socket does not take
// is kept here, so that reading never has to wait until something can be sent.
class tls_stream final : public stream {
 public:
  // What is kept at the most: one record, and what the protocol says by itself.
  static constexpr std::size_t unsent_max = 64 * 1024;

  tls_stream(const std::shared_ptr<ssl_ctx_st>& context, unique_fd fd, tls_peer peer);
  ~tls_stream() override;

  // One step of the handshake, which never blocks. Gives what to poll fd() for before the next
  // (POLLIN, POLLOUT), or 0: it is done. On a failure, trouble() is the same.
  [[nodiscard]] result<short> shake_hands();

  // As stream; what would block is sent again: the next call begins with the same bytes.
  io_outcome send_some(std::string_view bytes) noexcept override;
  io_outcome receive_some(char* into, std::size_t room) noexcept override;
  io_outcome peek() noexcept override;
  [[nodiscard]] bool has_buffered() const noexcept override { return buffered_.load(); }
  [[nodiscard]] std::optional<failure> trouble() const override;
  [[nodiscard]] int fd() const noexcept override { return fd_.get(); }
  // A number of bytes of ours says nothing about how many come in records.
  bool wake_at(int) noexcept override { return false; }
  bool tells(std::function<void()>) override { return false; }
  void shut_down() noexcept override;

 private:
  using lock = std::lock_guard<std::mutex>;

  static const bio_method_st* method();
  static int on_read(bio_st* bio, char* into, int room);
  static int on_write(bio_st* bio, const char* bytes, int count);
  static long on_control(bio_st* bio, int what, long number, void* argument);

  // Under m_.
  void send_unsent() noexcept;
  [[nodiscard]] io_outcome outcome_of(int returned) noexcept;
  [[nodiscard]] io_outcome end(int error, std::optional<failure> why) noexcept;
  void read_last_words() noexcept;
  void say_goodbye() noexcept;

  const unique_fd fd_;
  const std::uint64_t made_in_;  // the fork generation
  std::atomic<bool> buffered_{false};

  mutable std::mutex m_;
  // Protected by m_.
  tls_peer peer_;
  const std::unique_ptr<ssl_st, void (*)(ssl_st*)> session_;
  bool established_ = false;
  std::string unsent_;        // encrypted
  std::size_t accepted_ = 0;  // bytes of ours that are in unsent_, and were not yet called sent
  int socket_error_ = 0;      // as in io_outcome
  int error_ = 0;             // as in io_outcome: the session is over
  std::optional<failure> trouble_;
};

// TLS on a socket that is connected to `host`: blocks until the server has proved to be that one,
// by `until` at the latest.
[[nodiscard]] result<std::unique_ptr<stream>> connect_tls(tls_context& with, unique_fd fd,
                                                          const std::string& host,
                                                          core::time_point until);

}  // namespace holdfast::runtime
