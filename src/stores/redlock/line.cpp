#include "stores/redlock/line.hpp"

#include <algorithm>
#include <utility>

#include "core/backoff.hpp"
#include "core/passing.hpp"
#include "runtime/clock.hpp"
#include "runtime/random.hpp"
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

std::string request::sent(std::string_view run_id) const {
  if (!script_) return bytes_;
  return how_ == form::by_hash ? script_->by_hash() + redis::as_argument(run_id)
                               : as_source(run_id);
}

std::string request::as_source(std::string_view run_id) const {
  return script_->by_source() + redis::as_argument(run_id);
}

bool was_cut_off(const result<redis::reply>& answer) {
  return !answer && (answer.error().code == errc::store_unreachable ||
                     answer.error().code == errc::outcome_unknown);
}

line::line(const redis::endpoint& where, core::duration reply_patience,
           std::shared_ptr<runtime::background> connecting, hooks tell)
    : dialer_{where, {1, core::duration::zero()}, {}},
      reply_patience_{reply_patience},
      connecting_{std::move(connecting)},
      tell_{std::move(tell)},
      pace_{connect_pace, runtime::random_bits()} {}

line::~line() { close(); }

void line::close() {
  std::shared_ptr<opened> open;
  std::deque<queued> dropped;
  {
    lock held{m_};
    closed_ = true;
    down_ = true;
    open.swap(on_);
    dropped.swap(queue_);
    owed_.clear();
    wake_all(held);
  }
  if (open) open->to.break_off("the client is closed");
  for (auto& one : dropped) {
    if (one.done) one.done(fail(errc::stopped, "the client is closed"));
  }
}

bool line::connecting() const {
  const lock held{m_};
  return !on_ && !down_;
}

std::shared_ptr<redis::channel> line::current(const std::shared_ptr<runtime::wake_fd>& tell) {
  const lock held{m_};
  const bool waits = tell && !on_ && !closed_ && !down_;
  if (waits && std::find(wake_on_open_.begin(), wake_on_open_.end(), tell) == wake_on_open_.end()) {
    wake_on_open_.push_back(tell);
  }
  return on_ ? std::shared_ptr<redis::channel>{on_, &on_->to} : nullptr;
}

// Under m_.
void line::wake_all(lock& held) {
  static_cast<void>(held);
  for (const auto& one : wake_on_open_)
    one->wake();
  wake_on_open_.clear();
}

void line::send(const request& what, on_reply done) {
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
    queue_.push_back({what, std::move(done)});
    start_connecting(held, core::duration::zero());
    return;
  }
}

void line::send_for_sure(const request& what, core::time_point give_up, on_reply done) {
  send(what, owing(what, give_up, std::move(done)));
}

line::on_reply line::owing(const request& what, core::time_point give_up, on_reply done) {
  return [self = weak_from_this(), what, give_up,
          done = std::move(done)](result<redis::reply> answer) {
    const auto us = self.lock();
    if (us && is_worth_repeating(answer)) us->owe({what, give_up});
    if (done) done(std::move(answer));
  };
}

// Said again when the connection is made anew, or, if it is open, after a pause.
void line::owe(owed what) {
  const auto now = runtime::now();
  const lock held{m_};
  if (closed_ || what.give_up <= now) return;
  if (owed_.size() >= owed_max) owed_.pop_front();
  owed_.push_back(std::move(what));
  if (!on_ || repeat_planned_) return;
  repeat_planned_ = connecting_->run_at(core::after(now, repeat_pause), [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->repeat_owed();
  });
}

void line::repeat_owed() {
  std::shared_ptr<opened> on;
  std::deque<owed> now;
  {
    const lock held{m_};
    repeat_planned_ = false;
    if (!on_) return;  // open() sees to it
    on = on_;
    now.swap(owed_);
  }
  send_owed(on, now);
  if (tell_.unread) tell_.unread();
}

