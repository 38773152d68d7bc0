// The scripts of latches, against the model that a memory store's are held to, and beside a real
// server.
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "scripts.hpp"
#include "sim/beside_redis.hpp"
#include "sim/random.hpp"
#include "sim/script_engine.hpp"
#include "support/latch_life.hpp"

namespace holdfast::sim {

namespace {

namespace scripts = stores::redis::scripts;
using texts = std::vector<std::string>;

class latch_of_scripts final : public surroundings {
 public:
  latch_of_scripts(std::int64_t count, std::int64_t keep_ms)
      : count_{std::to_string(count)}, keep_{std::to_string(keep_ms)} {}

  void pass(std::int64_t now_ms) { now_ms_ = now_ms; }
  test::latch_said count(const std::string& part, std::int64_t amount, const std::string& run_id) {
    return run(scripts::latch_count,
               {count_, std::to_string(amount), part, run_id, keep_, "channel"});
  }
  test::latch_said look(const std::string& awaited, bool waits) {
    return run(scripts::latch_look, {count_, awaited, waits ? keep_ : "0"});
  }
  test::latch_said start_anew(const std::string& run_id) {
    return run(scripts::latch_start_anew, {count_, run_id, keep_, "channel"});
  }
  bool told() { return std::exchange(told_, false); }

  std::int64_t wall_us() override { return now_ms_ * 1000; }
  std::int64_t publish(std::string_view, std::string_view) override {
    told_ = true;
    return 1;
  }
  std::string run_id() const override { return {}; }

 private:
  test::latch_said run(const scripts::script& which, const texts& args) {
    static script_engine engine;
    const std::vector<std::string_view> keys{"latch"};
    const std::vector<std::string_view> words{args.begin(), args.end()};
    const auto said = engine.run(engine.load(which.source), keys, words, data_, *this);
    if (said.is_error()) return {.refused = true};
    return {.gone = said.items.at(0).integer == -1,
            .done = said.items.at(0).integer == 1,
            .left = said.items.at(1).integer,
            .run = said.items.at(2).text};
  }

  const std::string count_;
  const std::string keep_;
  std::int64_t now_ms_ = 0;
  keyspace data_;
  bool told_ = false;
};

}  // namespace

RC_GTEST_PROP(LatchScripts, AreAsTheModelSays, ()) {
  test::live_as_the_model_says<latch_of_scripts>();
}

// Two latches, with users who do not always agree on the count, and a key that is none.
TEST(SimulatedRedis, RunsScriptsOfLatchesAsRedisDoes) {
  constexpr int rounds = 40;
  constexpr int steps = 80;
  beside_redis both;
  std::size_t opened = 0;
  std::size_t refused = 0;
  for (std::uint64_t seed = 1; seed <= rounds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    both.clear();
    random_stream random{seed, 3};
    static_cast<void>(both.command({"SET", "lock", "held"}));
    static_cast<void>(both.command({"HSET", "share", "#kind", "permits", "#capacity", "2"}));
    const auto number = [&](std::int64_t least, std::int64_t most) {
      return std::to_string(random.between(least, most));
    };
    for (int step = 0; step < steps; ++step) {
      static const texts names{"one", "other", "lock", "share"};
      const auto which = random.chance(930) ? random.between(0, 1) : random.between(2, 3);
      const texts keys{names[static_cast<std::size_t>(which)]};
      const auto count = random.chance(970) ? std::string{"3"} : number(2, 4);
      const auto keep = random.chance(500) ? std::string{"800"} : number(1, 2000);
      const std::string channel{beside_redis::heard_channel};
      const auto run = "run" + number(1, 6);
      const scripts::script* script = &scripts::latch_count;
      texts args{count, random.chance(800) ? "1" : "2", "=" + number(1, 6), run, keep, channel};
      switch (random.between(0, 9)) {
        default:
          break;
        case 6:
        case 7:
          script = &scripts::latch_look;
          args = {count, random.chance(500) ? run : "", random.chance(500) ? keep : "0"};
          break;
        case 8:
          script = &scripts::latch_start_anew;
          args = {count, run, keep, channel};
          break;
        case 9:
          script = &scripts::inspect;
          args = {"2"};
      }
      const texts given = script == &scripts::inspect ? texts{keys[0], "none"} : keys;
      const auto said = both.eval(script->source, given, args);
      ASSERT_EQ(said.simulated, said.real) << script->name << " " << testing::PrintToString(args);
      const auto sent = both.messages();
      ASSERT_EQ(sent.simulated, sent.real);
      const auto kept = both.contents();
      ASSERT_EQ(kept.simulated, kept.real) << script->name << " " << testing::PrintToString(args);
      opened += sent.real == "open\n" ? 1 : 0;
      refused += said.real.starts_with("(error)") ? 1 : 0;
      both.advance(random.spread(1, 900'000));
    }
  }
  // Or nothing was compared.
  EXPECT_GT(opened, 50U);
  EXPECT_GT(refused, 100U);
}

}  // namespace holdfast::sim
