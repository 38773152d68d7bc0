// One request of a counter: asked until it is answered, waited for until it is granted.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include <holdfast/duration.hpp>
#include <holdfast/result.hpp>

#include "client/client_state.hpp"
#include "client/stopping.hpp"
#include "core/acquire_machine.hpp"
#include "core/counter.hpp"
#include "stores/counter.hpp"
#include "stores/pause.hpp"
#include "stores/waiting.hpp"

namespace holdfast::detail {

// What a handle is on.
class counter_state {
 public:
  counter_state(std::shared_ptr<client_state> owner, std::string called,
                const core::counter_kind& of, std::shared_ptr<stores::store_counter> in_store)
      : client{std::move(owner)}, name{std::move(called)}, kind{of}, store{std::move(in_store)} {}

  const std::shared_ptr<client_state> client;
  const std::string name;
  const core::counter_kind kind;
  const std::shared_ptr<stores::store_counter> store;
};

using counter_ptr = std::shared_ptr<const counter_state>;

[[nodiscard]] result<counter_ptr> open_counter(const std::shared_ptr<client_state>& of,
                                               std::string_view name,
                                               const core::counter_kind& kind);

// On this thread. What changes something is tried again where that is safe; looking always is.
[[nodiscard]] result<core::counter_answer> request(const counter_ptr& of,
                                                   core::counter_request what);
// False: not in time, or stopped.
[[nodiscard]] result<bool> wait_for(const counter_ptr& of, core::counter_request what,
                                    any_nanoseconds wait, const std::stop_token& stop);
// Without `wait`: the client's wait limit. errc::timed_out, errc::stopped.
[[nodiscard]] result<void> wait_out(const counter_ptr& of, core::counter_request what,
                                    std::optional<any_nanoseconds> wait,
                                    const std::stop_token& stop);

struct counted {
  enum class how {
    done,     // answered, whatever the answer is
    late,     // still not so at the end of the wait
    stopped,  // before that
  };
  how ended{};
  core::counter_answer last{};  // of a request that waited: what was met last
};

// Does what core::acquire_machine says, as an acquisition does, but nothing is held afterwards. Not
// thread-safe: all but a stop happens in turn with its caller. Its owner, who holds it by a shared
// pointer, keeps it until `done` is called, and may then destroy it at once.
class counting final : public std::enable_shared_from_this<counting> {
 public:
  using on_done = std::function<void(result<counted>)>;

  // `wait`: how long it waits for an answer that is `done`; none: any answer will do.
  counting(counter_ptr of, core::counter_request what, std::optional<core::duration> wait,
           std::stop_token stop, stores::caller& by, on_done done);
  counting(const counting&) = delete;
  counting& operator=(const counting&) = delete;

  // Calls `done` once, perhaps before it returns.
  void begin();

 private:
  using step = core::acquire_step;

  void perform(step next);
  void ask(core::time_point until);
  void answered(const core::counter_answer& with);
  void failed(failure why);
  void wait(core::time_point until);
  void pause(core::time_point until);
  void finish_machine();
  void finish(result<counted> how);

  [[nodiscard]] std::string unknown() const;

  const counter_ptr of_;
  client_state& client_;
  const core::counter_request what_;
  const bool waits_;
  const bool may_repeat_;
  stopping stop_;
  stores::caller& by_;
  on_done done_;

  std::unique_ptr<stores::counter_attempt> attempt_;
  core::acquire_machine machine_;
  core::counter_answer last_;
  std::string cause_;            // of the last failure
  bool counts_as_wait_ = false;  // in the client's counters
};

}  // namespace holdfast::detail
