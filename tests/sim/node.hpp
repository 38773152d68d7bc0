// A simulated redis-server: its data, its wall clock, and who listens.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "scripts.hpp"
#include "sim/random.hpp"
#include "sim/script_engine.hpp"
#include "sim/timeline.hpp"

namespace holdfast::sim {

class connection;

using shipped_script = stores::redis::scripts::script;

// A script with its keys and arguments.
struct script_request {
  const shipped_script* which;
  loaded_script loaded;  // as it is run: perhaps with a planted bug
  std::vector<std::string> keys;
  std::vector<std::string> args;
};

// What a client sends: a script, or another command.
struct command {
  std::vector<std::string> words{};
  std::optional<script_request> script{};
  bool by_hash = false;  // the node has to know the script
};

class node final : public surroundings {
 public:
  node(timeline& time, script_engine& scripts, std::string called, drifting_clock wall,
       std::uint64_t seed)
      : name{std::move(called)}, time_{time}, scripts_{scripts}, wall_{wall}, ids_{seed, 77} {
    new_run();
  }

  const std::string name;
  keyspace data;
  // Every write is on disk before it is answered: a crash loses nothing.
  bool durable = false;
  // For the world.
  std::size_t index = 0;
  bool rolled_back = false;
  std::int64_t wall_off = 0;  // by how much its wall clock was stepped

  [[nodiscard]] reply answer(const command& what);
  [[nodiscard]] reply run(const script_request& what);
  // SCRIPT LOAD.
  [[nodiscard]] reply learn(loaded_script which);
  [[nodiscard]] std::int64_t wall_us() override { return wall_.read(time_.now()) / microsecond; }
  void step_wall(std::int64_t by) noexcept { wall_.step(by); }
  std::int64_t publish(std::string_view channel, std::string_view message) override;
  [[nodiscard]] std::string run_id() const override { return run_id_; }

  void subscribe(const std::string& channel, connection& who) {
    listeners_[channel].push_back(&who);
  }
  void unsubscribe(const std::string& channel, connection& who);
  void unsubscribe(connection& who);

  [[nodiscard]] bool up() const noexcept { return up_; }
  [[nodiscard]] unsigned life() const noexcept { return life_; }
  void kill() {
    up_ = false;
    ++life_;
    listeners_.clear();
  }
  void start() {
    up_ = true;
    new_run();
  }
  // The judge does not rely on what it has until then: it forgot something, or its clock jumped.
  void excuse_until(instant when) noexcept { excused_until_ = std::max(excused_until_, when); }
  [[nodiscard]] bool excused() const noexcept { return time_.now() < excused_until_; }
  // Whose lock this key is, as seen from outside.
  [[nodiscard]] std::optional<core::owner_id> owner_of(std::string_view key);
  // Of a lock that several may hold: who, with how many units, and by which token.
  struct share {
    core::owner_id id;
    std::uint32_t units;
    std::uint64_t token;
  };
  [[nodiscard]] std::vector<share> shares_of(std::string_view key);
  // By a vote that counts in a renewal of a lease with this token: not by a stale one
  // (scripts/acquire.lua), nor by one that was given since (scripts/release.lua).
  [[nodiscard]] bool has_firmly(std::string_view key, const core::owner_id& id,
                                fencing_token token);
  // As BGSAVE: what a crash may go back to.
  void save() { saved_ = data; }
  [[nodiscard]] const keyspace& saved() const noexcept { return saved_; }

 private:
  void new_run();

  timeline& time_;
  script_engine& scripts_;
  drifting_clock wall_;
  random_stream ids_;
  std::string run_id_;
  std::set<int> known_scripts_;  // of this life
  bool up_ = true;
  unsigned life_ = 1;
  instant excused_until_ = 0;
  keyspace saved_;
  std::map<std::string, std::vector<connection*>, std::less<>> listeners_;
};

}  // namespace holdfast::sim
