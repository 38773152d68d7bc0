#include "stores/redis/server.hpp"

#include <poll.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "runtime/clock.hpp"
#include "runtime/host.hpp"
#include "stores/background_caller.hpp"
#include "stores/redis/cluster/cluster.hpp"
#include "stores/redis/layout.hpp"
#include "stores/redis/redis_lock.hpp"

namespace holdfast::stores::redis {

namespace {

endpoint for_renewals(const redis_config& config, endpoint where) {
  where.tells_changes = config.hears_changes;
  return where;
}

// Long enough that a busy client sweeps seldom, short enough that a release whose script the
// server had forgotten is sent again soon.
constexpr core::duration sweep_pause = std::chrono::milliseconds{50};
// For so long it is tried to give back a grant that nobody wants; then its claim TTL ends it.
constexpr core::duration stray_patience = std::chrono::seconds{1};

}  // namespace

server::server(const redis_config& config, std::shared_ptr<runtime::background> background)
    : background_{std::move(background)},
      nodes{make_topology(config)},
      calls{nodes->calls()},
      renewals{nodes->renewals()},
      prefix{config.prefix},
      hears_changes{config.hears_changes},
      share_with_foreign{config.share_with_foreign},
      replicas{config.replicas},
      promises{config.promises},
      host{runtime::host_name()},
      sweeps_{*background_, sweep_pause, [this] { return sweep(); }},
      inbox_rest_{*background_, inbox::rest_after, [this] {
                    bool more = false;
                    for (const auto& one : nodes->nodes())
                      more = !one->grants.rest() || more;
                    return more;
                  }} {}

std::unique_ptr<topology> server::make_topology(const redis_config& config) {
  if (config.seeds.empty()) {
    return std::make_unique<single_server>(make_node(config, config.server));
  }
  return std::make_unique<cluster>(
      config.seeds,
      cluster::hooks{.make_node =
                         [this, config](const node_address& where) {
                           return make_node(config, config.endpoint_at(where));
                         },
                     .replaced =
                         [this] {
                           if (events.doubtful) events.doubtful();
                         },
                     .owner = [this]() -> std::weak_ptr<const void> { return weak_from_this(); }},
      background_);
}

std::shared_ptr<server_node> server::make_node(const redis_config& config, const endpoint& where) {
  const auto itself = std::make_shared<server_node*>(nullptr);
  connection_pool::hooks shared{.reconnected = nullptr,
                                .retired = [this] { watch_replies(); },
                                .demoted =
                                    [this, itself] {
                                      (*itself)->on_demoted();
                                      nodes->on_doubt();
                                    },
                                .doubtful = [this] { on_doubt(); }};
  auto of_calls = shared;
  of_calls.reconnected = [this] {
    if (events.reconnected) events.reconnected();
  };
  auto limits = config.limits;
  limits.in_cluster = where.in_cluster;
  limits.keeps_changes = config.hears_changes;
  auto made = std::make_shared<server_node>(
      config.make_dialer(where), config.make_dialer(for_renewals(config, where)), where.host,
      limits, where.in_cluster ? node_inbox_prefix : inbox_prefix,
      server_node::hooks{.calls = std::move(of_calls),
                         .renewals = std::move(shared),
                         .stray = [this](const grant_message& stray) { give_back(stray); },
                         .inbox_left = [this] { inbox_rest_.plan(*this); }});
  *itself = made.get();
  return made;
}

void server::on_doubt() {
  nodes->on_doubt();
  if (events.doubtful) events.doubtful();
}

std::shared_ptr<inbox> server::inbox_of(std::string_view key) {
  auto node = nodes->node_of(key);
  if (!node) return nullptr;
  auto& grants = node->grants;
  return {std::move(node), &grants};
}

void server::release_began() noexcept {
  const std::lock_guard guard{m_};
  ++releases_;
}

void server::release_ended() noexcept {
  const std::lock_guard guard{m_};
  if (--releases_ == 0) ended_.notify_all();
}

void server::flush(core::time_point until) noexcept {
  for (const auto& one : nodes->nodes())
    one->calls.flush(until);
  std::unique_lock lock{m_};
  while (releases_ > 0) {
    const auto current = runtime::now();
    if (current >= until) return;
    ended_.wait_for(lock, until - current);
  }
}

// A release: as many as leases were given back, so none is refused.
void server::in_background(std::function<void(caller&)> begin) {
  begin_in_background(*background_, std::move(begin));
}

void server::wait_turn(std::function<bool()> send) {
  {
    const std::lock_guard guard{m_};
    if (!closed_) {
      turns_.push_back(std::move(send));
      ++turns_waiting_;
    }
  }
  watch_replies();
}

void server::room_was_made() {
  if (!others_wait_their_turn()) return;
  std::function<bool()> send;  // dropped without the mutex: a release may end with it
  std::unique_lock lock{m_};
  // One thread at a time, also because sending may lead here again.
  if (std::exchange(turns_taken_, true)) return;
  while (!turns_.empty()) {
    send = std::move(turns_.front());
    turns_.pop_front();
    lock.unlock();
    const bool sent = send();
    if (sent) send = nullptr;
    lock.lock();
    if (closed_) break;
    if (!sent) {
      turns_.push_front(std::move(send));
      break;
    }
    --turns_waiting_;
  }
  turns_taken_ = false;
}

void server::close() noexcept {
  nodes->close();
  std::deque<std::function<bool()>> given_up;  // they hold locks, which hold this
  const std::lock_guard guard{m_};
  closed_ = true;
  given_up.swap(turns_);
  turns_waiting_ = 0;
}

changed_keys server::await_changes(int wake_fd) {
  struct watched {
    connection_pool* of;
    std::shared_ptr<channel> on;
    short events;
  };
  for (;;) {
    const auto all = nodes->nodes();
    std::vector<watched> connections;
    changed_keys told;
    for (const auto& node : all) {
      // Those of callers not for what can be read: callers read that.
      for (auto& one : node->calls.connections())
        connections.push_back({&node->calls, std::move(one), POLLRDHUP});
      for (auto& one : node->renewals.connections()) {
        told.take(one->take_changes());
        const auto tells = static_cast<short>(hears_changes ? POLLIN | POLLRDHUP : POLLRDHUP);
        connections.push_back({&node->renewals, std::move(one), tells});
      }
    }
    if (!told.empty()) return told;
    std::vector<pollfd> fds{{wake_fd, POLLIN, 0}};
    for (const auto& one : connections)
      fds.push_back({one.on->fd(), one.events, 0});
    while (::poll(fds.data(), fds.size(), -1) < 0) {
      if (errno != EINTR) return {};
    }
    bool ended = false;
    for (std::size_t i = 0; i < connections.size(); ++i) {
      if ((fds[i + 1].revents & ~POLLIN) == 0) continue;
      ended = true;
      connections[i].of->dismiss(*connections[i].on);
    }
    if (ended) {
      nodes->on_doubt();
      return {.all = true};
    }
    if (fds.front().revents != 0) return {};
  }
}

bool server::sweep() {
  const auto now = runtime::now();
  bool more = false;
  for (const auto& one : nodes->nodes())
    more = one->sweep(now) || more;
  room_was_made();
  return more || others_wait_their_turn();
}

// Granted to an attempt that nobody here knows any more.
void server::give_back(const grant_message& grant) {
  // A grant of units says so by a block of 0.
  core::lock_kind kind;
  if (grant.block == 0) kind.what = core::lock_kind::form::permits;
  const auto lock = std::make_shared<redis_lock>(shared_from_this(), grant.key, kind);
  lock->give_back(grant.id, grant.token, core::after(runtime::now(), stray_patience));
}

}  // namespace holdfast::stores::redis
