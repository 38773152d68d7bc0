// A bare ZooKeeper session for tests: to look at nodes, and to be the client Holdfast is not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

struct _zhandle;

namespace holdfast::test {

// One session. Not thread-safe. Throws std::runtime_error when a call fails.
class raw_zookeeper {
 public:
  explicit raw_zookeeper(const std::string& hosts, int timeout_ms = 30'000);
  raw_zookeeper(const raw_zookeeper&) = delete;
  raw_zookeeper& operator=(const raw_zookeeper&) = delete;
  ~raw_zookeeper();

  // With all that is above it. Returns the path of the new node.
  std::string create(const std::string& path, const std::string& data, int mode);
  // Those that exist: none for a path that does not.
  [[nodiscard]] std::vector<std::string> children(const std::string& path);
  [[nodiscard]] bool exists(const std::string& path);
  struct node {
    std::string data;
    std::int64_t czxid = 0;
    std::int64_t session = 0;
  };
  [[nodiscard]] std::optional<node> get(const std::string& path);
  bool remove(const std::string& path);
  // It and all below it.
  void remove_all(const std::string& path);
  [[nodiscard]] ::_zhandle* get() noexcept { return zh_; }

 private:
  ::_zhandle* zh_ = nullptr;
};

}  // namespace holdfast::test
