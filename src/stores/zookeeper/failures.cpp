#include "stores/zookeeper/failures.hpp"

#include <zookeeper/zookeeper.h>

#include <string>

namespace holdfast::stores::zookeeper {

bool is_unanswered(int rc) noexcept {
  return rc == ZCONNECTIONLOSS || rc == ZOPERATIONTIMEOUT || rc == ZCLOSING || rc == ZSESSIONMOVED;
}

failure failure_of(int rc, std::string_view what) {
  const auto failed = [&](errc code, std::string_view why) {
    return failure{code, "cannot " + std::string{what} + ": " + std::string{why}, {}};
  };
  if (is_unanswered(rc)) {
    return failed(errc::outcome_unknown, "the connection to ZooKeeper ended before the answer");
  }
  switch (rc) {
    case ZSESSIONEXPIRED:
    case ZINVALIDSTATE:
      return failed(errc::store_unreachable, "ZooKeeper ended the session");
    case ZAUTHFAILED:
      return failed(errc::not_authenticated, "ZooKeeper refuses the user name or password");
    case ZNOAUTH:
      return failed(errc::not_permitted,
                    "the node's access list does not name this user: give the user and password "
                    "of the lock's other clients in the store URL");
    case ZINVALIDACL:
      return failed(errc::not_permitted,
                    "the server refuses the access list: name a user and password in the store "
                    "URL, or write acl=open");
    case ZNOTREADONLY:
      return failed(errc::read_only, "the server is cut off from its ensemble");
    case ZUNIMPLEMENTED:
      return failed(errc::incompatible,
                    "the server does not know the request: it has to be 3.5.3 or later");
    default:
      return failed(errc::store_refused, "ZooKeeper says: " + std::string{::zerror(rc)});
  }
}

}  // namespace holdfast::stores::zookeeper
