#include "stores/pause.hpp"

#include <utility>

#include "runtime/clock.hpp"

namespace holdfast::stores {

pause::pause(core::time_point until, std::function<void()> done)
    : until_{until}, done_{std::move(done)} {}

bool pause::is_over() const noexcept { return ended_ || runtime::now() >= until_.load(); }

void pause::wait() {
  while (!is_over())
    sleep();
  finish();
}

void pause::watch(timers& by) {
  by_ = &by;
  by.at(ended_ ? runtime::now() : until_.load(), [self = shared_from_this()] { self->finish(); });
}

void pause::end() {
  if (ended_.exchange(true)) return;
  wake_thread();
  if (auto* by = by_.load())
    by->at(runtime::now(), [self = shared_from_this()] { self->finish(); });
}

void pause::end_by(core::time_point when) {
  if (ended_ || when >= until_.load()) return;
  until_ = when;
  wake_thread();
  if (auto* by = by_.load()) by->at(when, [self = shared_from_this()] { self->finish(); });
}

void pause::finish() {
  ended_ = true;
  if (const auto done = std::exchange(done_, nullptr)) done();
}

}  // namespace holdfast::stores
