// Watches a history as it happens, from outside, and says which promise was broken.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "client/lease_state.hpp"
#include "sim/process.hpp"
#include "sim/trace.hpp"

namespace holdfast::sim {

// A lease as its holder has it.
struct lease {
  std::size_t lock;
  std::shared_ptr<detail::lease_state> state;
  process* holder;
  unsigned life;  // of its process
  std::uint32_t units = 1;

  [[nodiscard]] const core::owner_id& id() const { return state->id; }
  [[nodiscard]] std::uint64_t token() const { return state->token.value(); }
  // What lease.held() would say: a process that is dead says nothing.
  [[nodiscard]] bool held() const {
    return holder->runs() && holder->life() == life && holder->now() < state->relied_on_until();
  }
};

struct violation {
  std::string promise;  // a few words, the same for all cases of one kind
  std::string what;
};

class judge {
 public:
  // `lenient`: see mutant.
  // `capacity`: units that each lock has.
  judge(const timeline& time, trace_log& trace, std::size_t locks, std::uint32_t capacity,
        bool lenient)
      : time_{time}, trace_{trace}, capacity_{capacity}, lenient_{lenient}, tokens_(locks) {}

  // The first one found; the rest may follow from it.
  [[nodiscard]] const std::optional<violation>& found() const noexcept { return found_; }
  void broken(std::string promise, std::string what);

  // An acquisition of `lock` begins: the token that its grant must exceed.
  [[nodiscard]] std::uint64_t begins(std::size_t lock) const { return tokens_[lock].returned; }
  // It returns with a lease. `at_store`: the store has it for this id, as seen from outside.
  void granted(const lease& fresh, std::uint64_t above, bool at_store);
  void ended(const lease& which);
  // A renewal that was sent then has succeeded. On a quorum, a lease that was interrupted is not
  // renewed, even where exclusion had nothing to rest on: its holder must hear of it.
  void renewed(const core::owner_id& id, instant sent);
  // The store refused to extend a lease: not before its deadline.
  void refused(const core::owner_id& id, loss why);

  // The store gave the lock to `id`, with tokens up to `last_token`.
  void store_gave(std::size_t lock, const core::owner_id& id, std::uint64_t last_token,
                  std::uint32_t units = 1);
  // The attempt is over, and nothing of it is on its way: the store must never give to it again.
  void over(const core::owner_id& id);
  [[nodiscard]] bool is_over(const core::owner_id& id) const { return over_.contains(id); }

  // What exclusion rests on does not hold until then.
  void exclusion_void_until(instant when) { void_until_ = std::max(void_until_, when); }
  // This node lost locks that others may have.
  void locks_lost(std::size_t node) { lossy_.insert(node); }
  // The store's data went back or was lost: ids may come back with it.
  void data_lost() { data_lost_ = true; }
  [[nodiscard]] bool lost_data() const noexcept { return data_lost_; }
  // Tokens rest on the counter or the clock; both are behind now.
  void tokens_void() { tokens_void_ = true; }
  [[nodiscard]] std::uint64_t highest_token() const noexcept { return highest_; }

  [[nodiscard]] std::size_t acquisitions() const noexcept { return acquisitions_; }
  // Of a lease that is held.
  [[nodiscard]] std::optional<fencing_token> token_of(const core::owner_id& id) const;

 private:
  [[nodiscard]] bool exclusion_rests() const { return time_.now() < void_until_; }
  [[nodiscard]] bool is_held(std::size_t lock, std::uint64_t token) const;
  // The lease that is held by this id, or null.
  [[nodiscard]] const lease* held_by(const core::owner_id& id) const;
  void check_room(std::size_t lock, const core::owner_id& id, std::uint32_t units,
                  const std::string& how);

  struct token_history {
    std::uint64_t returned = 0;  // the highest that an acquisition has returned with
    instant returned_at = 0;
    std::set<std::uint64_t> granted{};
  };

  const timeline& time_;
  trace_log& trace_;
  const std::uint32_t capacity_;
  const bool lenient_;
  std::set<std::size_t> lossy_;
  std::vector<const lease*> leases_;
  std::vector<token_history> tokens_;
  std::set<core::owner_id> granted_to_;
  std::set<core::owner_id> over_;
  std::optional<violation> found_;
  instant void_until_ = 0;
  bool data_lost_ = false;
  bool tokens_void_ = false;
  std::uint64_t highest_ = 0;
  std::size_t acquisitions_ = 0;
};

}  // namespace holdfast::sim
