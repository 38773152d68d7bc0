// A simulated user: takes a lock, works, gives it back, again and again.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "sim/world.hpp"

namespace holdfast::sim {

class worker {
 public:
  worker(world& in, process& of, std::size_t process_index, std::string name, std::uint64_t seed);

  // At the beginning, and after its process was killed and started again.
  void start();

 private:
  struct acquisition {
    std::size_t lock;
    std::uint32_t units;
    bool patient;  // waits as long as it takes
    bool began_in_calm;
    std::uint64_t above;  // its token must be
  };

  void think();
  [[nodiscard]] std::uint32_t wanted();
  void begin();
  void finish(const acquisition& what, client::acquired got, const std::string& why);
  void hold(const acquisition& what, client::acquired got);
  void work(lease& mine);
  void renew(lease& mine);
  void downgrade(lease& mine);
  void give_back(lease& mine);
  void lost(lease& mine);
  // It stops to rely on what it holds.
  void let_go(lease& mine);
  void say(const std::string& what) { in_.trace.line(name_, what); }
  [[nodiscard]] bool traced() const { return in_.trace.wanted(); }

  world& in_;
  process& of_;
  const std::size_t process_;
  const std::string name_;
  random_stream random_;
  int left_;
  bool done_ = false;
  std::optional<std::stop_source> changes_its_mind_;
  const lease* held_ = nullptr;
  std::optional<std::stop_callback<std::function<void()>>> on_lost_;
};

}  // namespace holdfast::sim
