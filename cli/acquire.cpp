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

acquisition acquire(lock_set& locks, const acquire_options& options, signal_queue& signals) {
  interrupter interrupts{signals};
  acquisition got;
  {
    std::optional<waiting_line> line;
    if (options.wait > options.wait.zero() && !options.quiet) line.emplace(locks);
    got.leases = locks.try_acquire(options.wait, interrupts.token());
  }
  got.interrupted_by = interrupts.finish();
  if (got.interrupted_by != 0) {  // granted and interrupted at once, perhaps
    for (auto& one : got.leases)
      static_cast<void>(one.release());
    got.leases.clear();
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

namespace {

// A lock of the name that is held with another token is on another store, or was given back since.
bool is_held_further_up(named_lock& lock, const held_locks& held) {
  const auto mine = [&](const holder& who) {
    return !who.foreign && held.knows(lock.name(), who.token.value());
  };
  try {
    const lock_status status = lock.status();
    return (status.holder && mine(*status.holder)) ||
           std::any_of(status.holders.begin(), status.holders.end(), mine);
  } catch (const error&) {
    return false;  // the wait itself reports what is wrong with the store
  }
}

// `'a' is busy: held by …`; nothing if it is free, as far as the store can tell.
std::string busy_text(named_lock& lock) {
  try {
    const lock_status status = lock.status();
    if (status.holder)
      return fmt::format("{} is busy: {}", in_quotes(lock.name()), describe(status));
  } catch (const std::exception&) {  // it was only to be helpful
  }
  return {};
}

}  // namespace

bool waits_for_itself(lock_set& locks) {
  const auto held = held_locks::of_this_process();
  for (named_lock& one : locks.locks()) {
    if (!held.knows(one.name()) || !is_held_further_up(one, held)) continue;
    say(fmt::format(
        "this command runs under the lock {} already, and would wait for itself: take it "
        "once, or give the inner one another name",
        in_quotes(one.name())));
    return true;
  }
  return false;
}

void say_busy(lock_set& locks) {
  bool said = false;
  for (named_lock& one : locks.locks()) {
    const std::string text = busy_text(one);
    if (text.empty()) continue;
    say(text);
    said = true;
  }
  if (said) return;
  const bool several = locks.locks().size() > 1;
  say(fmt::format("{}{} {} busy", several ? "one of " : "", locks.names_in_quotes(),
                  several ? "was" : "is"));
}

}  // namespace holdfast::cli
