// The scripts of locks that several may hold, against a plain model that shares none of their code:
// random lives of readers, writers and permits. The server is the simulated one, which
// beside_redis_test.cpp compares with a real one.
#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "scripts.hpp"
#include "sim/script_engine.hpp"
#include "stores/redis/layout.hpp"

namespace holdfast::sim {

namespace {

namespace scripts = stores::redis::scripts;
using std::chrono::milliseconds;

constexpr std::int64_t claim_ms = 300;

// What a lock is, in as few words as can be.
struct model {
  struct hold {
    std::uint32_t units;
    std::int64_t expires_ms;
  };
  struct place {
    int who;
    std::uint32_t units;
    std::int64_t heard_ms;
  };
  std::uint32_t capacity;
  std::map<int, hold> holds{};
  std::deque<place> queue{};

  [[nodiscard]] std::uint32_t used() const {
    std::uint32_t sum = 0;
    for (const auto& [who, one] : holds)
      sum += one.units;
    return sum;
  }
  [[nodiscard]] bool fits(std::uint32_t units) const { return used() + units <= capacity; }
  [[nodiscard]] auto place_of(int who) {
    return std::find_if(queue.begin(), queue.end(),
                        [&](const auto& one) { return one.who == who; });
  }
  void expire(std::int64_t now) {
    std::erase_if(holds, [&](const auto& one) { return one.second.expires_ms <= now; });
  }
  // Serves the queue as far as it fits; says who was told.
  std::vector<int> serve(std::int64_t now, std::optional<int> asks = {}, std::int64_t ttl = 0) {
    std::vector<int> told;
    while (!queue.empty()) {
      const auto next = queue.front();
      const bool silent = next.who != asks && now - next.heard_ms > claim_ms;
      if (!silent && next.units <= capacity && !fits(next.units)) break;
      queue.pop_front();
      if (silent || next.units > capacity) continue;
      holds[next.who] = {next.units, now + (next.who == asks ? ttl : claim_ms)};
      if (next.who != asks) told.push_back(next.who);
    }
    return told;
  }
};

// The scripts, as clients call them.
class server final : public surroundings {
 public:
  explicit server(const core::lock_kind& of) : kind_{of} {}

  std::int64_t now_ms = 1'700'000'000'000;
  std::vector<std::string> told;  // payloads
  keyspace data;

  reply acquire(int who, std::uint32_t units, std::int64_t ttl, bool joins) {
    return run(scripts::share_acquire,
               {id(who), std::to_string(ttl), "1", "2",
                "host=h;pid=1;label=", joins ? entry(who, units) : "", "10000",
                std::to_string(units), name(), std::to_string(core::capacity_of(kind_))});
  }
  reply release(int who, std::uint32_t units) {
    return run(scripts::share_release,
               {id(who), entry(who, units), "", name(), std::to_string(core::capacity_of(kind_))});
  }
  reply renew(int who, std::int64_t ttl) {
    return run(scripts::renew, {"#" + id(who), std::to_string(ttl), "0"}, 1);
  }
  reply downgrade(int who, std::int64_t ttl, const std::string& token) {
    return run(scripts::share_downgrade, {id(who), std::to_string(ttl), token});
  }
  reply resize(std::uint32_t permits) {
    return run(scripts::share_resize, {std::to_string(permits)});
  }
  reply inspect() { return run(scripts::inspect, {"100"}, 0); }

  static std::string id(int who) {
    return std::string{core::owner_id::from_bits(0, static_cast<std::uint64_t>(who)).text()};
  }

  std::int64_t wall_us() override { return now_ms * 1000; }
  std::int64_t publish(std::string_view, std::string_view message) override {
    told.emplace_back(message);
    return 1;
  }
  std::string run_id() const override { return {}; }

