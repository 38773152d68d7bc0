// TLS over a socket pair whose other end is OpenSSL's own server.
#include "runtime/tls_stream.hpp"

#include <fcntl.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/clock.hpp"
#include "support/certificates.hpp"
#include "support/process.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using runtime::connect_tls;
using runtime::tls_context;
using runtime::tls_stream;

// Blocks. Not thread-safe.
class tls_server_end {
 public:
  tls_server_end(int fd, const certificate_files& shows, int version)
      : context_{::SSL_CTX_new(::TLS_server_method()), &::SSL_CTX_free},
        fd_{fd},
        session_{nullptr, &::SSL_free} {
    ::SSL_CTX_set_max_proto_version(context_.get(), version);
    ::SSL_CTX_use_certificate_chain_file(context_.get(), shows.cert.c_str());
    ::SSL_CTX_use_PrivateKey_file(context_.get(), shows.key.c_str(), SSL_FILETYPE_PEM);
    session_.reset(::SSL_new(context_.get()));
    ::SSL_set_fd(session_.get(), fd);
  }
  bool accept() { return ::SSL_accept(session_.get()) == 1; }
  bool say(std::string_view bytes) {
    return ::SSL_write(session_.get(), bytes.data(), static_cast<int>(bytes.size())) > 0;
  }
  // Empty: it is over.
  std::string hear() {
    std::array<char, 4096> bytes{};
    const int got = ::SSL_read(session_.get(), bytes.data(), static_cast<int>(bytes.size()));
    return {bytes.data(), static_cast<std::size_t>(std::max(got, 0))};
  }
  [[nodiscard]] bool was_told_goodbye() const {
    return (::SSL_get_shutdown(session_.get()) & SSL_RECEIVED_SHUTDOWN) != 0;
  }
  // New keys, and a request for new ones of the client's, with the next bytes.
  void change_keys() { ::SSL_key_update(session_.get(), SSL_KEY_UPDATE_REQUESTED); }
  void say_goodbye() { ::SSL_shutdown(session_.get()); }
  void hang_up() { fd_.reset(); }

 private:
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_;
  runtime::unique_fd fd_;
  std::unique_ptr<SSL, void (*)(SSL*)> session_;
};

class TlsStream : public testing::TestWithParam<int> {
 protected:
  TlsStream() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) std::abort();
    here_.reset(ends[0]);
    server_.emplace(ends[1], ours_.issue("server"), GetParam());
  }
  void connect() {
    std::jthread accepting{[&] { EXPECT_TRUE(server_->accept()); }};
    auto made = connect_tls(believing_, std::move(here_), "localhost", runtime::now() + patience);
    ASSERT_TRUE(made) << made.error().message;
    stream_ = std::move(*made);
  }
  [[nodiscard]] bool await_readable() const {
    return stream_->has_buffered() ||
           runtime::wait_ready(stream_->fd(), POLLIN, runtime::now() + patience) ==
               runtime::readiness::ready;
  }
  // So many bytes, some at a time, as a reader does that sleeps whenever it may.
  [[nodiscard]] std::string receive(std::size_t count, std::size_t at_once) const {
    std::string all;
    std::string some(at_once, '\0');
    while (all.size() < count && await_readable()) {
      const auto got = stream_->receive_some(some.data(), some.size());
      if (got.error != 0) break;
      all.append(some, 0, got.bytes);
    }
    return all;
  }

  const authority ours_{"our authority"};
  tls_context believing_{{.ca = ours_.file()}};
  runtime::unique_fd here_;
  std::optional<tls_server_end> server_;
  std::unique_ptr<runtime::stream> stream_;
};

std::string pattern(std::size_t count) {
  std::string all(count, '\0');
  for (std::size_t i = 0; i < count; ++i)
    all[i] = static_cast<char>('a' + (i * 7 + i / 251) % 26);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Versions, TlsStream, testing::Values(TLS1_2_VERSION, TLS1_3_VERSION),
                         [](const auto& of) {
                           return of.param == TLS1_2_VERSION ? "Tls12" : "Tls13";
                         });

}  // namespace

