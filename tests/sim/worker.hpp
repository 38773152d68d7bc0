// A simulated user: takes a lock, works, gives it back, again and again.
#pragma once

#include <memory>
#include <string>

#include "core/acquire_machine.hpp"
#include "sim/world.hpp"

namespace holdfast::sim {

class worker {
 public:
  worker(world& in, process& of, std::size_t process_index, std::string name, std::uint64_t seed);

  // At the beginning, and after its process was killed and started again.
  void start();
  // `too_early`: before its deadline.
  void lost(lease& which, loss why, bool too_early);
  [[nodiscard]] bool owns(const lease& which) const noexcept { return held_ == &which; }

 private:
  struct acquisition {
    std::size_t lock;
    core::time_point wait_until;
    bool patient;  // waits as long as it takes
    bool began_in_calm;
    std::uint64_t above;  // its token must be
    core::time_point started;
    bool stopped = false;
    std::shared_ptr<stores::attempt> who;
    std::unique_ptr<core::acquire_machine> machine;
    bool withdrawn_surely = true;
  };
  using current = std::shared_ptr<acquisition>;

  void think();
  void begin();
  void attempt(const current& what);
  void go_on(const current& what, core::acquire_step step);
  void answered(const current& what, const core::answer& answer);
  void finish(const current& what);
  void hold(const current& what);
  void give_back(const current& what, lease& mine);
  void say(const std::string& what) { in_.trace.line(name_, what); }
  [[nodiscard]] bool traced() const { return in_.trace.wanted(); }

  world& in_;
  process& of_;
  const std::size_t process_;
  const std::string name_;
  random_stream random_;
  int left_;
  bool done_ = false;
  const lease* held_ = nullptr;
};

}  // namespace holdfast::sim
