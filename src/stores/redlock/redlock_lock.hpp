// One lock on a set of nodes.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "stores/blocking_store.hpp"
#include "stores/redis/layout.hpp"
#include "stores/redlock/node_set.hpp"
#include "stores/redlock/sight.hpp"

namespace holdfast::stores::redlock {

// What became of a renewal on one node.
struct extension {
  bool known = false;
  std::string value{};    // extended; empty: not
  fencing_token token{};  // in it
  bool taken = false;     // not extended: somebody else has it
};
[[nodiscard]] extension read_extension(const redis::reply_value& answer);

class redlock_lock final : public blocking::store_lock,
                           public std::enable_shared_from_this<redlock_lock> {
 public:
  redlock_lock(std::shared_ptr<node_set> on, std::string key);

  result<core::answer> ask(blocking::attempt& who, core::time_point until) override;
  void wait(blocking::attempt& who, core::time_point until, const std::stop_token& stop) override;
  result<removal> withdraw(blocking::attempt& who, core::time_point until) override;
  result<removal> release(const core::owner_id& id, core::time_point until) override;
  void release_later(const core::owner_id& id, core::time_point give_up) noexcept override;
  result<lock_status> inspect(core::time_point until) override;
  result<void> break_with(fencing_token token, core::time_point until) override;
  result<renewal> extend(const core::owner_id& id, fencing_token token, core::duration ttl,
                         core::time_point until) override;
  void forget(const core::owner_id& id) noexcept override;

  [[nodiscard]] const std::string& key() const noexcept { return key_; }
  // By our wall clock, as the nodes keep it.
  // One lease's renewal from what the nodes said; a failure if that is not known. `ttl` was asked
  // for, and counts from when the first request left.
  [[nodiscard]] result<renewal> judge(const core::owner_id& id, core::duration ttl,
                                      core::time_point counted_from,
                                      std::span<const extension> said);

  // Whether it is ours, or may become so, and was not given back.
  [[nodiscard]] bool holds(const core::owner_id& id);

  // What one ask sends to its nodes.
  struct acquire_words {
    std::string ttl, token, since, holder;
    std::string waiter{}, ticket{};  // empty: it does not queue
    bool asked_before = false;
  };
  [[nodiscard]] request acquire_request(std::size_t node, const core::owner_id& id,
                                        const acquire_words& words) const;
  [[nodiscard]] request raise_request(std::size_t node, const core::owner_id& id,
                                      std::uint64_t to) const;
  // Whose turn it is on a node that is given back. Only what was granted hands a turn on: waiters
  // that have a node each would hand each other's node to and fro for ever.
  enum class turn { nobodys, next };
  // `leaves_as`: the entry of a waiter that leaves the queue; empty: none.
  [[nodiscard]] request release_request(const core::owner_id& id, std::string_view leaves_as,
                                        turn whose) const;
  // For a waiter whose attempt was granted: it leaves the queue, and nothing is given back. A node
  // whose answer was lost may have voted for it; its lease counts that vote, and releases it.
  [[nodiscard]] request leave_request(std::string_view entry) const;

 private:
  struct memory;
  // As the nodes keep it.
  [[nodiscard]] std::string describe_us(std::string_view label) const;
  [[nodiscard]] memory& memory_of(blocking::attempt& who) const;
  void begin_to_wait(const blocking::attempt& who, memory& mine) const;
  void give_back(const core::owner_id& id, std::string_view leaves_as, turn whose,
                 core::time_point give_up);
  [[nodiscard]] std::vector<node_view> look(core::time_point until);
  // None: it is not known here.
  [[nodiscard]] fencing_token token_of(const core::owner_id& id);
  void repair(std::size_t node, const core::owner_id& id, const std::string& value,
              core::duration ttl);
  void take_out(const core::owner_id& id);
  void saw(std::uint64_t counter) noexcept;

  const std::shared_ptr<node_set> set_;
  const std::string key_;
  const std::string queue_key_;
  const unsigned slot_;
  const std::string counter_field_;
  std::atomic<std::uint64_t> last_seen_{0};

  std::mutex m_;
  // Protected by m_: leases of ours and attempts under way, with their token if granted; not given
  // back. Only those are repaired.
  std::map<core::owner_id, fencing_token> held_;
  // Protected by m_: leases that were handed on, until they have surely ended without a renewal.
  // Votes for them that come late are theirs.
  std::map<core::owner_id, core::time_point> handed_on_;
};

}  // namespace holdfast::stores::redlock
