#include "runtime/tls_stream.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/fail.hpp"
#include "runtime/fork.hpp"
#include "runtime/socket.hpp"

namespace holdfast::runtime {

namespace {

constexpr std::size_t record_bytes_max = 16 * 1024;

bool is_address(const std::string& host) {
  in6_addr any{};
  return ::inet_pton(AF_INET, host.c_str(), &any) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &any) == 1;
}

}  // namespace

// ---- between OpenSSL and the socket ------------------------------------------------------------

const bio_method_st* tls_stream::method() {
  static const BIO_METHOD* const made = [] {
    constexpr int write_calls_own = BIO_TYPE_SOURCE_SINK;
    BIO_METHOD* all = ::BIO_meth_new(::BIO_get_new_index() | write_calls_own, "holdfast");
    ::BIO_meth_set_read(all, on_read);
    ::BIO_meth_set_write(all, on_write);
    ::BIO_meth_set_ctrl(all, on_control);
    return all;
  }();
  return made;
}

int tls_stream::on_read(bio_st* bio, char* into, int room) {
  auto& self = *static_cast<tls_stream*>(::BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const auto got = runtime::receive_some(self.fd_.get(), into, static_cast<std::size_t>(room));
  if (got.bytes > 0) return static_cast<int>(got.bytes);
  if (got.would_block) {
    BIO_set_retry_read(bio);
  } else {
    self.socket_error_ = got.error;
  }
  return -1;
}

// Takes everything.
int tls_stream::on_write(bio_st* bio, const char* bytes, int count) {
  auto& self = *static_cast<tls_stream*>(::BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  std::string_view rest{bytes, static_cast<std::size_t>(count)};
  if (self.unsent_.empty()) {
    const auto sent = runtime::send_some(self.fd_.get(), rest);
    if (sent.error != 0) {
      self.socket_error_ = sent.error;
      return -1;
    }
    rest.remove_prefix(sent.bytes);
  }
  if (self.unsent_.size() + rest.size() > unsent_max) {
    self.socket_error_ = ENOBUFS;
    return -1;
  }
  self.unsent_ += rest;
  return count;
}

long tls_stream::on_control(bio_st*, int what, long, void*) {
  return what == BIO_CTRL_FLUSH ? 1 : 0;  // send_unsent() does it
}

tls_stream::tls_stream(const std::shared_ptr<ssl_ctx_st>& context, unique_fd fd, tls_peer peer)
    : fd_{std::move(fd)},
      made_in_{fork_generation()},
      peer_{std::move(peer)},
      session_{::SSL_new(context.get()), &::SSL_free} {
  if (!session_) {
    trouble_ = {errc::overloaded, "OpenSSL has no memory for a connection", {}};
    return;
  }
  BIO* const bio = ::BIO_new(method());
  ::BIO_set_data(bio, this);
  ::BIO_set_init(bio, 1);
  ::SSL_set_bio(session_.get(), bio, bio);
  ::SSL_set_connect_state(session_.get());
  note_refusals(*session_, peer_);
  auto* const rule = ::SSL_get0_param(session_.get());
  // A name may be written with the dot of the root, which no certificate has.
  auto name = peer_.server.substr(0, peer_.server.find_last_not_of('.') + 1);
  if (is_address(name)) {
    ::X509_VERIFY_PARAM_set1_ip_asc(rule, name.c_str());
    return;
  }
  ::X509_VERIFY_PARAM_set_hostflags(rule, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  const bool known = ::X509_VERIFY_PARAM_set1_host(rule, name.c_str(), name.size()) == 1 &&
                     ::SSL_ctrl(session_.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME,
                                TLSEXT_NAMETYPE_host_name, name.data()) == 1;
  // An empty name would be verified by nothing.
  if (!known || name.empty()) {
    trouble_ = {
        errc::invalid_argument, "no certificate can be for the host " + escape(peer_.server), {}};
  }
}

tls_stream::~tls_stream() { say_goodbye(); }

// ---- the session, under m_ ---------------------------------------------------------------------

void tls_stream::send_unsent() noexcept {
  if (unsent_.empty()) return;
  const auto sent = runtime::send_some(fd_.get(), unsent_);
  unsent_.erase(0, sent.bytes);
  if (sent.error != 0) socket_error_ = sent.error;
}

io_outcome tls_stream::end(int error, std::optional<failure> why) noexcept {
  if (error_ == 0) {
    error_ = error;
    if (!trouble_) trouble_ = std::move(why);
  }
  // The next call says so, whatever the socket has to say.
  buffered_ = true;
  return {0, false, error_};
}

// Of a call to OpenSSL that gave no bytes.
io_outcome tls_stream::outcome_of(int returned) noexcept {
  switch (::SSL_get_error(session_.get(), returned)) {
    case SSL_ERROR_WANT_READ:
      buffered_ = false;
      return {0, true, 0};
    case SSL_ERROR_ZERO_RETURN:
      return end(-1, std::nullopt);
    default:
      break;
  }
  // OpenSSL complains of an end without a farewell. Replies say themselves how long they are, so
  // nothing that was cut off is taken for whole.
  if (socket_error_ != 0) return end(socket_error_, std::nullopt);
  return end(EPROTO, tls_failure(peer_));
}

// A server that refuses our certificate says why and hangs up. With TLS 1.3 this client speaks
// meanwhile, and would only learn that it cannot send any more.
void tls_stream::read_last_words() noexcept {
  const int error = std::exchange(socket_error_, 0);
  char byte = 0;
  ::ERR_clear_error();
  const int got = ::SSL_peek(session_.get(), &byte, 1);
  if (got <= 0 && ::SSL_get_error(session_.get(), got) == SSL_ERROR_SSL && socket_error_ == 0) {
    static_cast<void>(end(EPROTO, tls_failure(peer_)));
  }
  static_cast<void>(end(error, std::nullopt));
}

// By a message that is sent if there is room for it. A child of fork() has nothing to say.
void tls_stream::say_goodbye() noexcept {
  if (made_in_ != fork_generation()) return;
  const lock held{m_};
  if (!std::exchange(established_, false) || error_ != 0) return;
  ::ERR_clear_error();
  ::SSL_shutdown(session_.get());
  ::ERR_clear_error();
}

// ---- what a stream can do ----------------------------------------------------------------------

result<short> tls_stream::shake_hands() {
  const lock held{m_};
  if (trouble_) return fail(*trouble_);
  ::ERR_clear_error();
  const int done = ::SSL_do_handshake(session_.get());
  send_unsent();
  const auto got = done == 1 ? io_outcome{} : outcome_of(done);
  if (got.error == 0) {
    if (!unsent_.empty()) return static_cast<short>(POLLIN | POLLOUT);
    if (done != 1) return static_cast<short>(POLLIN);
    established_ = true;
    buffered_ = ::SSL_has_pending(session_.get()) == 1;
    return static_cast<short>(0);
  }
  if (!trouble_) {
    trouble_ = {errc::store_unreachable,
                "the connection ended during the TLS handshake (" + describe_io_error(got.error) +
                    "): does the server speak TLS at this port?",
                {}};
  }
  return fail(*trouble_);
}

io_outcome tls_stream::send_some(std::string_view bytes) noexcept {
  const lock held{m_};
  if (error_ == 0) send_unsent();
  if (error_ == 0 && socket_error_ == 0) {
    if (!unsent_.empty()) return {0, true, 0};
    if (accepted_ > 0) return {std::exchange(accepted_, 0), false, 0};
    ::ERR_clear_error();
    const int count = static_cast<int>(std::min(bytes.size(), record_bytes_max));
    const int taken = ::SSL_write(session_.get(), bytes.data(), count);
    if (taken > 0 && unsent_.empty()) return {static_cast<std::size_t>(taken), false, 0};
    if (taken > 0) {
      accepted_ = static_cast<std::size_t>(taken);
      return {0, true, 0};
    }
    if (socket_error_ == 0) return outcome_of(taken);
  }
  if (error_ == 0) read_last_words();
  return {0, false, error_};
}

io_outcome tls_stream::receive_some(char* into, std::size_t room) noexcept {
  const lock held{m_};
  if (error_ != 0) return {0, false, error_};
  send_unsent();
  std::size_t total = 0;
  do {
    ::ERR_clear_error();
    const int count = static_cast<int>(std::min(room - total, record_bytes_max));
    const int got = ::SSL_read(session_.get(), into + total, count);
    if (got <= 0) {
      const auto outcome = outcome_of(got);
      return total > 0 ? io_outcome{total, false, 0} : outcome;
    }
    total += static_cast<std::size_t>(got);
    buffered_ = ::SSL_has_pending(session_.get()) == 1;
  } while (buffered_ && total < room);
  return {total, false, 0};
}

io_outcome tls_stream::peek() noexcept {
  const lock held{m_};
  if (error_ != 0) return {0, false, error_};
  char byte = 0;
  ::ERR_clear_error();
  const int got = ::SSL_peek(session_.get(), &byte, 1);
  if (got <= 0) return outcome_of(got);
  buffered_ = true;
  return {1, false, 0};
}

std::optional<failure> tls_stream::trouble() const {
  const lock held{m_};
  return trouble_;
}

void tls_stream::shut_down() noexcept {
  if (made_in_ != fork_generation()) return;
  say_goodbye();
  ::shutdown(fd_.get(), SHUT_RDWR);
}

// ---- connecting --------------------------------------------------------------------------------

result<std::unique_ptr<stream>> connect_tls(tls_context& with, unique_fd fd,
                                            const std::string& host, core::time_point until) {
  auto context = with.current();
  if (!context) return fail(std::move(context.error()));
  auto made = std::make_unique<tls_stream>(*context, std::move(fd),
                                           tls_peer{with.name_of(host), with.has_certificate()});
  for (;;) {
    const auto events = made->shake_hands();
    if (!events) return fail(events.error());
    if (*events == 0) return made;
    if (wait_ready(made->fd(), *events, until) != readiness::ready) {
      return fail(errc::store_unreachable,
                  "no answer to the TLS handshake in time: does the server speak TLS at this port? "
                  "For a server without TLS write redis:// (redlock://)");
    }
  }
}

}  // namespace holdfast::runtime
