#include "support/raw_redis.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include <hiredis/hiredis.h>

namespace holdfast::test {

namespace {

reply convert(const redisReply& from) {
  reply to;
  switch (from.type) {
    case REDIS_REPLY_STATUS:
    case REDIS_REPLY_STRING:
      to.type = reply::kind::text;
      to.text.assign(from.str, from.len);
      break;
    case REDIS_REPLY_ERROR:
      to.type = reply::kind::error;
      to.text.assign(from.str, from.len);
      break;
    case REDIS_REPLY_INTEGER:
      to.type = reply::kind::integer;
      to.integer = from.integer;
      break;
    case REDIS_REPLY_ARRAY:
      to.type = reply::kind::array;
      for (std::size_t i = 0; i < from.elements; ++i)
        to.items.push_back(convert(*from.element[i]));
      break;
    default:
      break;
  }
  return to;
}

[[noreturn]] void fail_with_errno(const std::string& what, int fd) {
  const int error = errno;
  if (fd >= 0) ::close(fd);
  throw std::system_error{error, std::generic_category(), what};
}

}  // namespace

std::string reply::shown() const {
  switch (type) {
    case kind::text:
      return text;
    case kind::integer:
      return std::to_string(integer);
    case kind::nil:
      return "(nil)";
    case kind::error:
      return "(error) " + text;
    case kind::array:
      break;
  }
  std::string lines;
  for (const reply& item : items) {
    if (!lines.empty()) lines += '\n';
    lines += item.shown();
  }
  return lines;
}

int connect_to(const endpoint& where) {
  if (where.socket_path.empty()) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(where.port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      fail_with_errno("connect to port " + std::to_string(where.port), fd);
    }
    return fd;
  }
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  where.socket_path.copy(&address.sun_path[0], sizeof address.sun_path - 1);
  if (fd < 0 || ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    fail_with_errno("connect to " + where.socket_path, fd);
  }
  return fd;
}

raw_redis::raw_redis(const endpoint& where, std::chrono::milliseconds answer_within)
    : fd_{connect_to(where)}, answer_within_{answer_within}, reader_{redisReaderCreate()} {}

raw_redis::~raw_redis() {
  redisReaderFree(reader_);
  ::close(fd_);
}

reply raw_redis::command(const std::vector<std::string>& words) {
  send(words);
  return receive();
}

void raw_redis::send(const std::vector<std::string>& words) {
  std::string request = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) {
    request += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  std::string_view rest = request;
  while (!rest.empty()) {
    const ssize_t sent = ::send(fd_, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) throw std::system_error{errno, std::generic_category(), "send"};
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
}

reply raw_redis::receive() {
  while (true) {
    void* parsed = nullptr;
    if (redisReaderGetReply(reader_, &parsed) != REDIS_OK) {
      throw std::runtime_error{std::string{"not the Redis protocol: "} + &reader_->errstr[0]};
    }
    if (parsed != nullptr) {
      reply converted = convert(*static_cast<redisReply*>(parsed));
      freeReplyObject(parsed);
      return converted;
    }
    pollfd readable{fd_, POLLIN, 0};
    const int ready = ::poll(&readable, 1, static_cast<int>(answer_within_.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) throw std::runtime_error{"no answer from Redis"};
    std::array<char, 16384> buffer{};
    const ssize_t got = ::recv(fd_, buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw std::runtime_error{"Redis closed the connection"};
    redisReaderFeed(reader_, buffer.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace holdfast::test