// What was decrypted, and what was only taken from the socket, must not be slept on.
TEST_P(TlsStream, ReaderOfAFewBytesNeverSleepsOnTheRest) {
  connect();
  const auto all = pattern(100'000);
  std::jthread saying{[&] {
    for (std::size_t i = 0; i < all.size(); i += 1000)
      EXPECT_TRUE(server_->say(std::string_view{all}.substr(i, 1000)));
  }};
  EXPECT_EQ(receive(all.size(), 7), all);
}

TEST_P(TlsStream, NothingIsBufferedOnceItWouldBlock) {
  connect();
  ASSERT_TRUE(server_->say("+OK\r\n"));
  EXPECT_EQ(receive(5, 64), "+OK\r\n");
  std::array<char, 8> more{};
  EXPECT_TRUE(stream_->receive_some(more.data(), more.size()).would_block);
  EXPECT_FALSE(stream_->has_buffered());
  EXPECT_TRUE(stream_->peek().would_block);
}

TEST_P(TlsStream, PeekLeavesTheByteAndSaysThatItIsThere) {
  connect();
  ASSERT_TRUE(server_->say("+OK\r\n"));
  ASSERT_TRUE(await_readable());
  while (stream_->peek().would_block)
    ASSERT_TRUE(await_readable());
  EXPECT_EQ(stream_->peek().bytes, 1U);
  EXPECT_TRUE(stream_->has_buffered());
  EXPECT_EQ(receive(5, 64), "+OK\r\n");
}

// Both ways at once, through sockets that take little, and with new keys in between.
TEST_P(TlsStream, FullSocketsLoseAndRepeatNothing) {
  const int small = 4096;
  ::setsockopt(here_.get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
  connect();
  const auto all = pattern(2'000'000);
  std::atomic<int> blocked{0};
  std::string heard;
  std::jthread serving{[&] {
    // Nothing is read before the client's socket is full.
    EXPECT_TRUE(eventually([&] { return blocked > 0; }));
    if (GetParam() == TLS1_3_VERSION) server_->change_keys();
    EXPECT_TRUE(server_->say(pattern(500)));
    while (heard.size() < all.size()) {
      const auto some = server_->hear();
      if (some.empty()) break;
      heard += some;
    }
  }};
  std::string got;
  std::jthread receiving{[&] { got = receive(500, 100); }};
  std::string_view rest{all};
  while (!rest.empty()) {
    const auto sent = stream_->send_some(rest);
    ASSERT_EQ(sent.error, 0);
    rest.remove_prefix(sent.bytes);
    if (!sent.would_block) continue;
    ++blocked;
    ASSERT_EQ(runtime::wait_ready(stream_->fd(), POLLOUT, runtime::now() + patience),
              runtime::readiness::ready);
  }
  serving.join();
  receiving.join();
  EXPECT_TRUE(heard == all);
  EXPECT_EQ(got, pattern(500));
  EXPECT_GT(blocked, 0);
}

TEST_P(TlsStream, HandshakeIsInStepsThatDoNotBlock) {
  ::fcntl(here_.get(), F_SETFL, O_NONBLOCK);
  tls_stream stream{*believing_.current(), std::move(here_), {"localhost"}};
  auto wants = stream.shake_hands();
  ASSERT_TRUE(wants);
  EXPECT_EQ(*wants, POLLIN);
  wants = stream.shake_hands();  // nothing was said meanwhile
  ASSERT_TRUE(wants);
  EXPECT_EQ(*wants, POLLIN);
  std::jthread accepting{[&] { EXPECT_TRUE(server_->accept()); }};
  while (wants && *wants != 0) {
    ASSERT_EQ(runtime::wait_ready(stream.fd(), *wants, runtime::now() + patience),
              runtime::readiness::ready);
    wants = stream.shake_hands();
  }
  EXPECT_TRUE(wants);
}

TEST_P(TlsStream, EndingSaysGoodbye) {
  connect();
  stream_->shut_down();
  EXPECT_EQ(server_->hear(), "");
  EXPECT_TRUE(server_->was_told_goodbye());
  stream_.reset();
}

TEST_P(TlsStream, EndingDoesNotWaitForASocketThatIsFull) {
  connect();
  const auto all = pattern(1'000'000);
  std::string_view rest{all};
  for (auto sent = stream_->send_some(rest); !sent.would_block; sent = stream_->send_some(rest))
    rest.remove_prefix(sent.bytes);
  stream_->shut_down();
  stream_.reset();
}

TEST_P(TlsStream, ServersGoodbyeIsTheEnd) {
  connect();
  ASSERT_TRUE(server_->say("+OK\r\n"));
  server_->say_goodbye();
  EXPECT_EQ(receive(5, 64), "+OK\r\n");
  ASSERT_TRUE(await_readable());
  std::array<char, 8> more{};
  EXPECT_EQ(stream_->receive_some(more.data(), more.size()).error, -1);
  EXPECT_EQ(stream_->peek().error, -1);
  EXPECT_EQ(stream_->send_some("x").error, -1);
}

// No signal either, which would end this test.
TEST_P(TlsStream, ServerThatHangsUpIsNoticedByReadingAndBySending) {
  connect();
  server_->hang_up();
  ASSERT_TRUE(await_readable());
  EXPECT_EQ(stream_->peek().error, -1);
  EXPECT_NE(stream_->send_some("x").error, 0);
  EXPECT_EQ(runtime::describe_end(*stream_, -1), "the server closed the connection");
}

TEST_P(TlsStream, SendingToAServerThatHungUpFails) {
  connect();
  server_->hang_up();
  EXPECT_EQ(stream_->send_some("x").error, EPIPE);
}

}  // namespace holdfast::test
