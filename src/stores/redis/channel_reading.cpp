// Who reads the replies of a channel, and how a thread waits for them.
#include <poll.h>

#include <algorithm>
#include <array>
#include <utility>

#include "runtime/clock.hpp"
#include "runtime/socket.hpp"
#include "stores/redis/pending_call.hpp"

namespace holdfast::stores::redis {

namespace {

constexpr std::size_t read_chunk_bytes = 16 * 1024;
// The shortest reply there is, ":1\r\n".
constexpr std::size_t reply_bytes_min = 4;

}  // namespace

void channel::pending_call::wait() {
  if (!over) {
    lock held{on_.m_};
    on_.wait_for(held, *this);
  }
  if (!over) outcome = fail(no_reply());
  tell();
}

void channel::pending_call::tell() {
  const auto say = std::move(done);
  say(std::move(outcome));
}

void channel::pending_call::watch(timers& by) {
  {
    const lock held{on_.m_};
    if (!over) watched_by = &by;
  }
  if (watched_by == nullptr) return tell();
  by.at(until, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->give_up();
  });
}

// By events: no reply came in time.
void channel::pending_call::give_up() {
  if (over) return;  // the channel may be gone
  // A reply that has come and was not read, because what runs the events was busy or stopped, is no
  // silence.
  on_.sweep();
  {
    const lock held{on_.m_};
    if (over) return;
    on_.give_up(*this);
  }
  outcome = fail(no_reply());
  tell();
}

failure channel::pending_call::no_reply() const {
  return {errc::outcome_unknown,
          "no reply from " + on_.node_ + " in time",
          {{on_.node_, "no reply in time"}}};
}

// Under m_. The reply will come, or not, and must not be taken for that of another command.
void channel::give_up(const pending_call& mine) {
  for (auto& entry : in_flight_) {
    if (entry.call.get() != &mine) continue;
    entry.call = nullptr;
    --awaited_;
    break;
  }
  suspect_ = true;
}

// Until it is over, leading if no other thread does. Unlocks.
void channel::wait_for(lock& held, pending_call& mine) {
  mine.waits = true;
  while (!mine.over) {
    if (!someone_leads_ || mine.leads) {
      someone_leads_ = true;
      mine.leads = true;
      lead(held, mine);
      break;
    }
    held.unlock();
    mine.sleeper->park(mine.until);
    if (mine.over && !mine.leads) return;
    held.lock();
    if (!mine.leads && runtime::now() >= mine.until) break;
  }
  if (!mine.over) give_up(mine);
  if (mine.leads) pass_lead(held);
}

void channel::sweep() {
  lock held{m_};
  if (broken_ || someone_leads_) return;
  someone_leads_ = true;
  send_pending(held);
  while (!broken_ && !in_flight_.empty() &&
         read_replies(held, core::time_point{}, false, false) == read_result::progress) {
  }
  const auto now = runtime::now();
  for (const auto& entry : in_flight_) {
    if (entry.posted_at == core::never) continue;
    if (now - entry.posted_at > posted_patience_) {
      suspect_ = true;
      break_locked(held, "no reply came in time", errc::outcome_unknown);
    }
    break;  // the oldest of them
  }
  pass_lead(held);
}

// Another thread has to read for the calls that are left. Unlocks.
void channel::pass_lead(lock& held) {
  someone_leads_ = false;
  std::shared_ptr<runtime::parker> next;
  for (auto& entry : in_flight_) {
    // A thread with several calls may be at another one, perhaps on another connection.
    if (!entry.call || !entry.call->waits) continue;
    someone_leads_ = true;
    entry.call->leads = true;
    next = entry.call->sleeper;
    break;
  }
  if (!next) send_pending(held);  // no thread comes to do it
  held.unlock();
  if (next) next->unpark();
}

changed_keys channel::take_changes() {
  lock held{m_};
  if (in_flight_.empty() && !someone_leads_ && !broken_) read_unasked(held);
  return std::exchange(changes_, {});
}

