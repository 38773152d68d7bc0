#include "stores/redis/redisson/hash_attempt.hpp"

#include <algorithm>
#include <utility>

#include "core/queue_place.hpp"
#include "runtime/clock.hpp"
#include "runtime/host.hpp"
#include "runtime/random.hpp"
#include "stores/redis/release_by_id.hpp"
#include "stores/redis/script_replies.hpp"
#include "stores/redis/script_values.hpp"

namespace holdfast::stores::redis::redisson {

namespace {

// Requests of one ask: it may meet a release of ours that is under way, and then have to listen.
constexpr int calls_max = 8;

std::string describe_owner(const std::string& host, const std::string& label) {
  return "since=" + std::to_string(runtime::wall_ms().count()) + ';' +
         describe_holder(host, runtime::process_id(), label);
}

}  // namespace

hash_attempt::hash_attempt(hash_lock& at, attempt_spec what)
    : lock_{at},
      on_{at.on()},
      spec_{std::move(what)},
      id_{runtime::fresh_owner()},
      holder_{describe_owner(on_.host, spec_.label)},
      entry_{spec_.may_wait ? lock_.entry_of(id_, spec_.ttl, holder_) : std::string{}} {}

hash_attempt::~hash_attempt() { leave_channel(true); }

void hash_attempt::leave_channel(bool pass_on) {
  if (place_) lock_.messages().leave(place_, pass_on);
  place_ = nullptr;
}

// ---- asking ------------------------------------------------------------------------------------

void hash_attempt::ask(core::time_point until, caller& by, on_answer done) {
  until_ = until;
  by_ = &by;
  answered_ = std::move(done);
  calls_ = 0;
  tried_to_listen_ = false;
  send();
}

void hash_attempt::send() {
  if (calls_++ == calls_max) {
    return answer(fail(errc::store_busy, "the lock cannot be asked for: it changes all the time"));
  }
  if (place_) lock_.messages().ask_begins(*place_);
  // As of now: they may be answered before our own answer is read, and "busy" is outdated then.
  releases_ = lock_.pending_releases();
  counted_from_ = runtime::now();
  const auto since_last = asked_before_ ? counted_from_ - *asked_before_ : core::duration::zero();
  const auto script = lock_.acquire_script({.id = id_,
                                            .wants = spec_,
                                            .number = ++asks_,
                                            .holder = holder_,
                                            .entry = entry_,
                                            .since_last = since_last});
  on_.calls.run(script, until_, releases_.last, *by_,
                [this](result<reply> answered, const sent_position& sent) {
                  if (answered) return read(**answered);
                  if (answered.error().code == errc::outcome_unknown) {
                    unanswered_.push_back(sent);
                    on_.watch_replies();
                  }
                  answer(fail(std::move(answered.error())));
                });
}

void hash_attempt::read(const reply_value& answered) {
  const auto fields = elements_of(answered);
  if (fields.size() < 3) return answer(fail(strange_answer(on_.calls.node())));
  if (acquire_reply{fields[0]->integer} != acquire_reply::granted) return read_busy(fields);
  const fencing_token token{read_number(text_of(*fields[1]))};
  // An earlier ask that arrives only after this grant was given back must not take the lock again.
  const auto mine = value_begins(id_, token) + ";ask=" + std::string{text_of(*fields[2])};
  if (lock_.tells_grants_apart()) static_cast<void>(follow_unanswered(mine));
  leave_channel(false);
  answer(core::grant{token, spec_.ttl, counted_from_, 1});
}

void hash_attempt::read_busy(reply_elements fields) {
  asked_before_ = counted_from_;
  const auto value = text_of(*fields[2]);
  auto holder = parse_holder(value);
  if (!holder) return answer(fail(std::move(holder.error())));
  core::busy busy{std::move(*holder), read_pttl(*fields[1]), !entry_.empty(), {}};
  const auto whose = core::owner_id::parse(value.substr(0, core::owner_id::digits));
  const auto& ours = releases_.ids;
  if (!whose || std::find(ours.begin(), ours.end(), *whose) == ours.end()) {
    return listen_or_say(std::move(busy));
  }
  // Our own release did not get through yet. To the caller the lock is free: see to it.
  release_by_id(on_, lock_.release_script(whose->text(), {}), until_, false, *by_,
                [this](result<removal> freed) {
                  if (freed) return send();
                  answer(fail(std::move(freed.error())));
                });
}

void hash_attempt::listen_or_say(core::busy busy) {
  if (!spec_.may_wait) return answer(std::move(busy));
  if (place_ && lock_.messages().hears(*place_)) {
    busy.ask_within = lock_.ask_within(spec_.ttl);
    return answer(std::move(busy));
  }
  if (std::exchange(tried_to_listen_, true)) return answer(std::move(busy));
  place_ = nullptr;  // its connection is gone
  lock_.messages().join(
      lock_.channel_of(entry_), until_, *by_,
      [this, busy = std::move(busy)](result<std::shared_ptr<channel_listener::place>> joined) {
        if (!joined) return answer(busy);  // then it polls
        place_ = std::move(*joined);
        send();
      });
}

void hash_attempt::answer(result<core::answer> with) {
  const auto done = std::move(answered_);
  done(std::move(with));
}

// ---- waiting -----------------------------------------------------------------------------------

void hash_attempt::wait(core::time_point until, caller& by, on_woken done) {
  woken_ = std::move(done);
  const auto woken = [this] {
    {
      const std::lock_guard guard{m_};
      wait_ = nullptr;
    }
    const auto told = std::move(woken_);
    told(std::nullopt);
  };
  std::shared_ptr<pause> what;
  if (place_) {
    what = lock_.messages().wait(place_, until, woken);
  } else {
    what = std::make_shared<pause>(until, woken);
  }
  {
    const std::lock_guard guard{m_};
    wait_ = what;
    if (std::exchange(woken_before_, false)) what->end();
  }
  by.wait_for(std::move(what));
}

void hash_attempt::wake() {
  const std::lock_guard guard{m_};
  if (wait_) {
    wait_->end();
  } else {
    woken_before_ = true;
  }
}

// ---- giving up ---------------------------------------------------------------------------------

std::size_t hash_attempt::follow_unanswered(std::string_view spared) {
  if (unanswered_.empty()) return 0;
  const auto script = lock_.release_script(id_.text(), entry_, spared);
  std::size_t open = 0;
  for (const auto& one : unanswered_) {
    if (one.answered() && !one.on->broken()) continue;
    ++open;
    // As source: nobody is there to send it again if the server does not know its hash.
    if (!one.on->broken()) static_cast<void>(one.on->post(script.by_source(), nullptr));
  }
  if (open > 0) on_.watch_replies();
  return open;
}

void hash_attempt::withdraw(core::time_point until, caller& by, on_removal done) {
  leave_channel(true);
  removed_ = std::move(done);
  const auto open = follow_unanswered({});
  release_by_id(on_, lock_.release_script(id_.text(), entry_), until, false, by,
                [this, open](result<removal> said) {
                  const bool sure =
                      !said || core::surely_withdrawn(asks_, open, *said == removal::released);
                  if (!sure) said = removal::unsure;
                  const auto removed = std::move(removed_);
                  removed(std::move(said));
                });
}

}  // namespace holdfast::stores::redis::redisson
