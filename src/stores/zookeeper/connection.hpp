// A client's session, opened on first use and replaced when the server has ended it.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/background.hpp"
#include "stores/zookeeper/session.hpp"

namespace holdfast::stores::zookeeper {

// What a session is to be good for that is opened by one who only looks, or has no TTL to name.
inline constexpr core::duration looking_ttl = std::chrono::seconds{10};

// Thread-safe.
class connection : public std::enable_shared_from_this<connection> {
 public:
  struct events {
    std::function<void()> reconnected{};
    std::function<void(const std::shared_ptr<session>&)> ended{};
  };
  connection(handle::config where, core::duration touch_lag,
             std::shared_ptr<runtime::background> background);

  // Once, before the first use.
  void on_events(events tell) { tell_ = std::move(tell); }

  // Calls `done` once there is a session that is connected, perhaps before this returns, or with
  // why there will be none. `ttl`: what a session that has to be opened is to be good for.
  using on_session = std::function<void(result<std::shared_ptr<session>>)>;
  void use(core::duration ttl, on_session done);

  // What a caller is told that gave up waiting for use().
  [[nodiscard]] failure unreachable() const;

  // Ends the session. Not on the library's threads; nothing happens afterwards.
  void close();

 private:
  void open(core::duration ttl);
  void on_state(const std::shared_ptr<session>& of, link_state state);
  void end(const std::shared_ptr<session>& of, const failure* why);
  void serve(const std::vector<on_session>& waiting, const result<std::shared_ptr<session>>& with);

  const handle::config where_;
  const core::duration touch_lag_;
  const std::shared_ptr<runtime::background> background_;
  events tell_;

  std::mutex m_;  // all below
  std::shared_ptr<session> current_;
  std::vector<std::shared_ptr<session>> retired_;  // ended, not closed yet
  std::vector<on_session> waiting_;
  bool opening_ = false;
  bool closed_ = false;
};

}  // namespace holdfast::stores::zookeeper
