#include "stores/redis/server_node.hpp"

#include <utility>

#include "runtime/clock.hpp"

namespace holdfast::stores::redis {

namespace {

pool_limits of_calls(pool_limits given) {
  given.keeps_changes = false;
  return given;
}

pool_limits of_renewals(pool_limits given) {
  given.connections = 1;
  given.spin = core::duration::zero();
  return given;
}

}  // namespace

server_node::server_node(const std::shared_ptr<dialer>& calls_by,
                         const std::shared_ptr<dialer>& renewals_by, std::string host_name,
                         pool_limits limits, std::string_view name_begins, hooks tell)
    : calls{calls_by, of_calls(limits), std::move(tell.calls)},
      renewals{renewals_by, of_renewals(limits), std::move(tell.renewals)},
      grants{calls, name_begins, std::move(tell.stray), std::move(tell.inbox_left)},
      host{std::move(host_name)} {}

// What the server refuses on one connection it refuses on all, and its messages tell of a lock that
// is kept elsewhere now.
void server_node::on_demoted() {
  {
    const std::lock_guard guard{m_};
    const auto now = runtime::now();
    if (now < demoted_not_before_) return;
    demoted_not_before_ = core::after(now, demoted_pause);
  }
  renounce();
  grants.close();
}

bool server_node::sweep(core::time_point now) {
  const bool more = calls.sweep(now);
  return renewals.sweep(now) || more;
}

void server_node::renounce() {
  calls.renounce();
  renewals.renounce();
}

void server_node::close() {
  calls.close();
  renewals.close();
  grants.close();
}

}  // namespace holdfast::stores::redis