// Under m_, while nothing is under way: what comes then is a push, or nothing that can be matched.
void channel::read_unasked(lock& held) {
  std::array<char, read_chunk_bytes> chunk;
  for (;;) {
    const auto got = stream_->receive_some(chunk.data(), chunk.size());
    if (got.error != 0) {
      return break_locked(held, runtime::describe_end(*stream_, got.error),
                          errc::store_unreachable);
    }
    if (got.bytes == 0) return;
    reader_.feed({chunk.data(), got.bytes});
    bool is_push = true;
    while (const auto one = reader_.next()) {
      is_push = is_push && one->type == reply_kind::push;
      changes_.take(*one);
    }
    if (is_push && reader_.trouble().empty()) continue;
    return break_locked(held, "it answered what nobody had asked", errc::store_unreachable);
  }
}

void channel::lead(lock& held, pending_call& mine) {
  while (!mine.over && !broken_) {
    send_pending(held);
    if (broken_ || mine.over) return;
    const auto got = read_replies(held, mine.until, true, mine.alone);
    if (got == read_result::nothing) return;  // timed out
    if (!mine.over && runtime::now() >= mine.until) return;
  }
}

runtime::io_outcome channel::poll_briefly(char* into, std::size_t room) {
  const auto start = runtime::now();
  for (;;) {
    const auto read = stream_->receive_some(into, room);
    const bool over = !read.would_block || runtime::now() - start >= spin_;
    if (!over) continue;
    polling_.on_polled(!read.would_block);
    return read;
  }
}

// Replies that nobody waits for come first: to be woken by each of them would cost a sleep and a
// wake-up more. Never asks for more bytes than are sure to come.
void channel::sleep_through(std::size_t posted) {
  const int bytes = reader_.between_replies()
                        ? static_cast<int>((std::min(posted, in_flight_max) + 1) * reply_bytes_min)
                        : 1;
  if (bytes == bytes_that_wake_) return;
  if (stream_->wake_at(bytes)) bytes_that_wake_ = bytes;
}

channel::read_result channel::read_replies(lock& held, core::time_point until, bool may_wait,
                                           bool alone) {
  const bool all_sent = sending_.empty() && out_.empty();
  const bool blocked = !all_sent && !someone_sends_;
  const auto first_awaited = std::find_if(in_flight_.begin(), in_flight_.end(),
                                          [](const auto& one) { return one.call != nullptr; });
  const auto posted = static_cast<std::size_t>(first_awaited - in_flight_.begin());
  held.unlock();
  std::array<char, read_chunk_bytes> chunk;
  const bool polls =
      may_wait && alone && spin_ > core::duration::zero() && all_sent && polling_.worth_it();
  // A call that may wait most often has to: looking first would be a system call for nothing.
  auto read = polls      ? poll_briefly(chunk.data(), chunk.size())
              : may_wait ? runtime::io_outcome{0, true, 0}
                         : stream_->receive_some(chunk.data(), chunk.size());
  while (read.would_block) {
    const short events = blocked ? POLLIN | POLLOUT : POLLIN;
    if (may_wait) sleep_through(all_sent ? posted : 0);
    const auto ready = [&] {
      return stream_->has_buffered() ||
             runtime::wait_ready(stream_->fd(), events, until) == runtime::readiness::ready;
    };
    if (!may_wait || !ready()) {
      held.lock();
      return read_result::nothing;
    }
    read = stream_->receive_some(chunk.data(), chunk.size());
    if (blocked) break;  // perhaps the socket takes more now; the caller sends and comes back
  }
  const auto got = read.bytes;
  const int error = read.error;

  std::vector<reply> replies;
  changed_keys changes;
  std::string_view garbled;
  if (got > 0) {
    // Only the leader touches the reader.
    reader_.feed({chunk.data(), got});
    while (auto one = reader_.next()) {
      // No answer to anything: taking it for one would shift all that follow.
      if (one->type != reply_kind::push) {
        replies.push_back(std::move(one));
      } else if (keeps_changes_) {
        changes.take(*one);
      }
    }
    garbled = reader_.trouble();
  }
  held.lock();
  changes_.take(std::move(changes));
  deliver(held, replies);
  if (!garbled.empty()) {
    break_locked(held, std::string{garbled}, errc::incompatible);
    return read_result::failed;
  }
  if (error != 0) {
    break_locked(held, runtime::describe_end(*stream_, error), errc::outcome_unknown);
    return read_result::failed;
  }
  return read_result::progress;
}

}  // namespace holdfast::stores::redis
