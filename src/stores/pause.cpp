#include "stores/pause.hpp"

#include <utility>

#include "runtime/clock.hpp"

namespace holdfast::stores {

pause::pause(core::time_point until, std::function<void()> done)
    : until_{until}, done_{std::move(done)} {}

void pause::wait() {
  while (!ended_ && runtime::now() < until_)
    sleeper_->park(until_);
  finish();
}

void pause::watch(timers& by) {
  by_ = &by;
  by.at(ended_ ? runtime::now() : until_, [self = shared_from_this()] { self->finish(); });
}

void pause::end() {
  if (ended_.exchange(true)) return;
  sleeper_->unpark();
  if (auto* by = by_.load())
    by->at(runtime::now(), [self = shared_from_this()] { self->finish(); });
}

void pause::finish() {
  ended_ = true;
  if (const auto done = std::exchange(done_, nullptr)) done();
}

}  // namespace holdfast::stores
