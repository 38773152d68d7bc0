// One acquisition: its turn among those of this client, and then the store.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

#include "client/client_state.hpp"
#include "client/mutex_state.hpp"
#include "client/stopping.hpp"
#include "core/acquire_machine.hpp"
#include "stores/pause.hpp"
#include "stores/store.hpp"
#include "stores/waiting.hpp"

namespace holdfast::detail {

// Does what core::acquire_machine says, for a caller that waits on its thread or is told by events.
// Not thread-safe: all but a stop happens in turn with its caller. Its owner, who holds it by a
// shared pointer, keeps it until `done` is called, and may then destroy it at once.
class acquisition final : public std::enable_shared_from_this<acquisition> {
 public:
  using on_done = std::function<void(result<client_state::acquired>)>;

  // It asks only once if `wait` is zero.
  acquisition(std::shared_ptr<const mutex_state> of, core::duration wait, std::stop_token stop,
              stores::caller& by, on_done done);
  acquisition(const acquisition&) = delete;
  acquisition& operator=(const acquisition&) = delete;

  // Calls `done` once, perhaps before it returns.
  void begin();

 private:
  using step = core::acquire_step;

  void queue_here();
  void in_turn_here(cohort::place got);
  void begin_attempt();
  void perform(step next);
  void ask(core::time_point until);
  void wait(core::time_point until);
  void answered(const core::answer& with);
  void pause(core::time_point until);
  void withdraw(core::time_point until);
  void finish_attempt();
  void finish_asking(result<client_state::acquired> got);
  void finish(result<client_state::acquired> got);

  void begins_to_wait();
  [[nodiscard]] bool may_be_handed_here() const;
  // A wait that any thread may end.
  void wait_for(std::shared_ptr<stores::pause> what);

  const std::shared_ptr<const mutex_state> of_;
  client_state& client_;
  const core::duration wait_;
  stopping stop_;
  stores::caller& by_;
  on_done done_;
  const core::time_point started_;

  core::acquire_rule rule_;
  std::unique_ptr<stores::attempt> attempt_;
  std::optional<core::acquire_machine> machine_;
  bool leads_here_ = false;      // others of this client wait for what it meets
  bool counts_as_wait_ = false;  // in the client's counters
};

}  // namespace holdfast::detail
