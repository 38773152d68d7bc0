// A simulated Redis beside a real one whose clock stands still: the same commands to both.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scripts.hpp"
#include "sim/keyspace.hpp"
#include "sim/script_engine.hpp"
#include "support/raw_redis.hpp"
#include "support/redis_server.hpp"
#include "support/set_clock.hpp"

namespace holdfast::sim {

using texts = std::vector<std::string>;

struct script_call {
  const stores::redis::scripts::script* script;
  texts keys;
  texts args;
};

class beside_redis final : public surroundings {
 public:
  // What each of the two answered, as text.
  struct answers {
    std::string real;
    std::string simulated;
  };

  [[nodiscard]] answers eval(std::string_view script, const texts& keys, const texts& args);
  // Runs a script on both, and compares what they answer, what they send, and, if told so, what
  // they keep. Gives the answer, and whether anything was sent.
  struct outcome {
    std::string answer;
    bool sent = false;
  };
  void compare(const script_call& call, bool contents_too, outcome& said);
  // One command, from inside a script.
  [[nodiscard]] answers command(const texts& words);
  // Everything that each of the two holds.
  [[nodiscard]] answers contents();
  // Answers like "[a, b]" whose order means nothing.
  [[nodiscard]] static answers in_any_order(const answers& both);
  // What each of the two has sent to those who listen, in order; once.
  [[nodiscard]] answers messages();
  // Back, too: then what has expired goes first, for Redis may or may not have deleted it by now.
  void advance(std::int64_t us);
  void clear();

  [[nodiscard]] std::int64_t wall_us() override { return clock_.wall_us(); }
  std::int64_t publish(std::string_view channel, std::string_view message) override;
  [[nodiscard]] std::string run_id() const override { return run_id_; }

  // The channels that somebody listens to: an inbox of each kind of lock.
  static constexpr std::string_view heard_channel =
      "holdfast:inbox:00000000000000000000000000000001";
  static constexpr std::string_view heard_turns = "holdfast:turn:00000000000000000000000000000001";

 private:
  test::set_clock clock_{1'700'000'000'000'000};
  test::redis_server server_{clock_.on()};
  test::raw_redis real_{server_.where()};
  test::raw_redis listener_{server_.where()};
  bool listens_ = false;
  std::string run_id_ = server_.info("server", "run_id");
  keyspace data_;
  script_engine engine_;
  std::string sent_;
  std::int64_t sent_count_ = 0;
};

}  // namespace holdfast::sim
