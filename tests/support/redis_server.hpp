// A real redis-server of a test's own.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/certificates.hpp"
#include "support/raw_redis.hpp"
#include "support/temp_dir.hpp"

namespace holdfast::test {

// What a server with TLS shows, and whom it believes.
struct server_tls {
  certificate_files shows{};
  std::string authority{};         // of clients' certificates, and what tcp_url() believes
  bool wants_certificate = false;  // of clients
};

struct redis_server_options {
  bool tcp = false;                        // also listen on a free port of the loopback address
  std::vector<std::string> config{};       // lines of redis.conf; the defaults persist nothing
  bool sentinel = false;                   // a Sentinel instead, told what to watch by `config`
  std::uint16_t port = 0;                  // on TCP, at this one: it was free a moment ago
  std::string password{};                  // requirepass
  std::string preload{};                   // a library to LD_PRELOAD
  std::vector<std::string> environment{};  // NAME=value, besides the test's own
  // Return from construction and restart() as soon as it listens, still loading its data.
  bool while_loading = false;
  // On TCP nothing but TLS is spoken; tests look at the server through its unix socket.
  std::optional<server_tls> tls{};
};

// Starts redis-server on a unix socket in a folder of its own and waits until it answers; throws
// std::runtime_error with its log if it does not. Not thread-safe, except for command().
//
// The server is killed by the destructor, and when the *thread* that made it ends, so make it in
// the thread that outlives its use.
class redis_server {
 public:
  explicit redis_server(redis_server_options options = {});
  redis_server(const redis_server&) = delete;
  redis_server& operator=(const redis_server&) = delete;
  ~redis_server();

  [[nodiscard]] std::string url() const;      // unix:/path
  [[nodiscard]] std::string tcp_url() const;  // redis://127.0.0.1:port, rediss://…?ca=…
  [[nodiscard]] std::string socket_path() const { return folder_.file("redis.sock"); }
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] endpoint where() const { return {socket_path(), 0}; }
  [[nodiscard]] endpoint where_tcp() const { return {{}, port_}; }
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  // Where it keeps redis.conf, redis.log and, if told to persist, its data.
  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_.path(); }

  void stop_process();  // SIGTERM and wait: it saves what it is configured to save
  void kill9();
  void pause();   // SIGSTOP; returns when it has stopped
  void resume();  // SIGCONT
  // Starts it again if it does not run: same folder, same port.
  void restart();

  // One command on a connection of its own, as text (see reply::shown).
  [[nodiscard]] std::string command(const std::vector<std::string>& words) const;
  // The value of one line of INFO, e.g. info("stats", "total_connections_received").
  [[nodiscard]] std::string info(const std::string& section, const std::string& field) const;
  // How often a command ran, from INFO commandstats.
  [[nodiscard]] std::uint64_t calls_of(const std::string& command_name) const;

 private:
  void write_config() const;
  void start();
  [[nodiscard]] bool await_answer();
  [[nodiscard]] std::string log() const;

  redis_server_options options_;
  temp_dir folder_;
  std::uint16_t port_ = 0;
  pid_t pid_ = -1;
};

// A loopback port that was free a moment ago.
[[nodiscard]] std::uint16_t free_port();

}  // namespace holdfast::test
