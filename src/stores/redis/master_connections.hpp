// Whom a client takes for the master, and the connections that it has there.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "core/master_choice.hpp"
#include "runtime/stream.hpp"

namespace holdfast::stores::redis {

// Thread-safe. When another server becomes the master, the connections to the old one are ended
// here, those that are just being made included. That is all that has to be done about a failover:
// requests, renewals and inboxes do with a connection that ended what they always do, which is to
// look for another, and to renew every lease at once.
class master_connections : public std::enable_shared_from_this<master_connections> {
 public:
  [[nodiscard]] std::optional<core::server_address> master();
  // True if it was another before.
  bool set_master(const core::server_address& now);

  // Keeps the connection until it is destroyed. Ends it at once if the master is another by now.
  [[nodiscard]] std::unique_ptr<runtime::stream> keep(std::unique_ptr<runtime::stream> made,
                                                      const core::server_address& to);

 private:
  class kept_stream;

  std::mutex m_;
  // Protected by m_.
  std::optional<core::server_address> master_;
  std::set<kept_stream*> kept_;
};

}  // namespace holdfast::stores::redis
