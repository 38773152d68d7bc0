#include "stores/redlock/node_connection.hpp"

#include <algorithm>
#include <utility>

#include "core/backoff.hpp"
#include "core/passing.hpp"
#include "core/planted.hpp"
#include "runtime/clock.hpp"
#include "runtime/random.hpp"
#include "stores/background_caller.hpp"
#include "stores/redis/server_error.hpp"

namespace holdfast::stores::redlock {

namespace {

using std::chrono::milliseconds;

// Between attempts to connect to a node that is not there.
constexpr core::backoff::bounds connect_pace{milliseconds{5}, std::chrono::seconds{1}};
// Before a release that the node answered with an error is sent again.
constexpr core::duration repeat_pause = milliseconds{100};

// Whether the node may not have done it and will later: it was cut off, busy, short of memory, or
// too many requests were under way.
bool is_worth_repeating(const result<redis::reply>& answer) {
  return !answer && core::is_passing_for_release(answer.error().code);
}

}  // namespace

request request::as_source() const {
  auto other = *this;
  other.may_be_unknown_ = false;
  return other;
}

std::string request::sent(std::string_view run_id) const {
  if (call_->which() == nullptr) return call_->by_hash();
  return (may_be_unknown_ ? call_->by_hash() : call_->by_source()) + redis::as_argument(run_id);
}

bool was_cut_off(const result<redis::reply>& answer) {
  return !answer && (answer.error().code == errc::store_unreachable ||
                     answer.error().code == errc::outcome_unknown);
}

node_connection::node_connection(std::shared_ptr<redis::dialer> to, core::duration reply_patience,
                                 std::shared_ptr<runtime::background> connecting, hooks tell)
    : dialer_{std::move(to)},
      reply_patience_{reply_patience},
      connecting_{std::move(connecting)},
      tell_{std::move(tell)},
      repetitions_{*connecting_, repeat_pause, [this] { return repeat_owed(); }},
      pace_{connect_pace, runtime::random_bits()} {}

node_connection::~node_connection() { close(); }

void node_connection::close() {
  std::shared_ptr<opened> open;
  std::shared_ptr<opened> fresh;
  std::deque<outgoing> dropped;
  {
    lock held{m_};
    closed_ = true;
    down_ = true;
    open.swap(on_);
    fresh.swap(greeted_);
    dropped.swap(queue_);
    owed_.clear();
    wake_all(held);
  }
  for (const auto& one : {open, fresh}) {
    if (one) one->to.break_off("the client is closed");
  }
  for (auto& one : dropped) {
    if (one.done) one.done(fail(errc::stopped, "the client is closed"));
  }
}

bool node_connection::connecting() const {
  const lock held{m_};
  return !on_ && !down_;
}

std::shared_ptr<redis::channel> node_connection::current(
    const std::shared_ptr<runtime::wake_fd>& tell) {
  const lock held{m_};
  const bool waits = tell && !on_ && !closed_ && !down_;
  if (waits && std::find(wake_on_open_.begin(), wake_on_open_.end(), tell) == wake_on_open_.end()) {
    wake_on_open_.push_back(tell);
  }
  return on_ ? std::shared_ptr<redis::channel>{on_, &on_->to} : nullptr;
}

// Under m_.
void node_connection::wake_all(lock& held) {
  static_cast<void>(held);
  for (const auto& one : wake_on_open_)
    one->wake();
  wake_on_open_.clear();
}

void node_connection::send(const request& what, on_reply done, std::function<bool()> wanted) {
  for (;;) {
    lock held{m_};
    if (closed_) {
      held.unlock();
      if (done) done(fail(errc::stopped, "the client is closed"));
      return;
    }
    if (const auto on = on_) {
      held.unlock();
      if (post(on, what, done)) return;
      if (!on->to.broken()) {
        if (done) done(fail(errc::overloaded, "too many requests are under way to " + node()));
        return;
      }
      lost(on);
      continue;
    }
    if (down_ || queue_.size() >= queued_max) {
      auto why = last_failure_;
      held.unlock();
      if (why.message.empty()) why = {errc::overloaded, "too many requests wait for " + node(), {}};
      if (done) done(fail(std::move(why)));
      return;
    }
    queue_.push_back({what, std::move(done), std::move(wanted)});
    start_connecting(held, core::duration::zero());
    return;
  }
}

void node_connection::send_for_sure(const request& what, core::time_point give_up, on_reply done) {
  send(what, owing(what, give_up, std::move(done)));
}

node_connection::on_reply node_connection::owing(const request& what, core::time_point give_up,
                                                 on_reply done) {
  return [self = weak_from_this(), what, give_up,
          done = std::move(done)](result<redis::reply> answer) {
    const auto us = self.lock();
    if (us && is_worth_repeating(answer)) us->owe({what, give_up});
    if (done) done(std::move(answer));
  };
}

// Said again when the connection is made anew, or, if it is open, after a pause.
void node_connection::owe(owed what) {
  if (core::planted(core::planted_bug::owed_release)) return;
  const lock held{m_};
  if (closed_ || what.give_up <= runtime::now()) return core::note_dropped(what.what.sent({}));
  if (owed_.size() >= owed_max) {
    core::note_dropped(owed_.front().what.sent({}));
    owed_.pop_front();
  }
  owed_.push_back(std::move(what));
  if (on_) repetitions_.plan(*this);
}

bool node_connection::repeat_owed() {
  std::shared_ptr<opened> on;
  std::deque<owed> now;
  {
    const lock held{m_};
    if (!on_) return false;  // open() sees to it
    on = on_;
    now.swap(owed_);
  }
  send_owed(on, now);
  if (tell_.unread) tell_.unread();
  return false;
}

void node_connection::send_owed(const std::shared_ptr<opened>& on, const std::deque<owed>& all) {
  const auto now = runtime::now();
  for (const auto& one : all) {
    if (one.give_up <= now) {
      core::note_dropped(one.what.sent({}));
      continue;
    }
    auto done = owing(one.what, one.give_up, nullptr);
    if (!post(on, one.what, done)) owe(one);
  }
}

// False, and `done` will not be called, if it could not be sent.
bool node_connection::post(const std::shared_ptr<opened>& on, const request& what,
                           const on_reply& done) {
  // Copied: a channel that breaks under a post drops what it was given.
  const auto position = on->to.post(
      what.sent(on->run_id),
      [self = shared_from_this(), on = std::weak_ptr{on}, what, done](result<redis::reply> answer) {
        self->on_answer(on.lock(), what, done, std::move(answer));
      });
  return position != 0;
}

void node_connection::on_answer(const std::shared_ptr<opened>& on, const request& what,
                                const on_reply& done, result<redis::reply> answer) {
  if (!answer) {
    lost(on);
    if (done) done(std::move(answer));
    return;
  }
  silent_ = false;
  if ((*answer)->type == redis::reply_kind::error) {
    const auto said = redis::text_of(**answer);
    // In order: what was sent behind it comes back the same way, and behind it again.
    const bool goes_again = redis::is_noscript(said) && what.may_be_unknown() && on;
    if (goes_again && post(on, what.as_source(), done)) return;
    if (done) done(fail(redis::translate_error(said, node())));
    return;
  }
  if (done) done(std::move(answer));
}

// Once for each connection: the first to notice has it made anew.
void node_connection::lost(const std::shared_ptr<opened>& which) {
  lock held{m_};
  if (!which || on_ != which || closed_) return;
  on_.reset();
  start_connecting(held, core::duration::zero());
}

// Under m_.
void node_connection::start_connecting(lock& held, core::duration wait) {
  static_cast<void>(held);
  if (under_way_ || closed_) return;
  under_way_ = begin_in_background_at(*connecting_, core::after(runtime::now(), wait),
                                      [weak = weak_from_this()](caller& by) {
                                        if (const auto self = weak.lock()) self->connect(by);
                                      });
}

void node_connection::connect(caller& by) {
  const auto until = core::after(runtime::now(), connect_patience);
  dialer_->dial(until, [weak = weak_from_this(), until, &by](auto over) {
    const auto self = weak.lock();
    if (!self) return;
    if (!over) return self->went_down(std::move(over.error()));
    self->greet(std::move(*over), until, by);
  });
}

void node_connection::greet(std::unique_ptr<runtime::stream> over, core::time_point until,
                            caller& by) {
  const auto fresh = std::make_shared<opened>(std::move(over), node(), reply_patience_);
  fresh->to.read_when_told(std::shared_ptr<redis::channel>{fresh, &fresh->to});
  {
    const lock held{m_};
    if (closed_) return;
    greeted_ = fresh;
  }
  redis::command info{1};
  fresh->to.call(info.arg("INFO").bytes(), until, false, by,
                 [weak = weak_from_this(), fresh](auto answer) {
                   if (const auto self = weak.lock()) self->on_greeted(fresh, std::move(answer));
                 });
}

void node_connection::on_greeted(const std::shared_ptr<opened>& fresh, result<redis::reply> info) {
  if (!info) return went_down(std::move(info.error()));
  const auto said = redis::text_of(**info);
  if ((*info)->type == redis::reply_kind::error) {
    return went_down(redis::translate_error(said, node()));
  }
  auto run_id = tell_.identify(said);
  if (!run_id) return went_down(std::move(run_id.error()));
  fresh->run_id = std::move(*run_id);
  open(fresh);
}

void node_connection::open(const std::shared_ptr<opened>& fresh) {
  if (tell_.first) {
    for (const auto& one : tell_.first())
      static_cast<void>(post(fresh, one.what, one.done));
  }
  lock held{m_};
  for (;;) {
    if (closed_) return;
    // What is owed would be sent, and owed again, for ever.
    if (fresh->to.broken()) {
      held.unlock();
      return went_down({errc::store_unreachable, "the connection was lost again", {}});
    }
    if (queue_.empty() && owed_.empty()) break;
    const auto waiting = std::exchange(queue_, {});
    const auto owed_now = std::exchange(owed_, {});
    held.unlock();
    // What was given back goes before what is asked for.
    send_owed(fresh, owed_now);
    for (const auto& one : waiting) {
      const bool too_late = one.wanted && !one.wanted();
      if (!too_late && post(fresh, one.what, one.done)) continue;
      if (one.done) one.done(fail(errc::store_unreachable, "the connection was lost again"));
    }
    held.lock();
  }
  pace_.reset();
  greeted_.reset();
  under_way_ = false;
  down_ = false;
  silent_ = false;
  on_ = fresh;
  wake_all(held);
  held.unlock();
  if (tell_.opened) tell_.opened();
  if (tell_.unread) tell_.unread();
}

void node_connection::went_down(failure why) {
  if (why.code == errc::outcome_unknown) why.code = errc::store_unreachable;
  std::deque<outgoing> waiting;
  {
    lock held{m_};
    if (closed_) return;
    greeted_.reset();
    under_way_ = false;
    down_ = true;
    last_failure_ = why;
    waiting.swap(queue_);
    wake_all(held);
    start_connecting(held, pace_.next());
  }
  for (auto& one : waiting) {
    if (one.done) one.done(fail(why));
  }
}

bool node_connection::sweep() {
  std::shared_ptr<opened> on;
  {
    const lock held{m_};
    on = on_;
  }
  if (!on) return false;
  if (!on->to.idle()) on->to.sweep();
  if (on->to.broken()) lost(on);
  return !on->to.idle();
}

}  // namespace holdfast::stores::redlock
