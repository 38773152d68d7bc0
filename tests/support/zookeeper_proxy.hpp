// A network that loses what it is told to, between a client and one ZooKeeper server.
#pragma once

#include <cstdint>
#include <list>
#include <mutex>
#include <set>
#include <string>
#include <thread>

namespace holdfast::test {

// Forwards whole packets on a loopback port of its own. Thread-safe.
class zookeeper_proxy {
 public:
  explicit zookeeper_proxy(std::uint16_t server);
  zookeeper_proxy(const zookeeper_proxy&) = delete;
  zookeeper_proxy& operator=(const zookeeper_proxy&) = delete;
  ~zookeeper_proxy();

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

  // The next request that contains these bytes: the server does it, and instead of the reply the
  // connection ends.
  void lose_reply_to(std::string matching);
  // How many that has happened to.
  [[nodiscard]] std::size_t lost() const;
  void cut_all();
  // Nothing passes, in either direction; connections stay, and new ones are made.
  void stall(bool on);
  // Requests that came and contain these bytes.
  [[nodiscard]] std::size_t seen(const std::string& matching) const;

 private:
  struct link {
    int client = -1;
    int server = -1;
    std::string requests{};
    std::string replies{};
    std::set<std::string> awaited{};  // xids whose reply is to be lost
    bool greeted_by_client = false;
    bool greeted_by_server = false;
  };

  void run();
  void wake() const;
  void accept_one();
  void take(link& on, bool from_client);
  void pass(link& on, const std::string& packet, bool from_client);
  static void drop(link& on);

  const std::uint16_t server_;
  std::uint16_t port_ = 0;
  int listener_ = -1;
  int wake_ = -1;

  mutable std::mutex m_;  // all below
  std::list<link> links_;
  std::string losing_;
  std::size_t lost_ = 0;
  std::list<std::string> log_;
  bool stalled_ = false;
  bool stopping_ = false;

  std::thread thread_;
};

}  // namespace holdfast::test
