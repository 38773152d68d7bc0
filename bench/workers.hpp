// Worker processes that start together, work for a while and tell what they saw.
#pragma once

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <functional>
#include <new>
#include <stdexcept>
#include <vector>

namespace holdfast::bench {

// What workers share. Plain memory, mapped before they are forked.
struct shared_board {
  static constexpr int workers_max = 64;
  static constexpr int samples_max = 200'000;
  std::atomic<int> ready{0};
  std::atomic<bool> go{false};
  std::atomic<bool> stop{false};
  std::atomic<int> inside{0};     // in the critical section now
  std::atomic<long> overlaps{0};  // must stay 0
  std::atomic<std::int64_t> released_at_ns{0};
  std::atomic<long> done[workers_max]{};
  std::atomic<bool> waits[workers_max]{};
  std::atomic<int> samples_used{0};
  float samples_us[samples_max]{};

  void sample(double microseconds) noexcept {
    const int at = samples_used.fetch_add(1);
    if (at < samples_max) samples_us[at] = static_cast<float>(microseconds);
  }
  [[nodiscard]] std::vector<double> samples() const {
    const int used = std::min(samples_used.load(), samples_max);
    return {samples_us, samples_us + used};
  }
};

class board {
 public:
  board()
      : at_{::mmap(nullptr, sizeof(shared_board), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0)} {
    if (at_ == MAP_FAILED) throw std::runtime_error{"bench: no shared memory"};
    new (at_) shared_board;
  }
  board(const board&) = delete;
  board& operator=(const board&) = delete;
  ~board() { ::munmap(at_, sizeof(shared_board)); }
  shared_board* operator->() const noexcept { return static_cast<shared_board*>(at_); }
  shared_board& operator*() const noexcept { return *static_cast<shared_board*>(at_); }

 private:
  void* at_;
};

// Runs `work(index)` in each of `count` processes: it must call ready_and_wait() once it is set up
// and end soon after `stop`.
inline void ready_and_wait(shared_board& all) {
  all.ready.fetch_add(1);
  while (!all.go.load())
    ::usleep(200);
}

inline void run_workers(shared_board& all, int count, std::chrono::milliseconds time,
                        const std::function<void(int)>& work) {
  std::fflush(nullptr);
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // also when the bench is killed
      int status = 0;
      try {
        work(i);
      } catch (const std::exception& e) {
        std::fprintf(stderr, "bench worker: %s\n", e.what());
        status = 1;
      }
      ::_exit(status);
    }
    children.push_back(child);
  }
  bool failed = false;
  while (all.ready.load() < count && !failed) {
    ::usleep(200);
    for (const pid_t child : children) {
      siginfo_t ended{};
      ::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT);
      failed = failed || ended.si_pid != 0;
    }
  }
  all.go = true;
  if (!failed) ::usleep(static_cast<useconds_t>(time.count() * 1000));
  all.stop = true;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    failed = failed || status != 0;
  }
  if (failed) throw std::runtime_error{"bench: a worker failed"};
  if (all.overlaps.load() != 0) throw std::runtime_error{"bench: two holders at once"};
}

}  // namespace holdfast::bench
