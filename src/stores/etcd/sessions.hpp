// Leases of etcd, which its locks are kept by: one for each TTL, used for every lock with it.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/types.hpp"
#include "stores/etcd/cluster.hpp"
#include "stores/etcd/messages.hpp"
#include "stores/pause.hpp"

namespace holdfast::stores::etcd {

struct session {
  lease_id id = 0;
  core::duration ttl{};
  // When the request left that was granted or kept alive.
  core::time_point counted_from{};
};

// Thread-safe. A session goes on for as long as it is used or has locks that are renewed; otherwise
// etcd ends it when its TTL is over.
//
// One that may carry a key that nobody owns is retired: nothing new comes under it, and what is
// held is moved at the next renewal. Such a key is left by a request that was not answered, for the
// server may do it much later; it is gone when the retired session's TTL is over.
class session_pool {
 public:
  using on_session = std::function<void(result<session>)>;

  // Of leases that are retired, and of those that are to be ended with us, the last ones are
  // remembered. By then etcd has ended the older ones itself, unless they are used.
  static constexpr std::size_t remembered_max = 1024;

  explicit session_pool(cluster& at) : cluster_{at} {}
  session_pool(const session_pool&) = delete;
  session_pool& operator=(const session_pool&) = delete;
  ~session_pool() = default;

  // One with most of its TTL left: kept alive, or opened, if need be. Those who ask at the same
  // time wait for the same request, which is nobody's own: a caller that does other things first,
  // or does not come back at all, keeps no other waiting.
  void use(core::duration ttl, core::time_point until, caller& by, on_session done);
  // errc::lease_lost: etcd does not have it any more.
  void keep_alive(lease_id id, core::time_point until, caller& by, on_session done);
  void retire(lease_id id);
  [[nodiscard]] bool is_retired(lease_id id) const;

  // A lock under it is kept for another client.
  void outlives_us(lease_id id);
  // All others, retired ones as well, are over: they would only be in the way of nothing.
  void end_all(core::time_point until) noexcept;

 private:
  // What one who waits was told: protected by m_. Nothing yet, or not in time.
  struct news {
    std::optional<result<session>> got{};
    core::time_point asked_until{};  // by the one for whom the request was made
  };
  struct waiter {
    std::shared_ptr<pause> over;
    std::shared_ptr<news> told;
  };
  struct one_ttl {
    session open;                    // id 0: none
    bool is_busy = false;            // a request is under way
    core::time_point asked_until{};  // as in news
    std::vector<waiter> waiting{};
  };
  void told_of(const news& what, core::duration ttl, core::time_point until, caller& by,
               const on_session& done);
  // These go on with nobody who waits, on the transport's thread.
  void refresh(std::int64_t ttl_s, lease_id known, core::time_point until);
  void grant(std::int64_t ttl_s, core::time_point until);
  void refreshed(std::int64_t ttl_s, const result<session>& got);
  // What keeping it alive was answered with.
  [[nodiscard]] result<session> kept(lease_id id, core::time_point sent, const result<answer>& got);

  cluster& cluster_;
  mutable std::mutex m_;
  // Protected by m_.
  std::map<std::int64_t, one_ttl> by_ttl_;
  std::deque<lease_id> ours_;  // to be ended with us, the oldest first
  std::deque<lease_id> retired_;
};

}  // namespace holdfast::stores::etcd
