// Connections to whichever server is the master now.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "runtime/wake_fd.hpp"
#include "stores/redis/deployment.hpp"
#include "stores/redis/dialer.hpp"
#include "stores/redis/master_connections.hpp"

namespace holdfast::stores::redis {

// Thread-safe. Shared by all dialers of a client. From its first connection on it has a thread that
// waits for news of the master: nobody else is sure to listen. A thread that waits for a reply
// waits for that only, and the master that falls silent is the one that it waits for.
class master_finder {
 public:
  // How long a server may take to accept a connection and greet: the master that is remembered may
  // be silent, and then there is time to ask for the new one within one call.
  static constexpr core::duration greeting_max = std::chrono::seconds{1};
  // How long all Sentinels, or servers, together may take to say who the master is.
  static constexpr core::duration search_max = std::chrono::seconds{1};

  // `at`: how to reach a server.
  master_finder(std::unique_ptr<deployment> in,
                std::function<endpoint(const core::server_address&)> at);
  master_finder(const master_finder&) = delete;
  master_finder& operator=(const master_finder&) = delete;
  ~master_finder();

  [[nodiscard]] const std::string& name() const noexcept { return in_->name(); }
  // Blocks. Asks only if no master is known, or if that one cannot be reached or is none any more.
  // `terms`: how to log in, and what else the connection is to be; not where.
  [[nodiscard]] result<std::unique_ptr<runtime::stream>> connect(const endpoint& terms,
                                                                 core::time_point until);

 private:
  [[nodiscard]] result<std::unique_ptr<runtime::stream>> connect_to(const core::server_address& to,
                                                                    endpoint terms,
                                                                    core::time_point until);
  [[nodiscard]] result<core::server_address> search(core::time_point until);
  void start_watching();
  void watch();

  const std::unique_ptr<deployment> in_;
  const std::function<endpoint(const core::server_address&)> at_;
  const std::shared_ptr<master_connections> connections_ = std::make_shared<master_connections>();
  const runtime::wake_fd stop_;
  std::atomic<bool> stopping_{false};

  std::mutex m_;
  std::condition_variable searched_;
  // Protected by m_.
  bool searching_ = false;
  std::uint64_t searches_ = 0;  // begun
  result<core::server_address> found_;
  std::thread watcher_;
};

[[nodiscard]] std::shared_ptr<dialer> make_master_dialer(std::shared_ptr<master_finder> by,
                                                         endpoint terms);

}  // namespace holdfast::stores::redis
