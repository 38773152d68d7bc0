// What the tests of etcd:// share: a cluster, all of it running, and a prefix of their own.
#pragma once

#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <holdfast/holdfast.hpp>

#include "support/etcd_cluster.hpp"
#include "support/raw_redis.hpp"
#include "support/watch.hpp"

namespace holdfast::test {

class Etcd : public testing::Test {
 protected:
  Etcd() { cluster.resume_all(); }

  [[nodiscard]] std::string url() const { return cluster.url() + "?prefix=" + prefix; }
  // Of one server only, or of a proxy before it.
  [[nodiscard]] std::string url_of(std::uint16_t port) const {
    return "etcd://127.0.0.1:" + std::to_string(port) + "?prefix=" + prefix;
  }
  [[nodiscard]] endpoint one_server() const { return {{}, cluster.port(0)}; }
  [[nodiscard]] client make_client(lock_options lock = {.ttl = std::chrono::seconds{60}}) const {
    return client{url(), client_options{.lock = std::move(lock)}};
  }
  [[nodiscard]] std::size_t keys_of(const std::string& name) const {
    return cluster.keys(prefix + name + "/");
  }
  // The lease that a lock's n-th key is under.
  [[nodiscard]] std::int64_t lease_of(const std::string& name, std::size_t n = 0) const {
    const auto said =
        nlohmann::json::parse(cluster.ctl({"get", "--prefix", prefix + name + "/",
                                           "--sort-by=CREATE", "--order=ASCEND", "-w", "json"}));
    return said.at("kvs").at(n).at("lease").get<std::int64_t>();
  }
  // Ends it, as if its time were over.
  void end_lease(const std::string& name, std::size_t n) const {
    const nlohmann::json lease{{"ID", std::to_string(lease_of(name, n))}};
    ASSERT_NE(cluster.post(cluster.leader(), "/v3/lease/revoke", lease.dump()).find("revision"),
              std::string::npos);
  }

  etcd_cluster& cluster = shared_etcd();
  const std::string prefix = fresh_prefix();
};

}  // namespace holdfast::test
