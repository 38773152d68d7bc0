// One seed: the processes, the nodes, the faults, and the judge.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/client.hpp"
#include "sim/judge.hpp"
#include "sim/latch_judge.hpp"
#include "sim/lock_script.hpp"
#include "sim/network.hpp"
#include "sim/plan.hpp"
#include "sim/planted.hpp"

namespace holdfast::sim {

class latch_user;
class worker;

// A fault that waits for its moment. See world_ambush.cpp.
struct ambush {
  enum class stage {
    none,
    for_vote,
    for_wait,
    for_survey,
    for_admission,
    for_second_vote,
    for_late_admission,
    for_renewal,
    for_rival,
    for_lease,
    for_gap,
    for_grant,
    for_loss,
    for_departure,
    for_stale_vote
  };
  stage awaits = stage::none;
  fault how{};
  instant over_at = 0;
  node* forgets = nullptr;
  std::vector<node*> witnesses{};  // of the vote that is forgotten; those who are still heard
  process* victim = nullptr;
  instant wait_over = 0;
};

struct verdict {
  std::optional<violation> found{};
  std::size_t acquisitions = 0;
  std::size_t scripts = 0;
  std::uint64_t fingerprint = 0;  // of all that the nodes answered
  std::string plan{};
  std::vector<std::string> trace{};  // if it was asked for
};

// Everything that happens follows from the seed (and from what was left out).
class world {
 public:
  world(std::uint64_t seed, script_engine& engine, const shipped_scripts& scripts,
        const left_out& without, bool lenient, bool traced);
  ~world();
  world(const world&) = delete;
  world& operator=(const world&) = delete;

  [[nodiscard]] verdict run();

  // For workers.
  const plan the;
  const core::lease_rule rule;  // that clients follow
  timeline time;
  trace_log trace;
  class judge judge;
  latch_judge latches;
  const left_out without;
  const planting planted{without};
  [[nodiscard]] client& client_of(std::size_t process) { return *clients_[process]; }
  // For as long as the world lasts.
  [[nodiscard]] lease& keep(lease fresh) { return leases_.emplace_back(std::move(fresh)); }
  // Nothing goes wrong any more.
  [[nodiscard]] bool is_calm() const { return calm_from_ && time.now() >= *calm_from_; }
  void worker_done() { --busy_workers_; }
  // What a client tells while it is taken apart, at the end, reaches nobody.
  template <class What>
  [[nodiscard]] auto unless_over(What what) {
    return [this, what = std::move(what)](auto&&... told) {
      if (!over_) what(std::forward<decltype(told)>(told)...);
    };
  }

 private:
  struct host {
    std::unique_ptr<process> of;
    std::vector<std::unique_ptr<worker>> workers;
    std::vector<std::unique_ptr<latch_user>> parts;
    std::int64_t wall_off = 0;  // by how much its wall clock was stepped
  };

  [[nodiscard]] bool is_quorum() const noexcept { return the.store == store_kind::redlock; }
  [[nodiscard]] drifting_clock make_clock(std::int64_t start, instant apart, int way);
  void make_nodes(script_engine& engine);
  void vouch_for(node& fresh);
  void start(std::size_t process);
  [[nodiscard]] store_observer observer_of(std::size_t process);
  void save_now_and_then(node& which);
  void calm_down();

  // What goes wrong: world_faults.cpp.
  void plan_next_fault();
  void happen(fault what);
  void lasts(instant until) { faults_last_ = std::max(faults_last_, until); }
  void kill_process(std::size_t which);
  void part(const process& from, const node& to, instant until);
  void drop_lock(node& at);
  void set_wall(host& on);
  static void set_wall(host& on, std::int64_t off);
  void take_as_foreigner();
  void restart_node(node& which, fault how);
  void crash(node& which, fault how, instant back);
  void restart_many();
  void boot_slowly(node& which, bool empty);
  void lose_for_good(node& which);
  void revive_lost();
  void forget(node& which, fault how);
  void step_node(node& which, std::int64_t by);
  void step_clock(node& which, std::int64_t by);
  [[nodiscard]] bool leases_rest_on(node& which);
  [[nodiscard]] bool may_be_out() const;
  void check_tokens_rest();
  void note_clocks();
  [[nodiscard]] instant soon(instant at_most) {
    return time.now() + random_.spread(millisecond, at_most);
  }

  // What goes wrong at just that moment: world_ambush.cpp.
  void lie_in_wait(fault what);
  void spring(node& at, process& from, const script_request& what, const reply& said);
  [[nodiscard]] bool all_vote() const;
  void spring_on_vote(node& voter, process& from);
  void hold_up_an_ask();
  void be_heard_by_few(const process& from, node& voter);
  void fall_silent(node& at);
  void empty(node& which);
  void hold_up(const process& from, std::vector<node*> to);
  void separate(const process& from, const node& to, instant until);

  // What the judge sees: world_view.cpp.
  void observe(node& at, const script_request& what, const reply& said);
  void look_at(node& at, std::string_view key);
  void look_at_locks(node& at);
  void look_at_shares(node& at, std::size_t lock);
  void look_at_quorum(std::size_t lock, const core::owner_id& id);
  [[nodiscard]] static bool votes(node& which);
  [[nodiscard]] static bool has_to_wait(const reply& standing);
  void observe_wait(node& at, const script_request& what, const reply& said);
  void observe_admission(node& at, const script_request& what);
  void check_given_back();
  [[nodiscard]] bool is_given_back(std::size_t lock, const core::owner_id& id) const;
  void let_pass(instant until);
  void check_all_vote(instant nothing_wrong_since);
  void check_leftovers();
  void check_free(node& at, std::size_t lock);
  void check_line(node& at, std::size_t lock);

  const shipped_scripts& scripts_;
  random_stream random_;
  network net_;
  std::vector<std::unique_ptr<node>> nodes_;
  std::vector<host> hosts_;
  std::vector<client*> clients_;  // of the current lives
  // For as long as the world lasts: something may still refer to them.
  std::vector<std::unique_ptr<client>> all_clients_;
  std::deque<lease> leases_;
  std::vector<std::optional<core::owner_id>> owners_;        // of each lock at each node
  std::array<std::set<core::owner_id>, locks_max> sharers_;  // of those that several may hold
  std::size_t busy_workers_ = 0;
  bool over_ = false;
  instant faults_last_ = 0;
  std::optional<instant> calm_from_;
  std::int64_t stepped_back_ = 0;
  ambush ambush_;
  // What a node's wait rests on, as seen from outside. Offsets of clocks are from the world's time.
  struct wait_seen {
    std::string id;
    std::int64_t node_off_least = 0;
    std::int64_t client_off_least = 0;
    instant looked_at = 0;
  };
  std::vector<wait_seen> waits_;                  // of each node
  std::vector<instant> forgot_at_;                // of each node: when it could vote last
  std::map<std::uint64_t, std::int64_t> clocks_;  // readings with counters, µs → offset
  std::int64_t clock_peak_ = INT64_MIN;           // the highest offset that any node ever had
  std::vector<node*> gone_;
  std::size_t scripts_run_ = 0;
  std::uint64_t fingerprint_ = 0;
};

}  // namespace holdfast::sim
