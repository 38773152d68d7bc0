#include "support/event_loop.hpp"

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/clock.hpp"

namespace holdfast::test {

class event_loop::telling_stream final : public runtime::stream {
 public:
  telling_stream(event_loop& loop, std::unique_ptr<runtime::stream> over)
      : loop_{loop}, over_{std::move(over)} {}
  ~telling_stream() override { forget(); }

  runtime::io_outcome send_some(std::string_view bytes) noexcept override {
    return over_->send_some(bytes);
  }
  runtime::io_outcome receive_some(char* into, std::size_t room) noexcept override {
    const auto got = over_->receive_some(into, room);
    if (got.error != 0) forget();  // or it would be readable for ever
    return got;
  }
  runtime::io_outcome peek() noexcept override { return over_->peek(); }
  int fd() const noexcept override { return -1; }
  bool wake_at(int) noexcept override { return false; }
  bool tells(std::function<void()> readable) override {
    {
      const std::lock_guard guard{loop_.m_};
      loop_.streams_[this] = {over_.get(), std::move(readable)};
    }
    loop_.wake_.wake();
    return true;
  }
  void shut_down() noexcept override { over_->shut_down(); }

 private:
  void forget() noexcept {
    const std::lock_guard guard{loop_.m_};
    loop_.streams_.erase(this);
  }

  event_loop& loop_;
  const std::unique_ptr<runtime::stream> over_;
};

class event_loop::telling_dialer final : public stores::redis::dialer {
 public:
  telling_dialer(event_loop& loop, std::shared_ptr<stores::redis::dialer> to)
      : dialer{to->node()}, loop_{loop}, to_{std::move(to)} {}

  void dial(core::time_point until, on_connected done) override {
    // A thread that waits, as the one that renews, is told on itself.
    if (std::this_thread::get_id() != loop_.thread_) return dial_now(until, done);
    loop_.at(runtime::now(),
             [this, until, done = std::move(done)] { return dial_now(until, done); });
  }

 private:
  void dial_now(core::time_point until, const on_connected& done) {
    to_->dial(until, [this, &done](auto over) {
      done(std::move(over).map([this](auto bytes) { return loop_.telling(std::move(bytes)); }));
    });
  }

  event_loop& loop_;
  const std::shared_ptr<stores::redis::dialer> to_;
};

std::unique_ptr<runtime::stream> event_loop::telling(std::unique_ptr<runtime::stream> over) {
  return std::make_unique<telling_stream>(*this, std::move(over));
}

std::shared_ptr<stores::redis::dialer> event_loop::telling(stores::redis::endpoint where) {
  return std::make_shared<telling_dialer>(*this, stores::redis::make_dialer(std::move(where)));
}

void event_loop::at(core::time_point when, std::function<void()> what) {
  {
    const std::lock_guard guard{m_};
    timers_.emplace(when, std::move(what));
  }
  wake_.wake();
}

bool event_loop::call_one() {
  std::function<void()> due;
  {
    const std::lock_guard guard{m_};
    if (timers_.empty() || timers_.begin()->first > runtime::now()) return false;
    due = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
  }
  due();
  return true;
}

void event_loop::poll_until(core::time_point end) {
  std::vector<pollfd> fds{{wake_.fd(), POLLIN, 0}};
  std::vector<telling_stream*> whose{nullptr};
  std::vector<bool> buffered{false};
  {
    const std::lock_guard guard{m_};
    if (!timers_.empty()) end = std::min(end, timers_.begin()->first);
    for (const auto& [stream, one] : streams_) {
      const bool readable = one.over->has_buffered();
      fds.push_back({one.over->fd(), POLLIN, 0});
      whose.push_back(stream);
      buffered.push_back(readable);
      if (readable) end = core::time_point{};
    }
  }
  const timespec left = runtime::until(end);
  if (::ppoll(fds.data(), fds.size(), &left, nullptr) < 0) return;
  if (fds[0].revents != 0) wake_.reset();
  for (std::size_t i = 1; i < fds.size(); ++i) {
    if (fds[i].revents == 0 && !buffered[i]) continue;
    std::function<void()> readable;
    {
      const std::lock_guard guard{m_};
      if (const auto found = streams_.find(whose[i]); found != streams_.end()) {
        readable = found->second.readable;
      }
    }
    if (readable) readable();
  }
}

bool event_loop::run_until(const std::function<bool()>& over) {
  const auto end = runtime::now() + patience;
  while (!over()) {
    if (runtime::now() >= end) return false;
    if (!call_one()) poll_until(end);
  }
  return true;
}

void event_loop::run_for(core::duration time) {
  bool over = false;
  at(runtime::now() + time, [&over] { over = true; });
  static_cast<void>(run_until([&over] { return over; }));
}

}  // namespace holdfast::test
