#include "stores/redis/server.hpp"

#include <array>
#include <thread>

#include "core/release_machine.hpp"
#include "runtime/clock.hpp"
#include "runtime/host.hpp"
#include "runtime/random.hpp"
#include "runtime/sleep.hpp"
#include "stores/redis/layout.hpp"

namespace holdfast::stores::redis {

namespace {

// Long enough that a busy client sweeps seldom, short enough that a release whose script the
// server had forgotten is sent again soon.
constexpr core::duration sweep_pause = std::chrono::milliseconds{50};

}  // namespace

server::server(redis_config config, std::shared_ptr<runtime::background> background)
    : calls{config.server,
            config.limits,
            {[this] {
               if (events.reconnected) events.reconnected();
             },
             [this] { watch_replies(); }}},
      renewals{config.server,
               link_limits{1, core::duration::zero()},
               {nullptr, [this] { watch_replies(); }}},
      grants{calls, [this](const grant_message& stray) { give_back(stray); }},
      prefix{std::move(config.prefix)},
      share_with_foreign{config.share_with_foreign},
      promises{std::move(config.promises)},
      host{runtime::host_name()},
      background_{std::move(background)} {}

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

bool server::in_background(runtime::background::task work) {
  return background_->run(std::move(work));
}

void server::watch_replies() {
  if (sweep_planned_.exchange(true)) return;
  const bool planned =
      background_->run_at(core::after(runtime::now(), sweep_pause), [weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->sweep();
      });
  if (!planned) sweep_planned_ = false;
}

void server::sweep() {
  sweep_planned_ = false;
  const auto now = runtime::now();
  const bool more = calls.sweep(now);
  if (renewals.sweep(now) || more) watch_replies();
}

// Granted to an attempt that nobody here knows any more.
void server::give_back(const grant_message& grant) {
  const lock_keys keys{grant.key};
  const std::array<std::string_view, 4> names{keys.lock, keys.slot, keys.queue, keys.waiters};
  // This grant only: the attempt may have been granted the lock anew since, and hold it.
  const auto value = value_begins(grant.id, grant.token);
  const std::array<std::string_view, 2> args{value, {}};
  static_cast<void>(calls.post({scripts::release, names, args}, {}, nullptr));
  watch_replies();
}

result<removal> release_by_id(server& on, const script_call& script, core::time_point until,
                              bool unanswered_before) {
  core::release_machine machine{until, runtime::random_bits()};
  if (unanswered_before) static_cast<void>(machine.on_failure(errc::outcome_unknown, until));
  bool was_ours = false;
  int calls = 0;
  for (;;) {
    auto answer = on.calls.run(script, machine.patience(runtime::now()));
    if (answer) {
      const auto said = (*answer)->integer;
      const bool not_ours = said == hand_over_unfinished_not_ours;
      was_ours = was_ours || said > 0;
      if ((said == hand_over_unfinished || not_ours) && ++calls < hand_over_calls_max) continue;
      return machine.on_answer(was_ours                ? removal::released
                               : said == 0 || not_ours ? removal::gone
                                                       : removal::taken);
    }
    const auto again = machine.on_failure(answer.error().code, runtime::now());
    if (!again) {
      if (machine.went_unanswered()) answer.error().code = errc::outcome_unknown;
      return fail(std::move(answer.error()));
    }
    runtime::sleep_until(*again);
  }
}

}  // namespace holdfast::stores::redis