 private:
  reply run(const scripts::script& which, const std::vector<std::string>& args, int keys = 4) {
    std::vector<std::string_view> given{keys_.lock, keys_.slot, keys_.queue, keys_.waiters};
    if (keys == 0) given = {keys_.lock, keys_.queue};
    if (keys == 1) given = {keys_.lock};
    const std::vector<std::string_view> words{args.begin(), args.end()};
    return engine().run(engine().load(which.source), given, words, data, *this);
  }
  static script_engine& engine() {
    static script_engine one;
    return one;
  }
  [[nodiscard]] std::string name() const {
    return std::string{stores::redis::kind_name(kind_.what)};
  }
  [[nodiscard]] std::string entry(int who, std::uint32_t units) const {
    const auto holder = stores::redis::units_wanted(kind_, units) + "host=h;pid=1;label=";
    stores::redis::queue_entry what;
    what.id = *core::owner_id::parse(id(who));
    what.claim = milliseconds{claim_ms};
    what.block = 0;
    what.inbox = "holdfast:inbox:00000000000000000000000000000001";
    what.holder = holder;
    return what.text();
  }

  const core::lock_kind kind_;
  const stores::redis::lock_keys keys_{"lock"};
};

// One life: the scripts and the model are told the same, and must say the same.
class life {
 public:
  explicit life(const core::lock_kind& kind)
      : shared_{kind.what == core::lock_kind::form::shared},
        scripts_{kind},
        model_{core::capacity_of(kind)} {}

  void step() {
    scripts_.now_ms += *rc::gen::element<std::int64_t>(0, 1, 20, 150, 310, 1000);
    model_.expire(now());
    const int who = *rc::gen::inRange(1, 7);
    switch (*rc::gen::inRange(0, 10)) {
      default:
        ask(who);
        break;
      case 5:
      case 6:
      case 7:
        release(who);
        break;
      case 8:
        renew(who);
        break;
      case 9:
        if (shared_) {
          downgrade(who);
        } else {
          resize();
        }
    }
    look();
  }

 private:
  [[nodiscard]] std::int64_t now() const { return scripts_.now_ms; }
  // What an attempt wants, it wants all its life.
  [[nodiscard]] std::uint32_t wanted(int who) const {
    if (shared_) return who % 3 == 0 ? core::whole : 1;
    return static_cast<std::uint32_t>(1 + who % 3);
  }
  [[nodiscard]] std::uint32_t units(int who) const {
    return wanted(who) == core::whole ? model_.capacity : wanted(who);
  }

  void ask(int who) {
    const bool joins = *rc::gen::inRange(0, 4) != 0;
    const std::int64_t ttl = *rc::gen::element<std::int64_t>(50, 400, 2000);
    const auto said = scripts_.acquire(who, wanted(who), ttl, joins);
    if (const auto held = model_.holds.find(who); held != model_.holds.end()) {
      RC_ASSERT(said.items.size() == 3U);  // granted before
      held->second.expires_ms = std::max(held->second.expires_ms, now() + ttl);
      return expect_told({});
    }
    if (units(who) > model_.capacity) {
      RC_ASSERT(said.is_error());
      return expect_told({});
    }
    std::vector<int> told;
    const bool at_once = model_.queue.empty() && model_.fits(units(who));
    if (!at_once) {
      if (joins) {
        const auto place = model_.place_of(who);
        if (place == model_.queue.end()) {
          model_.queue.push_back({who, units(who), now()});
        } else {
          place->heard_ms = now();
        }
      }
      told = model_.serve(now(), who, ttl);
    }
    if (at_once || (!joins && model_.queue.empty() && model_.fits(units(who)))) {
      model_.holds[who] = {units(who), now() + ttl};
    }
    const bool granted = model_.holds.contains(who);
    RC_ASSERT(!said.is_error());
    RC_ASSERT(said.items.at(0).integer == (granted ? 1 : joins ? 2 : 0));
    if (!granted) {
      // The next lease to end is known exactly to whoever is told to wait.
      std::int64_t next = now();
      if (!model_.holds.empty()) {
        next = std::min_element(model_.holds.begin(), model_.holds.end(), [](auto& a, auto& b) {
                 return a.second.expires_ms < b.second.expires_ms;
               })->second.expires_ms;
      }
      RC_ASSERT(said.items.at(1).integer <= next - now());
    }
    expect_told(told);
  }

