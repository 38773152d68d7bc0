// What a simulated user needs of a client, whatever the store: stores::store_lock, told by events.
#pragma once

#include <functional>
#include <vector>

#include <holdfast/result.hpp>

#include "core/types.hpp"
#include "stores/blocking_store.hpp"

namespace holdfast::sim {

// Rules of the client side that a planted bug leaves out. None in what is shipped.
struct left_out {
  bool stale_grants = false;  // ignoring a grant from before the latest answer
  bool early_count = false;   // counting validity from before the request left
  bool late_check = false;    // giving back a grant that expired on arrival
  bool withdrawing = false;   // leaving the queue when giving up
  bool stray_token = false;   // giving back the grant that was sent, not a later one
  bool settling = false;      // remembering that a sent grant was answered as well
  bool claim = false;         // counting a sent grant for its claim TTL only
  bool drift = false;         // allowing for clocks that run differently
  bool doubt = false;         // not being sure while a question is unanswered

  // Of a quorum.
  bool elapsed = false;         // refusing what is complete only after the TTL
  bool half_drift = false;      // allowing for the drift of both clocks, not of one
  bool fresh_id = false;        // a fresh id for each attempt
  bool write_back = false;      // raising the nodes to a token above their counters
  bool own_raise = false;       // counting for a raise only what confirmed this very raise
  bool late_release = false;    // giving back what is granted after a refusal
  bool silent_release = false;  // giving back where nobody answered
  bool owed_release = false;    // giving back when a node that was away is there again
  bool repair_sure = false;     // repairing only once a majority has renewed
  bool own_round = false;       // counting in a renewal only what answers it
  bool one_answer = false;      // counting a node, or repairing it, in one renewal: not both
  bool wait_first = false;      // reading a node's counters after its wait, not before
  bool enough_sources = false;  // reading them from a majority
  bool lease_token = false;     // not counting in a renewal a token above the lease's
};

struct renewing {
  std::size_t lock;
  core::owner_id id;
  core::duration ttl;
  fencing_token token{};
};

// One client, in one life of one process. Calls back once for each call, unless its process dies.
class client_model {
 public:
  using on_answer = std::function<void(result<core::answer>)>;
  using on_woken = std::function<void()>;
  using on_removal = std::function<void(result<core::removal>)>;
  using on_renewals = std::function<void(result<std::vector<stores::renewal>>)>;

  client_model() = default;
  client_model(const client_model&) = delete;
  client_model& operator=(const client_model&) = delete;
  virtual ~client_model() = default;

  virtual void ask(std::size_t lock, stores::blocking::attempt& who, core::time_point until,
                   on_answer done) = 0;
  virtual void wait(std::size_t lock, stores::blocking::attempt& who, core::time_point until,
                    on_woken done) = 0;
  // Ends a wait early.
  virtual void wake(stores::blocking::attempt& who) = 0;
  virtual void withdraw(std::size_t lock, stores::blocking::attempt& who, core::time_point until,
                        on_removal done) = 0;
  virtual void release(std::size_t lock, const core::owner_id& id, core::time_point until,
                       on_removal done) = 0;
  virtual void release_later(std::size_t lock, const core::owner_id& id,
                             core::time_point give_up) = 0;
  virtual void renew(const std::vector<renewing>& leases, core::time_point until,
                     on_renewals done) = 0;

  // Whether an ask of this attempt was sent and never answered: it may still arrive.
  [[nodiscard]] virtual bool may_arrive_late(const stores::blocking::attempt& who) const = 0;
  // Whether an attempt that was withdrawn for sure is never at any node again.
  [[nodiscard]] virtual bool withdrawn_for_good(const stores::blocking::attempt& who) const = 0;
  // As seen from outside: the store has the lock for this id.
  [[nodiscard]] virtual bool has_at_store(std::size_t lock, const core::owner_id& id) = 0;
  // Whether this client asked with this id, does not want the lock any more, and has seen to it
  // that every node hears so.
  [[nodiscard]] virtual bool gave_back(std::size_t lock, const core::owner_id& id) const = 0;
  // Whether this was one of its waiters, and every node has heard, or will, that it is none now.
  [[nodiscard]] virtual bool left_line(std::string_view waiter) const = 0;
};

}  // namespace holdfast::sim
