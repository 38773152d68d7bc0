#include "acquire.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <exception>
#include <stop_token>
#include <system_error>
#include <thread>

#include <fmt/format.h>

#include "held_locks.hpp"
#include "say.hpp"
#include "show.hpp"
#include "waiting_line.hpp"

namespace holdfast::cli {
namespace {

// What client_options::unreachable_limit allows.
constexpr std::chrono::milliseconds outage_min{1};
constexpr std::chrono::milliseconds outage_max = std::chrono::hours{24};

// Turns signals into a request to stop, on a thread of its own, for as long as it lives.
class interrupter {
 public:
  explicit interrupter(signal_queue& signals)
      : signals_{signals}, done_{::eventfd(0, EFD_CLOEXEC)} {
    if (done_ < 0) throw std::system_error{errno, std::generic_category(), "eventfd"};
    thread_ = std::thread{[this] { watch(); }};
  }
  interrupter(const interrupter&) = delete;
  interrupter& operator=(const interrupter&) = delete;
  ~interrupter() {
    finish();
    ::close(done_);
  }

  [[nodiscard]] std::stop_token token() const { return stop_.get_token(); }

  // The signal that asked to stop, zero if none did. No signal is read after this.
  int finish() {
    if (thread_.joinable()) {
      ::eventfd_write(done_, 1);
      thread_.join();
    }
    return signal_;
  }

 private:
  void watch() {
    std::array<pollfd, 2> fds{{{signals_.fd(), POLLIN, 0}, {done_, POLLIN, 0}}};
    for (;;) {
      ::poll(fds.data(), fds.size(), -1);
      if (fds[1].revents != 0) return;
      while (const auto number = signals_.next()) {
        if (*number == SIGTSTP) stop_like_the_terminal();
        if (!ends_a_wait(*number)) continue;
        signal_ = *number;
        stop_.request_stop();
        return;
      }
    }
  }

  signal_queue& signals_;
  const int done_;
  std::stop_source stop_;
  int signal_ = 0;  // written by the thread, read after it has ended
  std::thread thread_;
};

}  // namespace

acquisition acquire(named_lock& lock, const acquire_options& options, signal_queue& signals) {
  interrupter interrupts{signals};
  acquisition got;
  {
    std::optional<waiting_line> line;
    if (options.wait > options.wait.zero() && !options.quiet) line.emplace(lock);
    got.lease = lock.try_acquire(options.wait, interrupts.token());
  }
  got.interrupted_by = interrupts.finish();
  if (got.interrupted_by != 0 && got.lease) {  // granted and interrupted at once
    static_cast<void>(got.lease->release());
    got.lease.reset();
  }
  return got;
}

client_options settings_for(const acquire_options& options) {
  client_options settings;
  const auto limit = options.unreachable.value_or(forever);
  settings.unreachable_limit =
      limit == forever ? as_long_as_waiting
                       : std::clamp(std::chrono::duration_cast<std::chrono::milliseconds>(limit),
                                    outage_min, outage_max);
  return settings;
}

bool waits_for_itself(named_lock& lock) {
  const auto held = held_locks::of_this_process();
  const auto& name = lock.name();
  if (!held.knows(name)) return false;
  try {
    const lock_status status = lock.status();
    if (!status.holder || status.holder->foreign ||
        !held.knows(name, status.holder->token.value())) {
      return false;  // of the same name, but on another store; or given back since
    }
  } catch (const error&) {
    return false;  // the wait itself reports what is wrong with the store
  }
  say(
      fmt::format("this command runs under the lock {} already, and would wait for itself: take it "
                  "once, or give the inner one another name",
                  in_quotes(name)));
  return true;
}

void say_busy(named_lock& lock) {
  std::string who;
  try {
    const lock_status status = lock.status();
    if (status.holder) who = ": " + describe(status);
  } catch (const std::exception&) {  // it was only to be helpful
  }
  say(fmt::format("{} is busy{}", in_quotes(lock.name()), who));
}

}  // namespace holdfast::cli
