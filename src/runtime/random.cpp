#include "runtime/random.hpp"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include "runtime/fork.hpp"

namespace holdfast::runtime {

namespace {

// A system call for every id would be a tenth of an uncontended acquire: draw them in blocks.
// The block is thrown away after fork(), or parent and child would use the same ids.
struct block {
  static constexpr std::size_t size = 32;
  std::array<std::uint64_t, size> words{};
  std::size_t used = size;
  std::uint64_t generation = 0;

  void refill() noexcept {
    auto* at = reinterpret_cast<unsigned char*>(words.data());
    std::size_t left = sizeof words;
    while (left > 0) {
      const ssize_t got = ::getrandom(at, left, 0);
      if (got < 0) {
        // Without fresh ids two holders could be taken for one. There is no way on from here, and
        // no kernel that runs us lacks getrandom.
        if (errno != EINTR) std::abort();
        continue;
      }
      at += got;
      left -= static_cast<std::size_t>(got);
    }
    used = 0;
    generation = fork_generation();
  }
};

}  // namespace

std::uint64_t random_bits() noexcept {
  thread_local block drawn;
  if (drawn.used == block::size || drawn.generation != fork_generation()) drawn.refill();
  return drawn.words[drawn.used++];
}

core::owner_id fresh_owner() noexcept {
  const auto high = random_bits();
  return core::owner_id::from_bits(high, random_bits());
}

}  // namespace holdfast::runtime
