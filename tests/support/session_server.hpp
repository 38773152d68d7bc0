// The server side of the test-only session store: as unlike Redis as a lock service can be.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "support/temp_dir.hpp"

namespace holdfast::test {

// Locks belong to sessions. A session lives while its client says so at least once per TTL, and the
// server decides that TTL. A lock is a queue of nodes in the order they were created; the first
// holds it, the others are told when their turn has come. Tokens are the number of the change that
// created the node, as ZooKeeper's czxid.
//
// Lines of words, one answer for each request, which starts with the request's number:
//   hello TTL                          → SESSION TTL
//   attach SESSION | alive SESSION     → TTL | gone
//   create SESSION NAME ATTEMPT WHO    → granted TOKEN TTL | busy TOKEN WHO REMAINING | gone
//   touch SESSION NAME ATTEMPT         → granted TOKEN TTL | free | taken | gone
//   delete NAME ATTEMPT                → released | free | taken
//   break NAME TOKEN                   → ok | no
//   look NAME                          → free | held TOKEN WHO REMAINING
//   names                              → NAME…
// and, unasked: `! lost ATTEMPT session|deleted` and `! turn ATTEMPT`.
// Names and WHO are hexadecimal; times are milliseconds.
class session_server {
 public:
  session_server();
  session_server(const session_server&) = delete;
  session_server& operator=(const session_server&) = delete;
  ~session_server();

  [[nodiscard]] std::string socket_path() const { return folder_.file("session.sock"); }

  // What the server makes of the TTL it is asked for: whole ticks, rounded down, at least one. So
  // the granted TTL differs from the asked one unless a test asks for whole ticks.
  static constexpr std::chrono::milliseconds tick{250};
  [[nodiscard]] static std::chrono::milliseconds granted(std::chrono::milliseconds asked);

  // Ends every session; tokens go on.
  void forget();
  // While unreachable it neither reads nor writes; sessions go on expiring.
  void reachable(bool on);
  void cut_connections();

  [[nodiscard]] std::uint64_t keep_alives() const;
  [[nodiscard]] std::size_t sessions() const;
  // Nodes in a lock's queue, its holder's included.
  [[nodiscard]] std::size_t nodes(const std::string& name) const;

 private:
  using clock = std::chrono::steady_clock;
  using words = std::vector<std::string>;
  struct connection {
    int fd;
    std::string in{};
    std::string out{};
  };
  struct session {
    std::chrono::milliseconds ttl;
    clock::time_point ends;
    connection* heard_on;
  };
  struct node {
    std::uint64_t token;
    std::string attempt;
    std::string who;
    std::uint64_t session;
  };
  using queue = std::list<node>;

  void run();
  void wake() const;
  void read(connection& from);
  void flush(connection& to);
  void answer(connection& to, const std::string& line);
  std::string carry_out(connection& from, const words& request);
  std::string create(std::uint64_t id, const words& request);
  std::string touch(std::uint64_t id, const words& request);
  std::string remove(const std::string& name, const std::string& attempt);
  std::string break_node(const std::string& name, std::uint64_t token);
  session* keep_alive(std::uint64_t id);
  [[nodiscard]] std::string describe(const node& of) const;
  void erase(const std::string& name, queue::iterator which);
  void push(std::uint64_t session_id, const std::string& line);
  void end_session(std::uint64_t id);
  clock::time_point expire();
  void change(const std::function<void()>& how);

  temp_dir folder_;
  int listener_ = -1;
  int wake_ = -1;

  mutable std::mutex mutex_;  // all below
  std::list<connection> connections_;
  std::map<std::uint64_t, session> sessions_;
  std::map<std::string, queue> locks_;  // by name, as sent
  std::uint64_t last_change_ = 0;
  std::uint64_t keep_alives_ = 0;
  bool reachable_ = true;
  bool stopping_ = false;

  std::thread thread_;
};

// Bytes as hexadecimal digits and back; "-" stands for none.
[[nodiscard]] std::string to_hex(const std::string& bytes);
[[nodiscard]] std::string from_hex(const std::string& digits);
[[nodiscard]] std::vector<std::string> split_words(const std::string& line);

}  // namespace holdfast::test
