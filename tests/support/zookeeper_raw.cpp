#include "support/zookeeper_raw.hpp"

// The calls that wait for their answers.
#define THREADED
#include <zookeeper/zookeeper.h>

#include <array>
#include <stdexcept>

#include "support/process.hpp"

namespace holdfast::test {

namespace {

void check(int rc, const std::string& what) {
  if (rc != ZOK) throw std::runtime_error{what + ": " + ::zerror(rc)};
}

}  // namespace

raw_zookeeper::raw_zookeeper(const std::string& hosts, int timeout_ms)
    : zh_{::zookeeper_init2(
          hosts.c_str(), [](zhandle_t*, int, int, const char*, void*) {}, timeout_ms, nullptr,
          nullptr, ZOO_NO_LOG_CLIENTENV, [](const char*) {})} {
  if (zh_ == nullptr) throw std::runtime_error{"zookeeper_init " + hosts};
  if (!eventually([&] { return ::zoo_state(zh_) == ZOO_CONNECTED_STATE; })) {
    ::zookeeper_close(zh_);
    throw std::runtime_error{"no ZooKeeper at " + hosts};
  }
}

raw_zookeeper::~raw_zookeeper() { ::zookeeper_close(zh_); }

std::string raw_zookeeper::create(const std::string& path, const std::string& data, int mode) {
  for (auto slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const int rc = ::zoo_create(zh_, path.substr(0, slash).c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE,
                                ZOO_CONTAINER, nullptr, 0);
    if (rc != ZNODEEXISTS) check(rc, "create " + path);
  }
  std::array<char, 1024> made{};
  check(::zoo_create(zh_, path.c_str(), data.data(), static_cast<int>(data.size()),
                     &ZOO_OPEN_ACL_UNSAFE, mode, made.data(), made.size()),
        "create " + path);
  return made.data();
}

std::vector<std::string> raw_zookeeper::children(const std::string& path) {
  String_vector all{};
  const int rc = ::zoo_get_children(zh_, path.c_str(), 0, &all);
  if (rc == ZNONODE) return {};
  check(rc, "children of " + path);
  std::vector<std::string> names{all.data, all.data + all.count};
  ::deallocate_String_vector(&all);
  return names;
}

bool raw_zookeeper::exists(const std::string& path) { return get(path).has_value(); }

std::optional<raw_zookeeper::node> raw_zookeeper::get(const std::string& path) {
  std::array<char, 4096> data{};
  int size = data.size();
  Stat stat{};
  const int rc = ::zoo_get(zh_, path.c_str(), 0, data.data(), &size, &stat);
  if (rc == ZNONODE) return std::nullopt;
  check(rc, "get " + path);
  return node{std::string(data.data(), static_cast<std::size_t>(size < 0 ? 0 : size)), stat.czxid,
              stat.ephemeralOwner};
}

bool raw_zookeeper::remove(const std::string& path) {
  const int rc = ::zoo_delete(zh_, path.c_str(), -1);
  if (rc == ZNONODE) return false;
  check(rc, "delete " + path);
  return true;
}

void raw_zookeeper::remove_all(const std::string& path) {
  for (const auto& child : children(path))
    remove_all(path + "/" + child);
  static_cast<void>(remove(path));
}

}  // namespace holdfast::test
