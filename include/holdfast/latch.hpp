// Wait until so many have counted.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>

#include <holdfast/counter_handle.hpp>
#include <holdfast/duration.hpp>
#include <holdfast/export.hpp>
#include <holdfast/options.hpp>
#include <holdfast/result.hpp>

namespace holdfast {

// A handle on a named latch; made by client::latch(). Thread-safe. Cheap to copy: copies, and
// latches of the same name of any client, are the same. Keeps its client alive.
//
// It is closed until its count has been counted down to zero, and open from then on. All its users
// name the same count; the first that counts makes the latch at the store.
//
// One run, one latch. A latch stays open, so the second run under one name would find it so: put
// what tells runs apart into the name ("build/4711/tested"), or call reset() before its workers
// start. A count that finds the latch open already fails with errc::invalid_argument, so that a
// worker is told of such a mix-up; one that only waits cannot be. The store forgets a latch, open
// or not, for which nobody has counted or waited in latch_options::keep.
//
// There is no lease: what a process has counted stays counted when it dies. Give each part of the
// work a name, and a process that is started again counts it once, however often it tries.
//
// Sound on one Redis server (redis://, unix:, local:) and in memory:. Not on a quorum: nodes that
// count each for themselves do not agree when all have counted. Counts are as safe as the data of
// the server. One that waits and finds its run gone is told errc::outcome_unknown.
//
//   holdfast::latch tested = client.latch("build/4711/tested", 3);
//   tested.count_down("unit");  // each of three jobs, its own
//   tested.wait();              // the job that goes on
class HOLDFAST_API latch {
 public:
  [[nodiscard]] const std::string& name() const noexcept { return handle_.name(); }

  // Counts one, for the part of the work that is called so: any bytes, 1 to 256 of them. Counting a
  // part again changes nothing. Gives how many are left to be counted.
  // What does not get through is tried again for client_options::unreachable_limit, and still
  // counts once. After errc::outcome_unknown it may have counted or not; calling again is safe.
  std::uint32_t count_down(std::string_view part);
  [[nodiscard]] result<std::uint32_t> count_down_result(std::string_view part);

  // The same without a name for it. Each call counts once, also if its answer is lost; but after
  // errc::outcome_unknown, or in a process that is started again, nothing can tell whether it did.
  // errc::invalid_argument, and nothing is counted, if fewer than `n` are left.
  std::uint32_t count_down(std::uint32_t n = 1);
  [[nodiscard]] result<std::uint32_t> count_down_result(std::uint32_t n = 1);

  // How many are left to be counted; 0: it is open.
  [[nodiscard]] std::uint32_t value();
  [[nodiscard]] bool try_wait() { return value() == 0; }

  // Returns when it is open: it is told so, and does not poll. Without a time of its own it throws
  // errc::timed_out after client_options::wait_limit; when stopped, errc::stopped.
  void wait(const std::stop_token& stop = {});
  // False: it was not open in time, or the wait was stopped.
  [[nodiscard]] bool wait(any_nanoseconds wait, const std::stop_token& stop = {});
  [[nodiscard]] result<void> wait_result(const std::stop_token& stop = {});
  [[nodiscard]] result<void> wait_result(any_nanoseconds wait, const std::stop_token& stop = {});

  // Starts a new run: as if nobody had counted, with the count of this handle. One that waits for a
  // run that had opened is let go; another is told errc::outcome_unknown. Safe to repeat.
  void reset();
  [[nodiscard]] result<void> reset_result();

 private:
  friend class client;
  explicit latch(detail::counter_handle handle) noexcept : handle_{std::move(handle)} {}
  detail::counter_handle handle_;
};

}  // namespace holdfast