void line::send_owed(const std::shared_ptr<opened>& on, const std::deque<owed>& all) {
  const auto now = runtime::now();
  for (const auto& one : all) {
    auto done = owing(one.what, one.give_up, nullptr);
    if (one.give_up > now && !post(on, one.what, done)) owe(one);
  }
}

// False, and `done` is as it was, if it could not be sent.
bool line::post(const std::shared_ptr<opened>& on, const request& what, on_reply& done) {
  // Copied: a channel that breaks under a post drops what it was given.
  const auto position = on->to.post(
      what.sent(on->run_id),
      [self = shared_from_this(), on = std::weak_ptr{on}, what, done](result<redis::reply> answer) {
        self->on_answer(on.lock(), what, done, std::move(answer));
      });
  return position != 0;
}

void line::on_answer(const std::shared_ptr<opened>& on, const request& what, const on_reply& done,
                     result<redis::reply> answer) {
  if (!answer) {
    lost(on);
    if (done) done(std::move(answer));
    return;
  }
  silent_ = false;
  if ((*answer)->type == redis::reply_kind::error) {
    const auto said = redis::text_of(**answer);
    if (redis::is_noscript(said) && what.is_script() && on) {
      // In order: what was sent behind it comes back the same way, and behind it again.
      const auto sent = on->to.post(what.as_source(on->run_id),
                                    [self = shared_from_this(), done, on = std::weak_ptr{on},
                                     what](result<redis::reply> second) {
                                      self->on_answer(on.lock(), what, done, std::move(second));
                                    });
      if (sent != 0) return;
    }
    if (done) done(fail(redis::translate_error(said, node())));
    return;
  }
  if (done) done(std::move(answer));
}

// Once for each connection: the first to notice has it made anew.
void line::lost(const std::shared_ptr<opened>& which) {
  lock held{m_};
  if (!which || on_ != which || closed_) return;
  on_.reset();
  start_connecting(held, core::duration::zero());
}

// Under m_.
void line::start_connecting(lock& held, core::duration wait) {
  static_cast<void>(held);
  if (under_way_ || closed_) return;
  under_way_ = true;
  auto task = [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->connect();
  };
  const bool planned = wait > core::duration::zero()
                           ? connecting_->run_at(core::after(runtime::now(), wait), std::move(task))
                           : connecting_->run(std::move(task));
  if (!planned) under_way_ = false;
}

void line::connect() {
  const auto until = core::after(runtime::now(), connect_patience);
  auto fd = dialer_.open_apart(until);
  if (!fd) return went_down(std::move(fd.error()));
  auto fresh = std::make_shared<opened>(std::move(*fd), node(), reply_patience_);
  auto run_id = tell_.prepare(fresh->to, until);
  if (!run_id) return went_down(std::move(run_id.error()));
  fresh->run_id = std::move(*run_id);
  open(fresh);
}

void line::open(const std::shared_ptr<opened>& fresh) {
  lock held{m_};
  pace_.reset();
  for (;;) {
    if (closed_) return;
    if (queue_.empty() && owed_.empty()) break;
    std::deque<queued> waiting;
    std::deque<owed> owed_now;
    waiting.swap(queue_);
    owed_now.swap(owed_);
    held.unlock();
    // What was given back goes before what is asked for.
    send_owed(fresh, owed_now);
    for (auto& one : waiting) {
      if (post(fresh, one.what, one.done)) continue;
      if (one.done) one.done(fail(errc::store_unreachable, "the connection was lost again"));
    }
    held.lock();
  }
  under_way_ = false;
  down_ = false;
  silent_ = false;
  on_ = fresh;
  wake_all(held);
  held.unlock();
  if (tell_.opened) tell_.opened();
  if (tell_.unread) tell_.unread();
}

void line::went_down(failure why) {
  if (why.code == errc::outcome_unknown) why.code = errc::store_unreachable;
  std::deque<queued> waiting;
  {
    lock held{m_};
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

bool line::sweep() {
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
