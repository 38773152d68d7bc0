#include "stores/redis/message_reader.hpp"

#include <poll.h>

#include <atomic>
#include <utility>

#include "runtime/clock.hpp"

namespace holdfast::stores::redis {

// For a caller that is told by events this is no more than a pause, which `received` ends.
class message_reader::message_wait final : public pause {
 public:
  message_wait(message_reader& in, core::time_point until, std::function<void()> done)
      : pause{until, std::move(done)}, in_{in} {}

  void wait() override {
    in_.wait_on_thread(*this);
    finish();
  }
  using pause::sleep;
  using pause::until;

  // Its thread sleeps on sockets. Set before it looks whether the wait is over: so it either sees
  // that, or is woken.
  std::atomic<bool> polls{false};

 private:
  void wake_thread() noexcept override {
    pause::wake_thread();
    if (polls) in_.wake_.wake();
  }

  message_reader& in_;
};

std::shared_ptr<pause> message_reader::wait(core::time_point until, std::function<void()> done) {
  return std::make_shared<message_wait>(*this, until, std::move(done));
}

void message_reader::wait_on_thread(message_wait& mine) {
  lock held{m_};
  threads_.push_back(mine.thread());
  while (!mine.is_over()) {
    const bool reads = !std::exchange(someone_reads_, true);
    held.unlock();
    if (reads) {
      sleep_and_read(mine);
    } else {
      mine.sleep();
    }
    held.lock();
    if (reads) someone_reads_ = false;
  }
  std::erase(threads_, mine.thread());
  pass_on(held);
}

// Returns when something has happened, or when the wait may be over.
void message_reader::sleep_and_read(message_wait& mine) {
  const auto open = hooks_.open();
  std::vector<pollfd> watched{{wake_.fd(), POLLIN, 0}};
  bool buffered = false;
  for (const auto& one : open) {
    watched.push_back({one->fd(), POLLIN, 0});
    buffered = buffered || one->has_buffered();
  }
  mine.polls = true;
  int ready = 0;
  if (!mine.is_over()) {
    const timespec left = buffered ? timespec{} : runtime::until(mine.until());
    ready = ::ppoll(watched.data(), watched.size(), &left, nullptr);
  }
  mine.polls = false;
  if (ready < 0 || (ready == 0 && !buffered)) return;
  if (watched[0].revents != 0) wake_.reset();
  for (std::size_t i = 0; i < open.size(); ++i) {
    if (watched[i + 1].revents == 0 && !open[i]->has_buffered()) continue;
    open[i]->receive();
    hooks_.received(*open[i]);
  }
}

// Another thread has to read for the waits that are left. Unlocks.
void message_reader::pass_on(lock& held) {
  std::shared_ptr<runtime::parker> next;
  if (!someone_reads_ && !threads_.empty()) next = threads_.front();
  held.unlock();
  if (next) next->unpark();
}

bool message_reader::read_now() {
  {
    const lock held{m_};
    if (std::exchange(someone_reads_, true)) return false;
  }
  for (const auto& one : hooks_.open()) {
    bool more = true;
    while (more) {
      more = one->receive();
      hooks_.received(*one);
    }
  }
  lock held{m_};
  someone_reads_ = false;
  pass_on(held);
  return true;
}

}  // namespace holdfast::stores::redis
