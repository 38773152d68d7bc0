// One Redis server as a client uses it: its connections, and the inbox on it.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "stores/redis/connection_pool.hpp"
#include "stores/redis/inbox.hpp"

namespace holdfast::stores::redis {

// Thread-safe; must outlive what it was asked for.
class server_node {
 public:
  struct hooks {
    connection_pool::hooks calls;
    connection_pool::hooks renewals;
    std::function<void(const grant_message&)> stray;
    std::function<void()> inbox_left;
  };

  // `name_begins`: of the inbox, see layout.hpp. `limits`: what is kept of changes is for renewals.
  server_node(const std::shared_ptr<dialer>& calls_by, const std::shared_ptr<dialer>& renewals_by,
              std::string host, pool_limits limits, std::string_view name_begins, hooks tell);

  // Requests of callers, and the connection of its own that renewals have: they must not queue
  // behind anything.
  connection_pool calls;
  connection_pool renewals;
  inbox grants;
  const std::string host;

  // The connections work, but the server refuses what masters do.
  void on_demoted();
  // True while there is more to be swept.
  [[nodiscard]] bool sweep(core::time_point now);
  // Nothing new goes there; what is under way may end.
  void renounce();
  void close();

 private:
  // Connections that a server refuses to write on are renounced no more often than this: a server
  // that stays read-only would see a new connection with every request.
  static constexpr core::duration demoted_pause = std::chrono::milliseconds{100};

  std::mutex m_;
  core::time_point demoted_not_before_{};  // protected by m_
};

}  // namespace holdfast::stores::redis
