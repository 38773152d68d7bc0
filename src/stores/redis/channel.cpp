#include "stores/redis/channel.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>

#include "runtime/clock.hpp"
#include "runtime/socket.hpp"

namespace holdfast::stores::redis {

namespace {

constexpr std::size_t read_chunk_bytes = 16 * 1024;
// Commands that somebody waits for, on their way to the server: from here on others gather.
constexpr std::size_t gather_from = 8;
// The shortest reply there is, ":1\r\n".
constexpr std::size_t reply_bytes_min = 4;

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
  if (entry.caller != nullptr) {
    entry.caller->ends_at = stream_end_;
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
  const int why = got.bytes > 0 ? EPROTO : got.error;
  break_locked(held, runtime::describe_io_error(why), errc::store_unreachable);
}

// Sends what there is. Those who come meanwhile add to out_ and go: we send theirs too.
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
      break_locked(held, runtime::describe_io_error(sent.error), errc::outcome_unknown);
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

result<reply> channel::call(std::string_view command, core::time_point until, bool alone,
                            std::uint64_t* position) {
  waiting_call mine;
  lock held{m_};
  if (broken_) return fail(errc::store_unreachable, "the connection to " + node_ + " is broken");
  notice_closing(held);
  if (broken_) return fail(errc::store_unreachable, "the connection to " + node_ + " was closed");
  if (!enqueue(command, {&mine, nullptr, 0, core::never})) {
    return fail(errc::overloaded, "too many requests are under way to " + node_);
  }
  if (position != nullptr) *position = sent_.load();
  send_or_leave(held);
  wait_for(held, mine, until, alone);
  if (!mine.done) {
    return fail({errc::outcome_unknown,
                 "no reply from " + node_ + " in time",
                 {{node_, "no reply in time"}}});
  }
  return outcome_of(mine);
}

// Until it is done, leading if nobody else does. Unlocks.
void channel::wait_for(lock& held, waiting_call& mine, core::time_point until, bool alone) {
  while (!mine.done) {
    if (!someone_leads_ || mine.leads) {
      someone_leads_ = true;
      mine.leads = true;
      lead(held, mine, until, alone);
      break;
    }
    held.unlock();
    mine.sleeper->park(until);
    if (mine.done && !mine.leads) return;
    held.lock();
    if (!mine.leads && runtime::now() >= until) break;
  }
  if (!mine.done) {
    // The reply will come, or not, and must not be taken for that of another command.
    for (auto& entry : in_flight_) {
      if (entry.caller == &mine) {
        entry.caller = nullptr;
        --awaited_;
      }
    }
    suspect_ = true;
  }
  if (mine.leads) pass_lead(held);
}

void channel::read_when_told(std::weak_ptr<channel> self) {
  const bool told = stream_->tells([self = std::move(self)] {
    if (const auto alive = self.lock()) alive->sweep();
  });
  static_cast<void>(told);  // otherwise whoever waits polls
}

void channel::await(std::uint64_t position, core::time_point until) {
  waiting_call mine;
  lock held{m_};
  if (broken_ || answered(position) || stream_->fd() < 0) return;
  auto& entry = in_flight_[position - read_.load() - 1];
  if (entry.caller != nullptr) return;
  entry.caller = &mine;
  ++awaited_;
  wait_for(held, mine, until, false);
}

result<reply> channel::outcome_of(waiting_call& mine) {
  if (mine.failed) return fail(std::move(mine.why));
  return std::move(mine.answer);
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

// Somebody has to read for those who still wait. Unlocks.
void channel::pass_lead(lock& held) {
  someone_leads_ = false;
  std::shared_ptr<runtime::parker> next;
  for (auto& entry : in_flight_) {
    if (entry.caller == nullptr) continue;
    someone_leads_ = true;
    entry.caller->leads = true;
    next = entry.caller->sleeper;
    break;
  }
  if (!next) send_pending(held);  // nobody comes to do it
  held.unlock();
  if (next) next->unpark();
}

void channel::lead(lock& held, waiting_call& mine, core::time_point until, bool alone) {
  while (!mine.done && !broken_) {
    send_pending(held);
    if (broken_ || mine.done) return;
    if (read_replies(held, until, true, alone) == read_result::nothing) return;  // timed out
    if (!mine.done && runtime::now() >= until) return;
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
                                          [](const auto& one) { return one.caller != nullptr; });
  const auto posted = static_cast<std::size_t>(first_awaited - in_flight_.begin());
  held.unlock();
  std::array<char, read_chunk_bytes> chunk;
  const bool polls =
      may_wait && alone && spin_ > core::duration::zero() && all_sent && polling_.worth_it();
  // Whoever may wait most often has to: looking first would be a system call for nothing.
  auto read = polls      ? poll_briefly(chunk.data(), chunk.size())
              : may_wait ? runtime::io_outcome{0, true, 0}
                         : stream_->receive_some(chunk.data(), chunk.size());
  while (read.would_block) {
    const short events = blocked ? POLLIN | POLLOUT : POLLIN;
    if (may_wait) sleep_through(all_sent ? posted : 0);
    if (!may_wait ||
        runtime::wait_ready(stream_->fd(), events, until) != runtime::readiness::ready) {
      held.lock();
      return read_result::nothing;
    }
    read = stream_->receive_some(chunk.data(), chunk.size());
    if (blocked) break;  // perhaps the socket takes more now; the caller sends and comes back
  }
  const auto got = read.bytes;
  const int error = read.error;

  std::deque<reply> replies;
  std::string_view garbled;
  if (got > 0) {
    // Only the leader touches the reader.
    reader_.feed({chunk.data(), got});
    while (auto one = reader_.next()) {
      // No answer to anything: taking it for one would shift all that follow.
      if (one->type != reply_kind::push) replies.push_back(std::move(one));
    }
    garbled = reader_.trouble();
  }
  held.lock();
  deliver(held, replies);
  if (!garbled.empty()) {
    break_locked(held, std::string{garbled}, errc::incompatible);
    return read_result::failed;
  }
  if (error != 0) {
    break_locked(held, runtime::describe_io_error(error), errc::outcome_unknown);
    return read_result::failed;
  }
  return read_result::progress;
}

void channel::deliver(lock& held, std::deque<reply>& replies) {
  std::vector<completion> posted;
  std::vector<std::shared_ptr<runtime::parker>> woken;
  for (auto& one : replies) {
    if (in_flight_.empty()) break;  // a server that talks unasked; nothing to match it with
    auto entry = std::move(in_flight_.front());
    in_flight_.pop_front();
    read_.fetch_add(1);
    if (entry.caller != nullptr) {
      --awaited_;
      if (entry.caller->sleeper != runtime::parker::of_this_thread()) {
        woken.push_back(entry.caller->sleeper);
      }
      if (!entry.done) entry.caller->answer = std::move(one);
      entry.caller->done = true;
    }
    if (entry.done) posted.push_back({std::move(entry.done), std::move(one)});
  }
  if (posted.empty() && woken.empty()) return;
  held.unlock();
  for (const auto& one : woken)
    one->unpark();
  for (auto& one : posted)
    one.done(std::move(one.answer));
  held.lock();
}

void channel::break_locked(lock& held, const std::string& why, errc sent_code) {
  if (broken_.exchange(true)) return;
  std::deque<in_flight> dropped;
  dropped.swap(in_flight_);
  awaited_ = awaited_unsent_ = 0;
  read_.store(sent_.load());
  std::vector<std::pair<on_reply, failure>> posted;
  std::vector<std::shared_ptr<runtime::parker>> woken;
  for (auto& entry : dropped) {
    // What the kernel never got was never run; a command cut short is not run either.
    // What somebody is just sending may have arrived.
    const auto perhaps_sent = stream_flushed_ + (someone_sends_ ? sending_.size() : 0);
    const bool may_have_run = entry.ends_at <= perhaps_sent;
    failure what{may_have_run ? sent_code : errc::store_unreachable,
                 "connection to " + node_ + " lost: " + why,
                 {{node_, why}}};
    if (entry.caller != nullptr) {
      woken.push_back(entry.caller->sleeper);
      entry.caller->why = what;
      entry.caller->failed = true;
      entry.caller->done = true;
    }
    if (entry.done) posted.emplace_back(std::move(entry.done), std::move(what));
  }
  out_.clear();
  if (posted.empty() && woken.empty()) return;
  held.unlock();
  for (const auto& one : woken)
    one->unpark();
  for (auto& [done, what] : posted)
    done(fail(std::move(what)));
  held.lock();
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
