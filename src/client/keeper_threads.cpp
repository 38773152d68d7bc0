#include "client/keeper_threads.hpp"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "runtime/fd.hpp"
#include "runtime/wake_fd.hpp"

namespace holdfast::detail {

struct keeper_threads::running {
  explicit running(duties what)
      : duty{std::move(what)}, alarm{::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC)} {}

  void arm(core::time_point when) const noexcept {
    itimerspec spec{};
    if (when != core::never) {
      const auto ns = std::max<std::int64_t>(1, when.time_since_epoch().count());
      spec.it_value.tv_sec = ns / 1'000'000'000;
      spec.it_value.tv_nsec = ns % 1'000'000'000;
    }
    ::timerfd_settime(alarm.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
  }
  void keep_time() const {
    for (;;) {
      std::uint64_t rings = 0;
      if (::read(alarm.get(), &rings, sizeof rings) < 0 && errno != EINTR) return;
      if (stopping) return;
      duty.look();
    }
  }
  void keep_renewing() const {
    while (!stopping) {
      stores::blocking_caller here;
      if (duty.renew(here, [] {})) {
        here.run();
      } else {
        duty.watch_connection(work.fd());
        work.reset();
      }
    }
  }

  const duties duty;
  const runtime::wake_fd work;
  const runtime::unique_fd alarm;  // a timer on CLOCK_BOOTTIME: rings after a suspend, too
  std::atomic<bool> stopping{false};
  std::mutex m;
  // Protected by m.
  std::thread timer;
  std::thread renewer;
};

keeper_threads::keeper_threads(duties what)
    : running_{std::make_shared<running>(std::move(what))} {}

keeper_threads::~keeper_threads() {
  auto& all = *running_;
  all.stopping = true;
  all.arm(core::time_point{});
  all.work.wake();
  const std::lock_guard guard{all.m};
  if (all.timer.joinable()) all.timer.join();
  if (all.renewer.joinable()) all.renewer.join();
}

bool keeper_threads::start() {
  auto& all = *running_;
  const std::lock_guard guard{all.m};
  if (!all.alarm) return false;
  try {
    // A second try must not start again what the first did start.
    if (!all.timer.joinable()) all.timer = std::thread{[&all] { all.keep_time(); }};
    if (!all.renewer.joinable()) all.renewer = std::thread{[&all] { all.keep_renewing(); }};
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

// An alarm that another thread sets while this ends must not outlast the one that ends it.
void keeper_threads::set_alarm(core::time_point when) noexcept {
  running_->arm(when);
  if (running_->stopping) running_->arm(core::time_point{});
}

void keeper_threads::wake_renewer() noexcept { running_->work.wake(); }

}  // namespace holdfast::detail
