// One lock on a set of nodes.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "stores/redis/layout.hpp"
#include "stores/redlock/node_set.hpp"
#include "stores/redlock/sight.hpp"
#include "stores/store.hpp"

namespace holdfast::stores::redlock {

// What became of a renewal on one node.
struct extension {
  bool known = false;
  std::string value{};    // extended; empty: not
  fencing_token token{};  // in it
  bool taken = false;     // not extended: somebody else has it
};
[[nodiscard]] extension read_extension(const redis::reply_value& answer);

struct place_in_line;

class redlock_lock final : public store_lock, public std::enable_shared_from_this<redlock_lock> {
 public:
  redlock_lock(std::shared_ptr<node_set> on, std::string key);

  result<core::answer> ask(attempt& who, core::time_point until) override;
  void wait(attempt& who, core::time_point until, const std::stop_token& stop) override;
  result<removal> withdraw(attempt& who, core::time_point until) override;
  result<removal> release(const core::owner_id& id, core::time_point until) override;
  void release_later(const core::owner_id& id, core::time_point give_up) noexcept override;
  result<lock_status> inspect(core::time_point until) override;
  result<void> break_with(fencing_token token, core::time_point until) override;
  result<renewal> extend(const core::owner_id& id, fencing_token token, core::duration ttl,
                         core::time_point until) override;
  void forget(const core::owner_id& id) noexcept override;

  [[nodiscard]] const std::string& key() const noexcept { return key_; }
  // By our wall clock, as the nodes keep it.
  [[nodiscard]] static std::string wall_ms_text();
  // One lease's renewal from what the nodes said; a failure if that is not known. `ttl` was asked
  // for, and counts from when the first request left.
  [[nodiscard]] result<renewal> judge(const core::owner_id& id, core::duration ttl,
                                      core::time_point counted_from,
                                      std::span<const extension> said);

  // Whether it is ours, or may become so, and was not given back.
  [[nodiscard]] bool holds(const core::owner_id& id);
  // It is in line somewhere: it leaves when the lock is given back. False: it was already.
  [[nodiscard]] bool leaves_line(const core::owner_id& id, const std::string& entry);

  // What one ask sends to its nodes.
  struct acquire_words {
    std::string ttl, token, since, holder;
    std::string ticket, call;  // empty: it does not wait
    bool asked_before;
  };
  [[nodiscard]] request acquire_request(std::size_t node, const core::owner_id& id,
                                        const acquire_words& words) const;
  [[nodiscard]] request raise_request(std::size_t node, const core::owner_id& id,
                                      std::uint64_t to) const;
  // And one release: standing asks to take out of the line, and to put into it.
  struct release_words {
    std::string leaves_as{}, stays_as{}, ticket{};
    std::string since = wall_ms_text();  // the same for the next one on all nodes
  };
  [[nodiscard]] request release_request(std::size_t node, const core::owner_id& id,
                                        const release_words& words) const;

 private:
  struct waiting;
  [[nodiscard]] acquire_words words_of(const attempt& who, const place_in_line* line,
                                       std::uint64_t proposal) const;
  // As the nodes keep it.
  [[nodiscard]] std::string describe_us(std::string_view label) const;
  [[nodiscard]] waiting& memory_of(attempt& who) const;
  [[nodiscard]] std::shared_ptr<place_in_line> join_line(const attempt& who, waiting& mine) const;
  // Begins to vote with this id.
  void begin(attempt& who, waiting& mine, const core::owner_id& id);
  // After a split vote, or a long wait: as somebody else, who is in line wherever we were.
  void begin_again(attempt& who, waiting& mine);
  // It waits no more.
  void stop_waiting(const attempt& who, waiting& mine);
  void leave_line(const attempt& who, waiting& mine);
  void give_back(const core::owner_id& id, const release_words& words, node_mask at,
                 core::time_point give_up);
  [[nodiscard]] std::vector<node_view> look(core::time_point until);
  // None: it is not known here.
  [[nodiscard]] fencing_token token_of(const core::owner_id& id);
  void repair(std::size_t node, const core::owner_id& id, const std::string& value,
              core::duration ttl);

  const std::shared_ptr<node_set> set_;
  const std::string key_;
  const std::string queue_key_;
  const unsigned slot_;
  const std::string counter_field_;
  std::atomic<std::uint64_t> last_seen_{0};
  std::atomic<core::duration::rep> rivals_until_{0};

  std::mutex m_;
  struct ours {
    node_mask at;           // nodes that may have it, or have it in line
    fencing_token token{};  // none: not granted yet
    std::string entry{};    // its standing ask, if it may be in line still
  };
  // What is known of a lease that is given back now.
  [[nodiscard]] ours take_out(const core::owner_id& id);
  // Puts a fresh lease on the other nodes than those that were asked for it.
  void fill_in(const attempt& who, const core::grant& got, node_mask asked);

  // Protected by m_: leases of ours, not given back. Only those are repaired.
  std::map<core::owner_id, ours> held_;
  // Protected by m_: leases that were handed on, until they have surely ended without a renewal.
  // Votes for them that come late are theirs.
  std::map<core::owner_id, core::time_point> handed_on_;
};

}  // namespace holdfast::stores::redlock
