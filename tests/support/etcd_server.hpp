// A real etcd server of a test's own, for data that a lock protects.
#pragma once

#include <stdexcept>
#include <string>

#include "support/process.hpp"
#include "support/redis_server.hpp"
#include "support/temp_dir.hpp"

namespace holdfast::test {

// One member, on free ports of the loopback address. Not thread-safe. It dies with the thread that
// made it.
class etcd_server {
 public:
  etcd_server() {
    if (eventually([&] { return run("endpoint health").exit == exit_status{}; })) return;
    throw std::runtime_error{"etcd: " + server_.stderr_text()};
  }
  [[nodiscard]] const std::string& endpoint() const noexcept { return client_; }
  // etcdctl, with `words` as the shell reads them.
  [[nodiscard]] run_result run(const std::string& words) const {
    return run_program({.args = {"sh", "-c", "exec etcdctl " + words},
                        .env = {{"ETCDCTL_API", "3"}, {"ETCDCTL_ENDPOINTS", client_}}});
  }
  // With the end of its line.
  [[nodiscard]] std::string get(const std::string& key) const {
    return run("get --print-value-only " + key).out;
  }

 private:
  const temp_dir folder_;
  const std::string client_ = "http://127.0.0.1:" + std::to_string(free_port());
  const std::string peer_ = "http://127.0.0.1:" + std::to_string(free_port());
  child_process server_{
      {"etcd", "--data-dir", folder_.file("data"), "--unsafe-no-fsync", "--log-level", "error",
       "--listen-client-urls", client_, "--advertise-client-urls", client_, "--listen-peer-urls",
       peer_, "--initial-advertise-peer-urls", peer_, "--initial-cluster", "default=" + peer_}};
};

}  // namespace holdfast::test
