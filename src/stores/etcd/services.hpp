// What the locks of one client have in common.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/background.hpp"
#include "stores/etcd/cluster.hpp"
#include "stores/etcd/holdings.hpp"
#include "stores/etcd/sessions.hpp"

namespace holdfast::stores::etcd {

// Thread-safe.
struct services {
  services(const component_config& config, std::shared_ptr<runtime::background> threads)
      : prefix{config.prefix},
        background{std::move(threads)},
        servers{config},
        sessions{servers},
        held{std::make_shared<holdings>(servers, background)} {}
  services(const services&) = delete;
  services& operator=(const services&) = delete;
  ~services() { servers.stop(); }  // what its thread calls is still there

  void release_began() {
    const std::lock_guard guard{m};
    ++releases;
  }
  void release_ended() {
    {
      const std::lock_guard guard{m};
      --releases;
    }
    released.notify_all();
  }

  const std::string prefix;
  const std::shared_ptr<runtime::background> background;
  cluster servers;
  session_pool sessions;
  const std::shared_ptr<holdings> held;
  store_events events;  // set once, before anything else

  std::mutex m;
  std::condition_variable released;
  std::size_t releases = 0;  // protected by m: under way, that nobody waits for
};

}  // namespace holdfast::stores::etcd
