// Processes of contenders (see programs/contender.cpp) on one store, and what became of them.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/clock.hpp"
#include "support/built.hpp"
#include "support/fenced_file.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"
#include "support/watch.hpp"

namespace holdfast::test {

// Not thread-safe.
class crowd {
 public:
  struct terms {
    unsigned processes = 8;
    unsigned threads = 8;
    unsigned locks = 3;
    std::chrono::milliseconds ttl{};
    std::string url{};
  };
  crowd(terms how, unsigned seed) : how_{std::move(how)}, random_{seed} {
    for (unsigned i = 0; i < how.processes; ++i)
      members_.push_back(start());
    for (auto& one : members_)
      EXPECT_TRUE(one.child->wait_for_output("ready"));
  }

  unsigned below(unsigned limit) { return static_cast<unsigned>(random_() % limit); }

  // Some process is killed, and another comes in its place.
  void kill_one() {
    auto& one = members_[below(how_.processes)];
    one.child->signal(SIGKILL);
    faults_.push_back(runtime::now());
    EXPECT_TRUE(one.child->wait_exit());
    hear(one);
    one = start();
  }
  // Some process stops for so long.
  void pause_one(std::chrono::milliseconds how_long) {
    auto& one = members_[below(how_.processes)];
    one.was_paused = true;
    faults_.push_back(runtime::now());
    one.child->signal(SIGSTOP);
    let_pass(how_long);
    one.child->signal(SIGCONT);
  }

  // Everybody finishes what they are at.
  void end() {
    for (auto& one : members_)
      one.child->close_stdin();
    for (auto& one : members_) {
      const auto exit = one.child->wait_exit(std::chrono::seconds{80});
      EXPECT_TRUE(exit && *exit == exit_status{})
          << "still waits, or: " << one.child->stdout_text();
      hear(one);
      std::istringstream said{last_line(one.child->stdout_text())};
      std::string done;
      int acquired = 0;
      int lost = 0;
      int errors = 0;
      said >> done >> acquired >> lost >> errors;
      EXPECT_EQ(done, "done");
      // After a pause, requests have taken too long.
      EXPECT_TRUE(errors == 0 || one.was_paused) << one.child->stdout_text();
    }
  }

  [[nodiscard]] std::vector<visit> history(unsigned lock) const {
    return fenced_file::history(folder_.file(lock_name(lock)));
  }
  [[nodiscard]] static std::string lock_name(unsigned lock) {
    return "lock-" + std::to_string(lock);
  }
  [[nodiscard]] const terms& how() const noexcept { return how_; }
  // How many processes were killed or paused then.
  [[nodiscard]] long faults_between(core::time_point from, core::time_point to) const {
    return std::count_if(faults_.begin(), faults_.end(),
                         [&](auto at) { return from <= at && at <= to; });
  }

 private:
  struct member {
    std::unique_ptr<child_process> child;
    bool was_paused = false;
  };

  [[nodiscard]] member start() {
    const auto text = [](auto number) { return std::to_string(number); };
    return {std::make_unique<child_process>(std::vector<std::string>{
                HOLDFAST_TEST_PROGRAMS "/contender", how_.url, folder_.path().string(),
                text(started_++), text(how_.threads), text(how_.locks), text(how_.ttl.count()),
                text(random_() % 1'000'000)}),
            false};
  }
  static void hear(member& one) {
    EXPECT_EQ(one.child->stdout_text().find("wrong"), std::string::npos)
        << one.child->stdout_text();
    EXPECT_EQ(one.child->stderr_text(), "");
  }
  [[nodiscard]] static std::string last_line(const std::string& text) {
    const auto end = text.find_last_not_of('\n');
    const auto start = text.rfind('\n', end);
    return text.substr(start == std::string::npos ? 0 : start + 1);
  }

  const terms how_;
  std::mt19937 random_;
  temp_dir folder_;
  unsigned started_ = 0;
  std::vector<member> members_;
  std::vector<core::time_point> faults_;
};

}  // namespace holdfast::test
