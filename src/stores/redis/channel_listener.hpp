// Messages of many channels, each from the server that has its slot.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <holdfast/result.hpp>

#include "core/types.hpp"
#include "runtime/background.hpp"
#include "stores/pause.hpp"
#include "stores/redis/node_listener.hpp"
#include "stores/redis/server.hpp"
#include "stores/waiting.hpp"

namespace holdfast::stores::redis {

// Thread-safe. What its functions do for one server is said in node_listener.hpp. When the slot of
// a channel gets another node, waiters hear nothing any more, and join again there when they ask.
class channel_listener {
 public:
  channel_listener(std::shared_ptr<server> at, std::shared_ptr<runtime::background> background)
      : server_{std::move(at)}, background_{std::move(background)} {}
  channel_listener(const channel_listener&) = delete;
  channel_listener& operator=(const channel_listener&) = delete;

  struct place {
    std::shared_ptr<server_node> node;
    std::shared_ptr<node_listener> at;
    std::shared_ptr<node_listener::place> in;
    std::string channel;
  };
  using on_joined = std::function<void(result<std::shared_ptr<place>>)>;

  void join(std::string name, core::time_point until, caller& by, on_joined done);
  [[nodiscard]] bool hears(const place& mine);
  [[nodiscard]] std::shared_ptr<pause> wait(const std::shared_ptr<place>& mine,
                                            core::time_point until, std::function<void()> done);
  void ask_begins(place& mine);
  void leave(const std::shared_ptr<place>& mine, bool pass_on);

  void close();

 private:
  [[nodiscard]] std::shared_ptr<node_listener> listener_at(
      const std::shared_ptr<server_node>& node);

  const std::shared_ptr<server> server_;
  const std::shared_ptr<runtime::background> background_;

  std::mutex m_;
  // Protected by m_.
  bool closed_ = false;
  std::map<std::shared_ptr<server_node>, std::shared_ptr<node_listener>> listeners_;
};

}  // namespace holdfast::stores::redis
