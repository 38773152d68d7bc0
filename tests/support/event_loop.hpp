// One thread that is told by events: timers, and connections that can be read.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "runtime/wake_fd.hpp"
#include "stores/redis/dialer.hpp"
#include "stores/waiting.hpp"
#include "support/process.hpp"

namespace holdfast::test {

// Made before what it tells, and run on the thread that made it; at() is for any thread.
class event_loop final : public stores::timers {
 public:
  void at(core::time_point when, std::function<void()> what) override;

  // Handles what happens until `over` says so. False: it did not within `patience`.
  [[nodiscard]] bool run_until(const std::function<bool()>& over);
  void run_for(core::duration time);

  // The same bytes, told by this loop.
  [[nodiscard]] std::unique_ptr<runtime::stream> telling(std::unique_ptr<runtime::stream> over);
  // Connects and logs in as the shipped dialer does, over streams that tell this loop; on the
  // loop's own thread in a later turn, as a dialer that does not block would.
  [[nodiscard]] std::shared_ptr<stores::redis::dialer> telling(stores::redis::endpoint where);

 private:
  class telling_stream;
  class telling_dialer;
  struct watched {
    const runtime::stream* over;
    std::function<void()> readable;
  };

  // Calls one timer that is due. False: none is.
  bool call_one();
  void poll_until(core::time_point end);

  const std::thread::id thread_ = std::this_thread::get_id();
  const runtime::wake_fd wake_;
  std::mutex m_;
  // Protected by m_.
  std::map<telling_stream*, watched> streams_;  // before the timers, which may own some of them
  std::multimap<core::time_point, std::function<void()>> timers_;
};

}  // namespace holdfast::test
