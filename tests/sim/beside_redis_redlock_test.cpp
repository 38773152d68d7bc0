// The scripts of a lock on several nodes, on the simulated Redis and on a real one.
#include <map>

#include <gtest/gtest.h>

#include "core/types.hpp"
#include "redlock_scripts.hpp"
#include "sim/beside_redis.hpp"
#include "sim/random.hpp"
#include "stores/redlock/node_set.hpp"
#include "stores/redlock/queue_entry.hpp"

namespace holdfast::sim {

namespace {

namespace scripts = stores::redlock::scripts;

constexpr int rounds = 60;
constexpr int steps = 150;
constexpr int contents_compared_every = 5;

// A handful of attempts, waiters and locks, so that they meet; one node, that votes mostly.
class script_source {
 public:
  script_source(random_stream& random, beside_redis& at) : random_{random}, at_{at} {}

  // As a node_connection sends it: with the server's run_id in the end; sometimes that of another
  // life.
  script_call next() {
    auto what = one_of_them();
    what.args.push_back(random_.chance(950) ? at_.run_id() : "f00");
    return what;
  }

 private:
  script_call one_of_them() {
    const auto lock = name();
    const std::string record{stores::redlock::record_key};
    const auto queue = "holdfast:{redlock}:waiters:" + lock;
    const auto id = owner();
    const bool waits = random_.chance(600);
    switch (random_.between(0, 15)) {
      default:
        return {&scripts::acquire,
                {lock, record, queue},
                {config(), field(lock), id, ttl(), token(), "1", "5", holder, "30000000",
                 waits ? address(id) : "", waits ? ticket() : "", random_.chance(50) ? "1" : "9",
                 waits && random_.chance(500) ? "1" : ""}};
      case 6:
      case 7:
        return {&scripts::raise, {lock, record}, {config(), field(lock), id, token()}};
      case 8:
      case 9:
      case 10: {
        const bool leaves = random_.chance(400);
        return {&scripts::release, {lock, queue}, {id, leaves ? address(id) + holder : "", "50"}};
      }
      case 11: {
        const auto other = name();
        return {&scripts::extend, {record, lock, other}, {config(), id, ttl(), owner(), ttl()}};
      }
      case 12: {
        const auto to = token();
        return {&scripts::repair,
                {lock, record},
                {config(), field(lock), id + ";holdfast=1;token=" + to + ";block=1;since=0;", ttl(),
                 to}};
      }
      case 13:
        return {&scripts::standing,
                {record},
                {config(), max_ttl, wall(), random_.chance(700) ? id : "",
                 random_.chance(500) ? "counters" : ""}};
      case 14:
        if (random_.chance(500)) {
          return {&scripts::inspect,
                  {record, lock, queue, "none", "none", queue, lock},
                  {config(), "2"}};
        }
        return move(record);
      case 15: {
        // Its wait, if it is in one; or a person vouches; or another wait.
        texts args{ours, "n1,n2,n3", max_ttl, wall(), "", random_.chance(980) ? "0" : "60000000"};
        if (random_.chance(700)) args[4] = bare(at_.command({"HGET", record, "wait"}).real);
        if (random_.chance(50)) args[4] = "f00@2";
        if (random_.chance(500)) args.insert(args.end(), {field(lock), token()});
        if (random_.chance(30)) args.insert(args.end(), {"floor", token()});
        return {&scripts::admit, {record}, args};
      }
    }
  }

  // Mostly what changes nothing: a node that has changed over refuses all the others.
  script_call move(const std::string& record) {
    static const texts verbs{"announce", "stay", "leave", "join", "complete"};
    const auto& verb = random_.one_of(verbs);
    return {&scripts::move,
            {record},
            {random_.chance(900) ? ours : "", random_.chance(800) ? "set-0" : "set-9", "n1,n2,n4",
             max_ttl, wall(), random_.chance(950) ? "look" : verb, owner()}};
  }
  // Without what shows that it is a text.
  static std::string bare(std::string text) {
    std::erase(text, '"');
    return text.find('@') == std::string::npos ? "" : text;
  }
  std::string wall() {
    const auto off = random_.chance(900) ? 0 : random_.between(-5'000'000, 5'000'000);
    return std::to_string((at_.wall_us() + off) / 1000);
  }

  static constexpr const char* max_ttl = "2500";

  std::string name() { return random_.chance(700) ? "orders" : "reports"; }
  static std::string field(const std::string& lock) { return lock == "orders" ? "c:1" : "c:2"; }
  // A node that belonged to the other set would refuse everything.
  static constexpr const char* ours = "set-0";
  std::string config() { return random_.chance(950) ? ours : "set-1"; }
  std::string owner() {
    return std::string{
        core::owner_id::from_bits(0, static_cast<std::uint64_t>(random_.between(1, 6))).text()};
  }
  std::string ttl() { return std::to_string(random_.spread(1, 3000)); }
  std::string token() {
    const auto ahead = random_.chance(30) ? 90'000'000 : random_.between(-300, 300);
    return std::to_string(at_.wall_us() + ahead);
  }
  std::string ticket() {
    return std::to_string(at_.wall_us() + random_.between(-2'000'000, 1'000'000));
  }
  static constexpr const char* holder = "host=h;pid=1;label=x";
  // Some listen, some are gone.
  static std::string address(const std::string& id) {
    constexpr auto length = core::owner_id::digits;
    const auto heard = beside_redis::heard_turns.substr(beside_redis::heard_turns.size() - length);
    return id + std::string{heard.substr(0, length - 1)} + (id.back() % 3 == 0 ? "f" : "1");
  }

  random_stream& random_;
  beside_redis& at_;
};

TEST(SimulatedRedis, RunsTheScriptsOfAQuorumAsRedisDoes) {
  beside_redis both;
  std::map<std::string_view, std::size_t> succeeded;
  std::size_t calls = 0;
  for (std::uint64_t seed = 1; seed <= rounds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    both.clear();
    random_stream random{seed, 2};
    script_source source{random, both};
    static_cast<void>(both.eval(scripts::admit.source, {std::string{stores::redlock::record_key}},
                                {"set-0", "n1,n2,n3", "2500", "0", "", "0", both.run_id()}));
    for (int step = 0; step < steps; ++step) {
      const auto call = source.next();
      beside_redis::outcome said;
      ASSERT_NO_FATAL_FAILURE(both.compare(call, step % contents_compared_every == 0, said));
      const bool refused = said.answer.find("-1") < 2 || said.answer.starts_with("[0") ||
                           said.answer.starts_with("(error)");
      if (!refused) ++succeeded[call.script->name];
      calls += said.sent ? 1 : 0;
      both.advance(random.spread(1, 200'000));
      if (random.chance(30)) both.advance(-random.spread(1000, 2'000'000));
    }
  }
  // Or nothing was compared.
  for (const auto* script :
       {"acquire", "raise", "release", "extend", "repair", "standing", "admit", "move"})
    EXPECT_GT(succeeded[script], 50U) << script;
  EXPECT_GT(calls, 100U);
}

}  // namespace

}  // namespace holdfast::sim
