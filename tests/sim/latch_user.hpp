// A simulated part of latches: counts at one, waits until all parts have, and goes on to the next.
#pragma once

#include <string>

#include "sim/world.hpp"

namespace holdfast::sim {

class latch_user {
 public:
  latch_user(world& in, process& of, std::size_t process_index, std::uint32_t part,
             std::uint64_t seed);

  // At the beginning, and after its process was killed and started again. What it had counted by
  // then it counts once more: its part is counted once.
  void start();

 private:
  void think();
  void count();
  void look();
  void wait();
  void waited(const result<detail::counted>& got, instant since, bool in_calm);
  // It tries again, unless nothing is wrong: then that is a mistake.
  template <class Again>
  void failed(const failure& why, bool in_calm, Again again);
  template <class What>
  void soon(What what);

  world& in_;
  process& of_;
  const std::size_t process_;
  const std::uint32_t part_;
  const std::string name_;
  random_stream random_;
  std::size_t run_ = 0;
};

}  // namespace holdfast::sim