  void release(int who) {
    const bool held = model_.holds.erase(who) > 0;
    std::erase_if(model_.queue, [&](const auto& one) { return one.who == who; });
    const auto told = model_.serve(now());
    const auto said = scripts_.release(who, wanted(who));
    RC_ASSERT(said.integer == (!held ? 0 : told.empty() ? 1 : 3));
    expect_told(told);
  }

  void renew(int who) {
    const std::int64_t ttl = 500;
    const auto held = model_.holds.find(who);
    const auto said = scripts_.renew(who, ttl);
    RC_ASSERT((said.items.at(2).type == reply::kind::text) == (held != model_.holds.end()));
    if (held != model_.holds.end()) {
      held->second.expires_ms = std::max(held->second.expires_ms, now() + ttl);
    }
  }

  void downgrade(int who) {
    const std::int64_t ttl = 500;
    const auto held = model_.holds.find(who);
    const auto token = tokens_.contains(who) ? tokens_.at(who) : std::string{"1"};
    const auto said = scripts_.downgrade(who, ttl, token);
    if (held == model_.holds.end()) {
      RC_ASSERT(said.items.at(0).integer == 0);
      return expect_told({});
    }
    RC_ASSERT(said.items.at(0).text == token);
    held->second.units = 1;
    held->second.expires_ms = std::max(held->second.expires_ms, now() + ttl);
    expect_told(model_.serve(now()));
  }

  void resize() {
    model_.capacity = *rc::gen::inRange<std::uint32_t>(1, 5);
    RC_ASSERT(scripts_.resize(model_.capacity).integer == 1);
    expect_told(model_.serve(now()));
  }

  // Who was told, in order, each with a token above all before it.
  void expect_told(const std::vector<int>& whom) {
    std::size_t at = 0;
    auto before = last_token_;
    for (const auto& payload : scripts_.told) {
      const auto token = payload.substr(33, payload.find(';', 33) - 33);
      if (token == "0") continue;  // it wants more than there is, and is to ask
      RC_ASSERT(at < whom.size());
      RC_ASSERT(payload.substr(0, 32) == server::id(whom[at]));
      RC_ASSERT(token > before);
      before = token;
      ++at;
    }
    RC_ASSERT(at == whom.size());
    scripts_.told.clear();
  }
  // What the lock has, as whoever looks at it sees it.
  void look() {
    auto highest = last_token_;
    for (const auto& [who, one] : model_.holds) {
      const auto* hash = scripts_.data.find("lock", now());
      RC_ASSERT(hash != nullptr);
      const auto& fields = std::get<stored::hash>(hash->value);
      const auto field = fields.find(server::id(who));
      RC_ASSERT(field != fields.end());
      const auto at = field->second.find(";token=") + 7;
      const auto token = field->second.substr(at, field->second.find(';', at) - at);
      if (tokens_[who] == token) continue;
      RC_ASSERT(token > last_token_);  // granted by this step
      tokens_[who] = token;
      highest = std::max(highest, token);
    }
    last_token_ = highest;
    const auto said = scripts_.inspect();
    const auto& lock = said.items.at(0);
    if (lock.type != reply::kind::array) {
      RC_ASSERT(model_.holds.empty());
    } else {
      RC_ASSERT(lock.items.at(2).integer == static_cast<std::int64_t>(model_.used()));
      RC_ASSERT(lock.items.at(3).integer == static_cast<std::int64_t>(model_.holds.size()));
    }
    RC_ASSERT(said.items.at(2).integer == static_cast<std::int64_t>(model_.queue.size()));
    if (shared_) RC_ASSERT(model_.used() <= model_.capacity);
  }

  const bool shared_;
  server scripts_;
  model model_;
  std::map<int, std::string> tokens_;
  std::string last_token_;
};

void live(const core::lock_kind& kind) {
  life one{kind};
  const int steps = *rc::gen::inRange(1, 80);
  for (int i = 0; i < steps; ++i)
    one.step();
}

}  // namespace

RC_GTEST_PROP(ShareScripts, ReadersAndWritersAreAsTheModelSays, ()) {
  live({core::lock_kind::form::shared});
}

RC_GTEST_PROP(ShareScripts, PermitsAreAsTheModelSays, ()) {
  live({core::lock_kind::form::permits, 3});
}

}  // namespace holdfast::sim
