#include "client/counting.hpp"

#include <utility>

#include <holdfast/counter_handle.hpp>

#include "client/locking.hpp"
#include "core/settings.hpp"
#include "runtime/clock.hpp"
#include "runtime/random.hpp"

namespace holdfast::detail {

namespace {

core::acquire_rule rule_for(const client_options& options, std::optional<core::duration> wait) {
  const auto now = runtime::now();
  return {.started = now,
          .wait_until = core::after(now, wait.value_or(options.wait_limit)),
          .operation_timeout = options.operation_timeout,
          .unreachable_limit = core::unreachable_limit(options),
          .release_budget = options.release_budget,
          .validity = {}};
}

}  // namespace

result<counter_ptr> open_counter(const std::shared_ptr<client_state>& of, std::string_view name,
                                 const core::counter_kind& kind) {
  if (auto ok = of->usable(); !ok) return fail(std::move(ok.error()));
  if (auto ok = core::check_name(name); !ok) return fail(std::move(ok.error()));
  auto in_store = of->store().open_counter(name, kind);
  if (!in_store) return fail(std::move(in_store.error()));
  return std::make_shared<const counter_state>(of, std::string{name}, kind, std::move(*in_store));
}

counting::counting(counter_ptr of, core::counter_request what, std::optional<core::duration> wait,
                   std::stop_token stop, stores::caller& by, on_done done)
    : of_{std::move(of)},
      client_{*of_->client},
      what_{std::move(what)},
      waits_{wait.has_value()},
      may_repeat_{core::may_repeat(of_->kind, what_)},
      stop_{std::move(stop), client_.stopping()},
      by_{by},
      done_{std::move(done)},
      attempt_{
          of_->store->begin(what_, wait.value_or(core::duration::zero()) > core::duration::zero())},
      machine_{rule_for(client_.options, wait), runtime::random_bits()} {}

void counting::begin() {
  if (auto ok = client_.usable(); !ok) return finish(fail(std::move(ok.error())));
  if (waits_ && stop_.requested()) return finish(counted{counted::how::stopped, {}});
  perform(machine_.start(runtime::now()));
}

void counting::perform(step next) {
  switch (next.what) {
    case step::verb::ask:
      return ask(next.until);
    case step::verb::wait:
      return wait(next.until);
    case step::verb::pause:
      return pause(next.until);
    case step::verb::withdraw:  // there is nothing to take back, and a look leaves nothing behind
      return perform(machine_.on_withdrawn(core::only_looks(what_.what), runtime::now()));
    case step::verb::done:
      return finish_machine();
  }
}

// ---- asking ------------------------------------------------------------------------------------

void counting::ask(core::time_point until) {
  attempt_->ask(until, by_, [this](result<core::counter_answer> answer) {
    if (!answer) return failed(std::move(answer.error()));
    answered(*answer);
  });
}

void counting::answered(const core::counter_answer& with) {
  last_ = with;
  if (with.run_is_gone) return finish(fail(core::run_is_gone()));
  if (with.done || !waits_) return finish(counted{counted::how::done, with});
  perform(machine_.on_answer(core::busy{{}, {}, false, with.ask_within}, runtime::now()));
}

void counting::failed(failure why) {
  cause_ = why.message;
  if (why.code == errc::outcome_unknown && !may_repeat_) {
    why.message = unknown();
    return finish(fail(std::move(why)));
  }
  perform(machine_.on_failure(std::move(why), runtime::now()));
}

std::string counting::unknown() const {
  std::string text = "no answer came: it is not known whether this was done";
  return cause_.empty() ? text : text + " (" + cause_ + ")";
}

// ---- waiting -----------------------------------------------------------------------------------

void counting::wait(core::time_point until) {
  if (!std::exchange(counts_as_wait_, true)) {
    ++client_.counts.waits;
    ++client_.counts.waiting_now;
    client_.tell({.type = event::kind::waiting, .lock = of_->name});
  }
  stop_.calls([this, weak = weak_from_this()] {
    by_.in_turn([weak] {
      if (const auto self = weak.lock()) self->attempt_->wake();
    });
  });
  attempt_->wait(until, by_, [this] {
    stop_.calls_no_more();
    perform(machine_.on_woken(stop_.requested(), runtime::now()));
  });
}

void counting::pause(core::time_point until) {
  auto what = std::make_shared<stores::pause>(until, [this] {
    stop_.calls_no_more();
    perform(machine_.on_woken(stop_.requested(), runtime::now()));
  });
  stop_.calls([what] { what->end(); });
  by_.wait_for(std::move(what));
}

// ---- the end -----------------------------------------------------------------------------------

void counting::finish_machine() {
  if (machine_.outcome() == core::acquire_outcome::stopped) {
    return finish(counted{counted::how::stopped, last_});
  }
  if (machine_.outcome() != core::acquire_outcome::failed) {
    return finish(counted{counted::how::late, last_});
  }
  auto why = machine_.why();
  if (why.code == errc::outcome_unknown) why.message = unknown();
  finish(fail(std::move(why)));
}

void counting::finish(result<counted> how) {
  if (!how) how = fail(client_.record_failure(of_->name, std::move(how.error())));
  if (std::exchange(counts_as_wait_, false)) --client_.counts.waiting_now;
  const auto done = std::move(done_);
  done(std::move(how));
}

// ---- for handles -------------------------------------------------------------------------------

namespace {

result<counted> count_here(const counter_ptr& of, core::counter_request what,
                           std::optional<core::duration> wait, const std::stop_token& stop) {
  if (auto ok = check(of); !ok) return fail(std::move(ok.error()));
  std::shared_ptr<counting> mine;
  return stores::wait_here<result<counted>>([&](auto& by, auto done) {
    mine = std::make_shared<counting>(of, std::move(what), wait, stop, by, std::move(done));
    mine->begin();
  });
}

}  // namespace

result<core::counter_answer> request(const counter_ptr& of, core::counter_request what) {
  auto got = count_here(of, std::move(what), {}, {});
  if (!got) return fail(std::move(got.error()));
  if (got->ended == counted::how::done) return got->last;
  return fail(of->client->record_failure(
      of->name, {errc::stopped, "the client was stopped; nothing was done", {}}));
}

result<bool> wait_for(const counter_ptr& of, core::counter_request what, any_nanoseconds wait,
                      const std::stop_token& stop) {
  const auto got = count_here(of, std::move(what), wait, stop);
  if (!got) return fail(got.error());
  return got->ended == counted::how::done;
}

result<void> wait_out(const counter_ptr& of, core::counter_request what,
                      std::optional<any_nanoseconds> wait, const std::stop_token& stop) {
  if (auto ok = check(of); !ok) return ok;
  const auto got =
      count_here(of, std::move(what), wait.value_or(of->client->options.wait_limit), stop);
  if (!got) return fail(got.error());
  if (got->ended == counted::how::done) return {};
  failure why{errc::stopped, "stopped while waiting", {}};
  if (got->ended == counted::how::late) {
    const bool takes = of->kind.what == core::counter_kind::form::redisson_semaphore;
    why = {errc::timed_out,
           std::to_string(got->last.value) +
               (takes ? " permits are free, and more were wanted for the whole wait"
                      : " have not counted yet at the end of the wait"),
           {}};
  }
  return fail(of->client->record_failure(of->name, std::move(why)));
}

// ---- counter_handle ----------------------------------------------------------------------------

counter_handle::counter_handle(counter_ptr state) noexcept : state_{std::move(state)} {}
counter_handle::counter_handle(const counter_handle&) noexcept = default;
counter_handle::counter_handle(counter_handle&&) noexcept = default;
counter_handle& counter_handle::operator=(const counter_handle& other) noexcept {
  if (this != &other) let_go(std::exchange(state_, other.state_));
  return *this;
}
counter_handle& counter_handle::operator=(counter_handle&& other) noexcept {
  if (this != &other) let_go(std::exchange(state_, std::move(other.state_)));
  return *this;
}
counter_handle::~counter_handle() { let_go(std::move(state_)); }

const std::string& counter_handle::name() const noexcept {
  static const std::string none;
  return state_ ? state_->name : none;
}

}  // namespace holdfast::detail
