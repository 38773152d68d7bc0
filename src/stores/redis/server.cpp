#include "stores/redis/server.hpp"

#include <poll.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "runtime/clock.hpp"
#include "runtime/host.hpp"
#include "stores/background_caller.hpp"
#include "stores/redis/redis_lock.hpp"

namespace holdfast::stores::redis {

namespace {

// Long enough that a busy client sweeps seldom, short enough that a release whose script the
// server had forgotten is sent again soon.
constexpr core::duration sweep_pause = std::chrono::milliseconds{50};
// For so long it is tried to give back a grant that nobody wants; then its claim TTL ends it.
constexpr core::duration stray_patience = std::chrono::seconds{1};

}  // namespace

server::server(redis_config config, std::shared_ptr<runtime::background> background)
    : calls{config.make_dialer(config.server), config.limits, hooks([this] {
              if (events.reconnected) events.reconnected();
            })},
      renewals{config.make_dialer(config.server), pool_limits{1, core::duration::zero()},
               hooks(nullptr)},
      grants{calls, [this](const grant_message& stray) { give_back(stray); },
             [this] { inbox_rest_.plan(*this); }},
      prefix{std::move(config.prefix)},
      share_with_foreign{config.share_with_foreign},
      replicas{config.replicas},
      promises{std::move(config.promises)},
      host{runtime::host_name()},
      background_{std::move(background)},
      sweeps_{*background_, sweep_pause, [this] { return sweep(); }},
      inbox_rest_{*background_, inbox::rest_after, [this] { return !grants.rest(); }} {}

connection_pool::hooks server::hooks(std::function<void()> reconnected) {
  return {.reconnected = std::move(reconnected),
          .retired = [this] { watch_replies(); },
          .demoted = [this] { on_demoted(); },
          .doubtful =
              [this] {
                if (events.doubtful) events.doubtful();
              }};
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
  calls.flush(until);
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
  calls.close();
  renewals.close();
  grants.close();
  std::deque<std::function<bool()>> given_up;  // they hold locks, which hold this
  const std::lock_guard guard{m_};
  closed_ = true;
  given_up.swap(turns_);
  turns_waiting_ = 0;
}

// What the server refuses on one connection it refuses on all, and its messages tell of a lock that
// is kept elsewhere now.
void server::on_demoted() {
  {
    const std::lock_guard guard{m_};
    const auto now = runtime::now();
    if (now < demoted_not_before_) return;
    demoted_not_before_ = core::after(now, demoted_pause);
  }
  calls.renounce();
  renewals.renounce();
  grants.close();
}

bool server::await_end(int wake_fd) {
  const auto called = calls.connections();
  auto watched = called;
  for (auto& one : renewals.connections())
    watched.push_back(std::move(one));
  std::vector<pollfd> fds{{wake_fd, POLLIN, 0}};
  // Not for what can be read: callers read that.
  for (const auto& one : watched)
    fds.push_back({one->fd(), POLLRDHUP, 0});
  while (::poll(fds.data(), fds.size(), -1) < 0) {
    if (errno != EINTR) return false;
  }
  bool ended = false;
  for (std::size_t i = 0; i < watched.size(); ++i) {
    if (fds[i + 1].revents == 0) continue;
    ended = true;
    (i < called.size() ? calls : renewals).dismiss(*watched[i]);
  }
  return ended;
}

bool server::sweep() {
  const auto now = runtime::now();
  const bool more = calls.sweep(now);
  room_was_made();
  return renewals.sweep(now) || more || others_wait_their_turn();
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
