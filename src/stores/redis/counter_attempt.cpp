#include "stores/redis/counter_attempt.hpp"

#include <utility>

#include "runtime/random.hpp"
#include "stores/redis/script_values.hpp"

namespace holdfast::stores::redis {

namespace {

// The first element of what latch_look.lua gives, if the run that was waited for is gone.
constexpr long long run_is_gone = -1;

}  // namespace

redis_counter_attempt::redis_counter_attempt(std::shared_ptr<redis_counter> at,
                                             core::counter_request what, bool may_wait)
    : counter_{std::move(at)},
      what_{std::move(what)},
      may_wait_{may_wait},
      id_{runtime::fresh_owner()} {}

redis_counter_attempt::~redis_counter_attempt() {
  if (place_) counter_->messages().leave(place_, true);
}

// ---- asking ------------------------------------------------------------------------------------

void redis_counter_attempt::ask(core::time_point until, caller& by, on_answer done) {
  until_ = until;
  by_ = &by;
  answered_ = std::move(done);
  tried_to_listen_ = false;
  send();
}

void redis_counter_attempt::send() {
  if (place_) counter_->messages().ask_begins(*place_);
  counter_->on().calls.run(counter_->script_of(what_, id_, round_), until_, {}, *by_,
                           [this](result<reply> answered, const auto&) {
                             if (answered) return read(**answered);
                             answer(fail(std::move(answered.error())));
                           });
}

void redis_counter_attempt::read(const reply_value& answered) {
  const auto fields = elements_of(answered);
  if (fields.size() < 2) return answer(fail(strange_answer(counter_->on().calls.node())));
  if (fields.size() > 2) round_ = std::string{text_of(*fields[2])};
  const auto said = fields[0]->integer;
  core::counter_answer with{said == 1, fields[1]->integer, {}, said == run_is_gone};
  if (with.done || with.run_is_gone || !may_wait_) return answer(with);
  listen_or_say(with);
}

void redis_counter_attempt::listen_or_say(core::counter_answer with) {
  if (place_ && counter_->messages().hears(*place_)) {
    with.ask_within = counter_->ask_within();
    return answer(with);
  }
  if (std::exchange(tried_to_listen_, true)) return answer(with);
  place_ = nullptr;  // its connection is gone
  counter_->messages().join(counter_->channel(), until_, *by_,
                            [this, with](result<std::shared_ptr<channel_listener::place>> joined) {
                              if (!joined) return answer(with);  // then it polls
                              place_ = std::move(*joined);
                              send();
                            });
}

void redis_counter_attempt::answer(result<core::counter_answer> with) {
  const auto done = std::move(answered_);
  done(std::move(with));
}

// ---- waiting -----------------------------------------------------------------------------------

void redis_counter_attempt::wait(core::time_point until, caller& by, std::function<void()> done) {
  woken_ = std::move(done);
  const auto woken = [this] {
    {
      const std::lock_guard guard{m_};
      wait_ = nullptr;
    }
    const auto told = std::move(woken_);
    told();
  };
  auto what = place_ ? counter_->messages().wait(place_, until, woken)
                     : std::make_shared<pause>(until, woken);
  {
    const std::lock_guard guard{m_};
    wait_ = what;
    if (std::exchange(woken_before_, false)) what->end();
  }
  by.wait_for(std::move(what));
}

void redis_counter_attempt::wake() {
  const std::lock_guard guard{m_};
  if (wait_) {
    wait_->end();
  } else {
    woken_before_ = true;
  }
}

}  // namespace holdfast::stores::redis
