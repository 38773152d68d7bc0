// Randomness that a seed replays.
#pragma once

#include <cstddef>
#include <cstdint>

namespace holdfast::sim {

// splitmix64. A value type; streams with different salts are independent of each other, so that one
// more draw in one place does not change what happens in another.
class random_stream {
 public:
  // Both are scrambled first: a generator that counts on from its seed would give the next seed the
  // same numbers, one further on.
  explicit random_stream(std::uint64_t seed, std::uint64_t salt = 0) noexcept
      : state_{scrambled(scrambled(seed + step) ^ (salt * 0xd1342543de82ef95ULL))} {}

  [[nodiscard]] std::uint64_t bits() noexcept { return scrambled(state_ += step); }
  // Both ends included.
  [[nodiscard]] std::int64_t between(std::int64_t least, std::int64_t most) noexcept {
    const auto span = static_cast<std::uint64_t>(most - least) + 1;
    return least + static_cast<std::int64_t>(bits() % span);
  }
  // An index into so many.
  [[nodiscard]] std::size_t below(std::size_t count) noexcept {
    return static_cast<std::size_t>(between(0, static_cast<std::int64_t>(count) - 1));
  }
  [[nodiscard]] auto& one_of(auto& all) noexcept { return all[below(all.size())]; }
  [[nodiscard]] bool chance(int per_mille) noexcept { return between(0, 999) < per_mille; }
  // Short ones often, long ones seldom: each size between `least` and `most` is as likely as its
  // double.
  [[nodiscard]] std::int64_t spread(std::int64_t least, std::int64_t most) noexcept {
    int doublings = 0;
    for (auto top = least; top < most; top *= 2)
      ++doublings;
    const auto low = least << between(0, doublings > 0 ? doublings - 1 : 0);
    const auto high = low * 2 < most ? low * 2 : most;
    return between(low, high);
  }

 private:
  static constexpr std::uint64_t step = 0x9e3779b97f4a7c15ULL;
  [[nodiscard]] static constexpr std::uint64_t scrambled(std::uint64_t z) noexcept {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  std::uint64_t state_;
};

}  // namespace holdfast::sim
