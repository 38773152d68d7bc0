// The way in: a URL, and the locks behind it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/export.hpp>
#include <holdfast/guarantees.hpp>
#include <holdfast/latch.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/observer.hpp>
#include <holdfast/options.hpp>
#include <holdfast/recursive_mutex.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>
#include <holdfast/status.hpp>

namespace holdfast {

namespace detail {
class client_state;
class client_access;
}  // namespace detail

// One owner of locks, on one store. Thread-safe; meant to be shared by a whole program. Mutexes and
// leases keep what they need of it alive. Two clients are two owners, also in one process.
//
//   memory:[name]                          inside this process, for unit tests
//   local:                                 a private redis-server of this user on this host
//   unix:/path/redis.sock[?option=…]       a Redis server on a unix socket
//   redis://[user[:password]@]host[:port][/db][?option=…]
//   redis://[user[:password]@]host[:port],host[:port],…[/db]   the master among these servers
//   redis+sentinel://[user[:password]@]host[:port],…/master[/db]   the one that Sentinels name
//   redis+cluster://[user[:password]@]host[:port],…        a Redis cluster
//   redlock://[user[:password]@]host[:port],host[:port],…[/db][?option=…]   a majority of servers
//   etcd://[user[:password]@]host[:port],…                 if libholdfast_etcd is there
//   zookeeper://[user:password@]host[:port],…[/chroot]     if libholdfast_zookeeper is there
//
// docs/urls.md has the options, and how to use TLS.
// A client does no I/O until it is first used. After fork() it is inert in the child: every use
// there throws errc::forked, destructors do nothing.
//
// A client starts threads when there is something for them to do; while there is nothing, they
// sleep. The last of the client, its mutexes and its leases to be destroyed joins them. They have
// the signal mask of the thread whose call started them.
//
//   2           from the first lease on: one watches the clock, one renews
//   1 to 16     from the first lease on: stop callbacks of lease::lost()
//   0 or 1      with an observer: events that happen in the background
//   0 to 4      releases that are tried again, replies that no caller waits for
//   0 to N + 2  redlock:// with N nodes: making connections
//   0 or 1      redis+sentinel://, and redis:// with several servers: news of the master
//   0 to 2 N    the same, with N of them: asking who the master is
//   0 or 1      etcd://: all of its I/O; zookeeper:// 0 or 2
class HOLDFAST_API client {
 public:
  // Throws errc::invalid_argument for a URL or option that makes no sense.
  explicit client(std::string_view url, client_options options = {});
  client(const client&) = delete;
  client& operator=(const client&) = delete;
  client(client&&) noexcept;
  client& operator=(client&&) noexcept;
  // Waits up to the release budget for releases that are under way. Leases stay valid.
  ~client();

  // Names are any bytes, 1 to 512 of them.
  [[nodiscard]] holdfast::mutex mutex(std::string_view name);
  [[nodiscard]] holdfast::mutex mutex(std::string_view name, lock_options options);
  [[nodiscard]] holdfast::recursive_mutex recursive_mutex(std::string_view name);
  [[nodiscard]] holdfast::recursive_mutex recursive_mutex(std::string_view name,
                                                          lock_options options);

  // On one server, and on memory:; errc::unsupported from other stores. A name stands for one kind
  // of lock at a time: errc::wrong_type, when it is acquired, if it is in use for another.
  [[nodiscard]] holdfast::shared_mutex shared_mutex(std::string_view name);
  [[nodiscard]] holdfast::shared_mutex shared_mutex(std::string_view name, lock_options options);
  // `permits`: how many there are, 1 to 10,000, unless resize() has set it. Its users must agree.
  [[nodiscard]] holdfast::semaphore semaphore(std::string_view name, std::uint32_t permits);
  [[nodiscard]] holdfast::semaphore semaphore(std::string_view name, std::uint32_t permits,
                                              lock_options options);

  // `count`: how many have to count, 1 to 10,000. Its users must agree.
  [[nodiscard]] holdfast::latch latch(std::string_view name, std::uint32_t count);
  [[nodiscard]] holdfast::latch latch(std::string_view name, std::uint32_t count,
                                      latch_options options);

  // Who holds a lock, and who holds those that match a pattern (*, ?, [a-z], as Redis' KEYS).
  // list() shows Holdfast's own locks; it walks the store's keys and is for people, not programs.
  [[nodiscard]] lock_status status(std::string_view name);
  [[nodiscard]] std::vector<lock_status> list(std::string_view pattern);

  // Takes the lock, or the share of it, from the holder that has this token; throws
  // errc::not_held if nobody does. Its holder hears of it a round trip later, or at its next
  // renewal (docs/guarantees.md): until then two believe, and exclusion is in your hands.
  void break_lock(std::string_view name, fencing_token token);
  // Asks that holder to give the lock back: its lease is extended no more, and is lost
  // (loss::recalled) as soon as it hears, as above. Nobody else gets the lock before it has given
  // it back or the returned time is over, so exclusion is kept; milliseconds::max() for a lock that
  // has no expiry. Throws errc::not_held as above, errc::unsupported on redlock:// and for
  // Redisson's locks.
  std::chrono::milliseconds recall_lock(std::string_view name, fencing_token token);

  [[nodiscard]] holdfast::guarantees guarantees() const;
  [[nodiscard]] holdfast::counters counters() const noexcept;

  // Ends every wait, now and later (errc::stopped). Leases that are held stay so.
  void stop() noexcept;

 private:
  friend class detail::client_access;  // makes clients on stores that have no URL
  explicit client(std::shared_ptr<detail::client_state> state) noexcept;
  std::shared_ptr<detail::client_state> state_;
};

}  // namespace holdfast
