// What a job that runs on many hosts wants of its lock: to be done once for each tick, however the
// hosts' clocks differ.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <holdfast/client.hpp>
#include <holdfast/lease.hpp>

#include "signals.hpp"

namespace holdfast::cli {

// That the tick KEY of a lock was done is kept as a lock of its own that is never given back, for
// as long as a lock can be kept without renewal.
class done_mark {
 public:
  static constexpr std::chrono::hours kept{24};

  // `key` is empty where nobody asked for it: nothing is ever done then.
  done_mark(client& store, const std::string& lock, const std::string& key);

  // Says on stderr who has done it, unless `quiet`. Call it under the lock.
  [[nodiscard]] bool is_done(bool quiet);
  // Under the lock, once the command has succeeded. Says on stderr if that is not possible.
  void set(const std::string& label);

 private:
  client& store_;
  const std::string key_;
  const std::string name_;
};

// Keeps the locks until then. A signal ends that sooner, also one that came while the command ran
// (`told_to_end`): they are left to expire, and no other is granted one before its TTL is over.
void hold_until(std::vector<lease>& held, std::chrono::steady_clock::time_point until,
                signal_queue& signals, bool told_to_end);

}  // namespace holdfast::cli
