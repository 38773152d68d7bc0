#include "runtime/fork.hpp"

#include <pthread.h>

#include <atomic>

namespace holdfast::runtime {

namespace {

std::atomic<std::uint64_t> generation{0};

// Not getpid(): a system call for each use, and pids come again.
const int registered = ::pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1); });

}  // namespace

std::uint64_t fork_generation() noexcept {
  static_cast<void>(registered);
  return generation.load(std::memory_order_relaxed);
}

}  // namespace holdfast::runtime
