#include "stores/redis/channel.hpp"

#include <cerrno>
#include <thread>

#include "runtime/clock.hpp"
#include "runtime/socket.hpp"
#include "stores/redis/pending_call.hpp"

namespace holdfast::stores::redis {

namespace {

// Commands that callers wait for, on their way to the server: from here on others gather.
constexpr std::size_t gather_from = 8;

bool has_spare_core() {
  static const bool spare = std::thread::hardware_concurrency() > 1;
  return spare;
}

}  // namespace

channel::channel(std::unique_ptr<runtime::stream> over, std::string node, core::duration spin,
                 core::duration posted_patience)
    : stream_{std::move(over)},
      node_{std::move(node)},
      spin_{has_spare_core() ? spin : core::duration::zero()},
      posted_patience_{posted_patience} {}

channel::~channel() { break_off("the client is closed"); }

bool channel::enqueue(std::string_view command, in_flight entry) {
  if (in_flight_.size() >= in_flight_max) return false;
  out_ += command;
  stream_end_ += command.size();
  entry.ends_at = stream_end_;
  if (entry.call) {
    ++awaited_;
    ++awaited_unsent_;
  }
  in_flight_.push_back(std::move(entry));
  sent_.fetch_add(1);
  return true;
}

// Under m_, before something is sent on a connection that was idle.
void channel::notice_closing(lock& held) {
  const auto now = runtime::now();
  const bool fresh = now - last_used_ <= trusted_idle_max;
  last_used_ = now;
  if (fresh || !in_flight_.empty() || someone_leads_ || broken_) return;
  // Nothing to read is what should be; an end or an error means that it is over, and bytes that
  // nobody asked for cannot be matched with anything.
  const auto got = stream_->peek();
  if (got.would_block) return;
  if (got.bytes > 0 && keeps_changes_) return read_unasked(held);
  const int why = got.bytes > 0 ? EPROTO : got.error;
  break_locked(held, runtime::describe_end(*stream_, why), errc::store_unreachable);
}

// Sends what there is. Callers that come meanwhile add to out_ and go on: this sends theirs too.
void channel::send_pending(lock& held) {
  if (someone_sends_ || (sending_.empty() && out_.empty())) return;
  someone_sends_ = true;
  while ((!sending_.empty() || !out_.empty()) && !broken_) {
    if (sending_.empty()) {
      sending_.swap(out_);
      awaited_unsent_ = 0;
    }
    held.unlock();
    const auto sent = stream_->send_some(sending_);
    held.lock();
    stream_flushed_ += sent.bytes;
    sending_.erase(0, sent.bytes);
    if (sent.error != 0) {
      someone_sends_ = false;
      break_locked(held, runtime::describe_end(*stream_, sent.error), errc::outcome_unknown);
      break;
    }
    if (sent.would_block) break;  // the rest goes when the socket takes more
  }
  someone_sends_ = false;
}

// With enough commands on their way, the leader is about to be woken by a reply and sends what has
// gathered by then: one system call for many commands. The server is not kept waiting, it has
// those to work on, and would not have come to this one before.
void channel::send_or_leave(lock& held) {
  const bool leader_comes = someone_leads_ && awaited_ >= gather_from + awaited_unsent_;
  if (!leader_comes) send_pending(held);
}

void channel::call(std::string_view command, core::time_point until, bool alone, caller& by,
                   on_reply done, std::uint64_t* position, std::string_view before) {
  const auto mine = std::make_shared<pending_call>(*this, until, alone, std::move(done));
  failure why;
  {
    lock held{m_};
    const bool was_broken = broken_;
    if (!was_broken) notice_closing(held);
    if (broken_) {
      why = {errc::store_unreachable,
             "the connection to " + node_ + (was_broken ? " is broken" : " was closed"),
             {}};
    } else if ((!before.empty() && !enqueue(before, {nullptr, nullptr, 0, runtime::now()})) ||
               !enqueue(command, {mine, nullptr, 0, core::never})) {
      why = {errc::overloaded, "too many requests are under way to " + node_, {}};
    } else {
      if (position != nullptr) *position = sent_.load();
      send_or_leave(held);
    }
  }
  if (!why.message.empty()) return mine->done(fail(std::move(why)));
  by.wait_for(mine);
}

result<reply> channel::call(std::string_view command, core::time_point until, bool alone) {
  return wait_here<result<reply>>(
      [&](auto& by, auto done) { call(command, until, alone, by, std::move(done)); });
}

void channel::await(std::uint64_t position, core::time_point until, caller& by,
                    const std::function<void()>& done) {
  std::shared_ptr<pending_call> mine;
  {
    const lock held{m_};
    auto* entry =
        broken_ || answered(position) ? nullptr : &in_flight_[position - read_.load() - 1];
    if (entry != nullptr && !entry->call) {
      mine = std::make_shared<pending_call>(*this, until, false,
                                            [done](const result<reply>&) { done(); });
      entry->call = mine;
      ++awaited_;
    }
  }
  if (!mine) return done();
  by.wait_for(mine);
}

void channel::read_when_told(std::weak_ptr<channel> self) {
  const bool told = stream_->tells([self = std::move(self)] {
    if (const auto alive = self.lock()) alive->sweep();
  });
  static_cast<void>(told);  // otherwise the threads that wait poll
}

std::uint64_t channel::post(std::string_view command, on_reply done, std::string_view before) {
  lock held{m_};
  notice_closing(held);
  if (broken_) return 0;
  const auto now = runtime::now();
  if (!before.empty() && !enqueue(before, {nullptr, nullptr, 0, now})) return 0;
  if (!enqueue(command, {nullptr, std::move(done), 0, now})) return 0;
  const auto position = sent_.load();
  send_or_leave(held);
  return position;
}

// The reply to a posted command is its owner's, also if a caller awaits it.
void channel::answer(in_flight& entry, result<reply> with, announcements& say) {
  auto call = std::move(entry.call);
  if (entry.done) {
    say.told.emplace_back(std::move(entry.done), std::move(with));
    with = reply{};
  }
  if (!call) return;
  const bool is_parked = !call->watched_by && call->sleeper != runtime::parker::of_this_thread();
  if (is_parked) say.woken.push_back(call->sleeper);
  call->outcome = std::move(with);
  call->over = true;
  if (call->watched_by) call->watched_by->at(runtime::now(), [call] { call->tell(); });
}

void channel::announce(lock& held, announcements& all) {
  if (all.told.empty() && all.woken.empty()) return;
  held.unlock();
  for (const auto& one : all.woken)
    one->unpark();
  for (auto& [done, what] : all.told)
    done(std::move(what));
  held.lock();
}

void channel::deliver(lock& held, std::vector<reply>& replies) {
  announcements all;
  for (auto& one : replies) {
    if (in_flight_.empty()) break;  // a server that talks unasked; nothing to match it with
    auto entry = std::move(in_flight_.front());
    in_flight_.pop_front();
    read_.fetch_add(1);
    if (entry.call) --awaited_;
    answer(entry, std::move(one), all);
  }
  announce(held, all);
}

void channel::break_locked(lock& held, const std::string& why, errc sent_code) {
  if (broken_.exchange(true)) return;
  std::deque<in_flight> dropped;
  dropped.swap(in_flight_);
  awaited_ = awaited_unsent_ = 0;
  read_.store(sent_.load());
  announcements all;
  for (auto& entry : dropped) {
    // What the kernel never got was never run; a command cut short is not run either.
    // What another thread is just sending may have arrived.
    const auto perhaps_sent = stream_flushed_ + (someone_sends_ ? sending_.size() : 0);
    const bool may_have_run = entry.ends_at <= perhaps_sent;
    answer(entry,
           fail({may_have_run ? sent_code : errc::store_unreachable,
                 "connection to " + node_ + " lost: " + why,
                 {{node_, why}}}),
           all);
  }
  out_.clear();
  announce(held, all);
}

std::unique_ptr<runtime::stream> channel::take() {
  const lock held{m_};
  broken_ = true;
  static_cast<void>(stream_->wake_at(1));
  return std::move(stream_);
}

void channel::break_off(const std::string& why) {
  lock held{m_};
  if (!stream_) return;
  break_locked(held, why, errc::outcome_unknown);
  // Wakes a leader that sleeps on the socket.
  stream_->shut_down();
}

}  // namespace holdfast::stores::redis
