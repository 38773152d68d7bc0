// What a program can see of its locks: events as they happen, and plain counters.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include <holdfast/error.hpp>
#include <holdfast/export.hpp>
#include <holdfast/token.hpp>

namespace holdfast {

struct event {
  enum class kind {
    waiting,         ///< another holder has the lock; this caller waits
    acquired,        ///< `duration` is the time from the call to the grant
    released,        ///< `duration` is how long it was held
    renewed,         ///< `duration` is the round trip
    renewal_failed,  ///< will be tried again until the deadline
    lost,            ///< `detail` says why, `duration` how long it was held; once for each lease
    failed,          ///< an acquisition or release failed; `code` and `detail` say how
    reconnected,     ///< a connection to the store was made anew
    clock_stepped,   ///< the store's wall clock jumped by `duration` against ours: keys may expire
                     ///< early or late
    misuse,          ///< unlock() of a mutex that this thread does not hold
  };
  kind type{};
  std::string_view lock{};  ///< the name, untrusted bytes: untrusted::escape(). Valid for the call
  fencing_token token{};
  std::chrono::nanoseconds duration{};
  errc code{};
  std::string_view detail{};  ///< printable, never a secret
};

// Derive and pass through client_options::observer. on_event() is called from several threads at
// once, from the caller's own thread or a background one, never from the thread that renews.
// It must not throw and should be quick; background events beyond a bound are dropped and counted.
class HOLDFAST_API observer {
 public:
  observer() = default;
  observer(const observer&) = delete;
  observer& operator=(const observer&) = delete;
  virtual ~observer();
  virtual void on_event(const event& e) noexcept = 0;
};

// Totals since the client was made, but for the two that say "now".
struct counters {
  std::uint64_t acquisitions = 0;  ///< leases granted
  std::uint64_t waits = 0;         ///< acquisitions that met another holder
  std::uint64_t waiting_now = 0;
  std::uint64_t held_now = 0;
  std::uint64_t releases = 0;       ///< leases given back by their holder
  std::uint64_t renewals = 0;       ///< leases extended
  std::uint64_t renewal_calls = 0;  ///< requests that carried them
  std::uint64_t renewal_failures = 0;
  std::uint64_t losses = 0;
  std::uint64_t failures = 0;          ///< acquisitions and releases that failed
  std::uint64_t unknown_outcomes = 0;  ///< of those, the ones whose outcome is not known
  std::uint64_t reconnects = 0;
  std::uint64_t clock_steps = 0;
  std::uint64_t events_dropped = 0;
};

}  // namespace holdfast
