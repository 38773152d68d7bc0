// Doing the same again and again for a while, and how often, or how fast, that went.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "bench.hpp"

namespace holdfast::bench {

// How often `pair` ran in a second.
template <class Pair>
double per_second(std::chrono::milliseconds time, Pair pair) {
  constexpr int between_looks = 16;
  for (int i = 0; i < 200; ++i)
    pair();  // connections, scripts, caches
  const auto start = std::chrono::steady_clock::now();
  std::uint64_t done = 0;
  while (std::chrono::steady_clock::now() - start < time) {
    for (int i = 0; i < between_looks; ++i)
      pair();
    done += between_looks;
  }
  return static_cast<double>(done) /
         std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The same in several threads, each with a pair of its own.
template <class MakePair>
double per_second_in_threads(int threads, std::chrono::milliseconds time, MakePair make) {
  std::vector<double> rates(static_cast<std::size_t>(threads));
  {
    std::vector<std::jthread> all;
    for (int i = 0; i < threads; ++i) {
      all.emplace_back([&, i] {
        auto pair = make(i);
        rates[static_cast<std::size_t>(i)] = per_second(time, pair);
      });
    }
  }
  double sum = 0;
  for (const double rate : rates)
    sum += rate;
  return sum;
}

template <class Call>
double microseconds_of(Call call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
      .count();
}

// Of what `call` gives, with pauses between that let everybody fall asleep.
template <class Call>
double quantile_of_calls(std::chrono::milliseconds time, double share, Call call) {
  std::vector<double> samples;
  for (const auto end = std::chrono::steady_clock::now() + time;
       std::chrono::steady_clock::now() < end;) {
    samples.push_back(call());
    std::this_thread::sleep_for(std::chrono::microseconds{300});
  }
  return quantile(samples, share);
}

}  // namespace holdfast::bench
