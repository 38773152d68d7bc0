// The simulated Redis against a real one: single commands, and our scripts as a whole.
#include "sim/beside_redis.hpp"

#include <algorithm>
#include <limits>

#include <gtest/gtest.h>

#include "core/types.hpp"
#include "scripts.hpp"
#include "sim/random.hpp"
#include "stores/redis/layout.hpp"

namespace holdfast::sim {

namespace {

namespace scripts = stores::redis::scripts;

// Redis adds where in which script an error happened.
std::string without_place(std::string text) {
  if (const auto at = text.find(" script: "); at != std::string::npos) {
    const auto end = text.find('\n', at);
    text.erase(at, end == std::string::npos ? end : end - at);
  }
  return text;
}

std::string shown(const test::reply& what) {
  switch (what.type) {
    case test::reply::kind::nil:
      return "(nil)";
    case test::reply::kind::integer:
      return std::to_string(what.integer);
    case test::reply::kind::text:
      return what.text;
    case test::reply::kind::error:
      return "(error) " + without_place(what.text);
    case test::reply::kind::array:
      break;
  }
  std::string all = "[";
  for (const auto& item : what.items) {
    if (all.size() > 1) all += ", ";
    all += shown(item);
  }
  return all + "]";
}

std::vector<std::string_view> views(const texts& from) { return {from.begin(), from.end()}; }

std::string shown(const stored& what) {
  std::string text;
  if (const auto* string = std::get_if<std::string>(&what.value)) text = *string;
  if (const auto* list = std::get_if<stored::list>(&what.value)) {
    for (const auto& one : *list)
      text += "<" + one + ">";
  }
  if (const auto* hash = std::get_if<stored::hash>(&what.value)) {
    for (const auto& [name, value] : *hash)
      text += "{" + name + "=" + value + "}";
  }
  if (const auto* set = std::get_if<stored::sorted_set>(&what.value)) {
    for (const auto& [score, name] : set->order)
      text += "(" + std::to_string(score) + " " + name + ")";
  }
  return text + " until " + std::to_string(what.expires_ms.value_or(-1)) + "\n";
}

}  // namespace

beside_redis::answers beside_redis::in_any_order(const answers& both) {
  const auto sorted = [](const std::string& list) {
    texts items;
    std::size_t from = 0;
    while (from < list.size()) {
      const auto end = std::min(list.find_first_of(",]", from), list.size());
      items.push_back(list.substr(from + 1, end - from - 1));
      from = end + 1;
    }
    std::sort(items.begin(), items.end());
    std::string all;
    for (const auto& one : items)
      all += one + "\n";
    return all;
  };
  return {sorted(both.real), sorted(both.simulated)};
}

std::int64_t beside_redis::publish(std::string_view channel, std::string_view message) {
  if (channel != heard_channel && channel != heard_turns) return 0;
  sent_ += std::string{message} + "\n";
  ++sent_count_;
  return 1;
}

beside_redis::answers beside_redis::eval(std::string_view script, const texts& keys,
                                         const texts& args) {
  if (!listens_) {
    for (const auto channel : {heard_channel, heard_turns})
      static_cast<void>(listener_.command({"SUBSCRIBE", std::string{channel}}));
    listens_ = true;
  }
  texts words{"EVAL", std::string{script}, std::to_string(keys.size())};
  words.insert(words.end(), keys.begin(), keys.end());
  words.insert(words.end(), args.begin(), args.end());
  const auto said = real_.command(words);
  const auto answer = engine_.run(engine_.load(script), views(keys), views(args), data_, *this);
  return {shown(said), answer.shown()};
}

void beside_redis::compare(const script_call& call, bool contents_too, outcome& said) {
  SCOPED_TRACE(std::string{call.script->name} + " " + testing::PrintToString(call.args));
  auto both = eval(call.script->source, call.keys, call.args);
  if (call.script->name == "standing") both = in_any_order(both);
  ASSERT_EQ(both.simulated, both.real);
  const auto sent = messages();
  ASSERT_EQ(sent.simulated, sent.real);
  if (contents_too) {
    const auto kept = contents();
    ASSERT_EQ(kept.simulated, kept.real);
  }
  said = {both.real, !sent.real.empty()};
}

beside_redis::answers beside_redis::command(const texts& words) {
  return eval("return redis.pcall(unpack(ARGV))", {}, words);
}

beside_redis::answers beside_redis::contents() {
  answers all;
  auto keys = real_.command({"KEYS", "*"}).items;
  std::sort(keys.begin(), keys.end(), [](auto& a, auto& b) { return a.text < b.text; });
  for (const auto& key : keys) {
    stored what;
    const auto type = real_.command({"TYPE", key.text}).text;
    if (type == "string") what.value = real_.command({"GET", key.text}).text;
    if (type == "list") {
      stored::list list;
      for (const auto& one : real_.command({"LRANGE", key.text, "0", "-1"}).items)
        list.push_back(one.text);
      what.value = list;
    }
    if (type == "hash") {
      stored::hash hash;
      const auto fields = real_.command({"HGETALL", key.text}).items;
      for (std::size_t i = 0; i + 1 < fields.size(); i += 2)
        hash[fields[i].text] = fields[i + 1].text;
      what.value = hash;
    }
    if (type == "zset") {
      stored::sorted_set set;
      const auto all_of = real_.command({"ZRANGE", key.text, "0", "-1", "WITHSCORES"}).items;
      for (std::size_t i = 0; i + 1 < all_of.size(); i += 2)
        set.order.emplace(std::stod(all_of[i + 1].text), all_of[i].text);
      what.value = set;
    }
    const auto until = real_.command({"PEXPIRETIME", key.text}).integer;
    if (until >= 0) what.expires_ms = until;
    if (type != "none") all.real += key.text + ": " + shown(what);
  }
  for (const auto& [key, what] : data_.all(wall_us() / 1000))
    all.simulated += key + ": " + shown(what);
  return all;
}

beside_redis::answers beside_redis::messages() {
  answers all;
  for (; sent_count_ > 0; --sent_count_)
    all.real += listener_.receive().items.at(2).text + "\n";
  all.simulated = std::exchange(sent_, {});
  return all;
}

void beside_redis::advance(std::int64_t us) {
  if (us < 0) {
    for (const auto& [key, what] : data_.all(std::numeric_limits<std::int64_t>::min()))
      static_cast<void>(command({"EXISTS", key}));
  }
  clock_.advance(us);
}

void beside_redis::clear() {
  static_cast<void>(real_.command({"FLUSHALL"}));
  data_ = {};
}

namespace {

constexpr int rounds = 60;
constexpr int steps = 120;
constexpr int contents_compared_every = 6;

texts parts_of(std::string_view text, char between) {
  texts parts{""};
  for (const char c : text) {
    if (c == between) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// Words that some command makes sense of, and some that none does.
class word_source {
 public:
  explicit word_source(random_stream& random) : random_{random} {}

  texts next() {
    static const auto shapes = parts_of(
        "EXISTS k|EXISTS k k|GET k|MGET k|MGET k k|SET k v|SET k v PX n|SET k v NX|SET k v XX|"
        "SET k v NX PX n|SET k v NX XX|SET k v PX|SET k v KEEPTTL|SET k v XX KEEPTTL|"
        "SET k v KEEPTTL PX n|DEL k|DEL k k|PTTL k|PEXPIRE k n|PERSIST k|GETRANGE k n n|"
        "HSET k f v|HSET k f v f v|HSET k f v f|HGET k f|HMGET k f f|HDEL k f|HDEL k f f|HLEN k|"
        "HSET k f n|HINCRBY k f n|HINCRBY k f|"
        "HGETALL k|ZADD k s v|ZADD k s v s v|ZADD k s v s|ZREM k v|ZREM k v v|ZCARD k|ZPOPMIN k|"
        "ZRANGE k n n WITHSCORES|RPUSH k v|RPUSH k v v v|LPOP k|RPOP k|LLEN k|LINDEX k n|"
        "LRANGE k n n|LREM k n v|TIME|PUBLISH c v|GET|TIME v|NOSUCH k",
        '|');
    auto words = parts_of(random_.one_of(shapes), ' ');
    for (auto& word : words)
      word = meant_by(word);
    return words;
  }

 private:
  std::string meant_by(const std::string& shape) {
    static const auto numbers =
        parts_of("0|1|2|3|-1|-2|5|40|300|2000|x|1.5|01|| 1|-3|9223372036854775807", '|');
    static const auto scores = parts_of("1|2|-7|0.5|1763000000123456|1763000000123457|x", '|');
    if (shape == "k") return "key" + std::to_string(random_.between(1, 4));
    if (shape == "f") return "field" + std::to_string(random_.between(1, 3));
    if (shape == "v") return "value" + std::to_string(random_.between(1, 3));
    if (shape == "c") return random_.chance(500) ? std::string{beside_redis::heard_channel} : "c";
    if (shape == "s") return random_.one_of(scores);
    if (shape == "n") return random_.one_of(numbers);
    return shape;
  }
  random_stream& random_;
};

TEST(SimulatedRedis, AnswersCommandsAsRedisDoes) {
  beside_redis both;
  for (std::uint64_t seed = 1; seed <= rounds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    both.clear();
    random_stream random{seed};
    word_source source{random};
    for (int step = 0; step < steps; ++step) {
      const auto words = source.next();
      auto said = both.command(words);
      if (words[0] == "HGETALL") said = both.in_any_order(said);
      ASSERT_EQ(said.simulated, said.real) << testing::PrintToString(words);
      const auto sent = both.messages();
      ASSERT_EQ(sent.simulated, sent.real);
      both.advance(random.spread(1, 400'000));
    }
    const auto kept = both.contents();
    ASSERT_EQ(kept.simulated, kept.real);
  }
}

// What scripts say to each other and to their caller: the corners of Redis' conversions.
TEST(SimulatedRedis, ConvertsValuesAsRedisDoes) {
  const texts bodies{
      "return 3.99",
      "return -3.99",
      "return true",
      "return false",
      "return nil",
      "return {1, 2, nil, 4}",
      "return {1, {'a', false, 2.5}, 'b'}",
      "return {}",
      "return {ok='fine'}",
      "return {err='BAD thing'}",
      "return redis.error_reply('BAD thing')",
      "return redis.error_reply('-BAD thing')",
      "return redis.error_reply('BAD')",
      "return redis.status_reply('fine')",
      "return redis.call('SET', 'a', 1)",
      "return redis.call('SET', 'a', 1.5)",
      "redis.call('SET', 'a', 1763000000123456) return redis.call('GET', 'a')",
      "redis.call('SET', 'a', 2^53) return redis.call('GET', 'a')",
      "redis.call('SET', 'a', 2^53 - 1) return redis.call('GET', 'a')",
      "redis.call('SET', 'a', 1 - 2^53) return redis.call('GET', 'a')",
      "redis.call('SET', 'a', 1e17) return redis.call('GET', 'a')",
      "redis.call('SET', 'a', -0.0) return redis.call('GET', 'a')",
      "redis.call('SET', 'a', 'x') return redis.call('LLEN', 'a')",
      "redis.call('SET', 'a', 'x') return redis.pcall('LLEN', 'a')['err']",
      "return type(redis.call('GET', 'none'))",
      "return type(redis.call('HMGET', 'none', 'f')[1])",
      "return redis.call('GET', 'none') == false",
      "return type(redis.call('TIME')[1])",
      "return string.format('%.0f', 1763000000123456)",
      "return tostring(1763000000123456)",
      "return redis.call('GET', {})",
      "return redis.call()",
      "return #ARGV .. KEYS[1]",
      "return string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')",
      "return tonumber('') == nil",
      "return tonumber('12a') == nil",
      "return tonumber('1763000000123456') == 1763000000123456",
      "return tonumber('9007199254740991') == 2^53 - 1",
      "return string.format('%.0f', tonumber('9007199254740993'))",
      "return string.format('%.0f', tonumber('18446744073709551616'))",
      "return {tonumber('007'), tonumber(' 12 '), tonumber('-5'), tonumber('1e3'), "
      "tonumber('0x10')}",
      "return {tonumber('11', 2), tonumber(7.5), tonumber({}) == nil, tonumber(nil) == nil}",
      "return tonumber()",
      "return 'a' .. 1 .. 2.5",
      "return type(print)",
      "nothing = 1",
      "return nothing",
      "return ({1,2})[3] == nil",
  };
  beside_redis both;
  for (const auto& body : bodies) {
    auto said = both.eval(body, {"one"}, {"x", "y"});
    // Words of Lua's own errors are for people; that there is one is what counts.
    const auto in_lua = said.real.find("user_script:") != std::string::npos;
    if (in_lua) said.real = said.real.substr(0, 11);
    EXPECT_EQ(in_lua ? said.simulated.substr(0, 11) : said.simulated, said.real) << body;
  }
}

// A handful of owners, inboxes and locks, so that they meet.
class script_source {
 public:
  explicit script_source(random_stream& random) : random_{random} {}
  script_source(const script_source&) = delete;
  script_source& operator=(const script_source&) = delete;
  virtual ~script_source() = default;

  virtual script_call next() = 0;
  // The last one that was granted; half of the breaks are to succeed.
  std::string token = "1";

 protected:
  std::string owner(std::int64_t most) {
    const auto which = static_cast<std::uint64_t>(random_.between(1, most));
    return std::string{core::owner_id::from_bits(0, which).text()};
  }
  std::string ttl() { return std::to_string(random_.spread(1, 3000)); }
  static texts keys_of(const stores::redis::lock_keys& of) {
    return {of.lock, of.slot, of.queue, of.waiters};
  }
  // The same for the same owner, as a client's is, but for what it listens to.
  static std::string entry(const std::string& id, std::uint64_t block, bool listens,
                           std::string_view holder) {
    stores::redis::queue_entry what;
    what.id = *core::owner_id::parse(id);
    what.claim = std::chrono::milliseconds{500 * (id.back() - '0')};
    what.block = block;
    what.inbox =
        listens ? beside_redis::heard_channel : "holdfast:inbox:0000000000000000000000000000000f";
    what.joined = std::chrono::milliseconds{1'700'000'000'000};
    what.holder = holder;
    return what.text();
  }
  texts asking(const std::string& id, const std::string& queued_as) {
    return {id,
            ttl(),
            random_.chance(20) ? "3" : "1",
            "2",
            "host=h;pid=1;label=x",
            random_.chance(700) ? queued_as : "",
            random_.chance(50) ? "1" : "10000"};
  }
  random_stream& random_;
};

class mutex_scripts final : public script_source {
 public:
  using script_source::script_source;

  script_call next() override {
    const auto& keys = lock();
    const auto id = owner(6);
    switch (random_.between(0, 9)) {
      default: {
        auto args = asking(id, entry(id));
        args.emplace_back(random_.chance(800) ? "1" : "64");
        return {&scripts::acquire, keys_of(keys), args};
      }
      case 5:
      case 6:
      case 7:
        return {&scripts::release, keys_of(keys), {id, random_.chance(500) ? entry(id) : ""}};
      case 8:
        return {&scripts::renew,
                {keys.lock, lock().lock},
                {id, random_.chance(50) ? "0" : ttl(), owner(6), ttl()}};
      case 9:
        if (random_.chance(500)) {
          return {&scripts::inspect,
                  {keys.lock, keys.queue, "none", "none", keys.queue, keys.lock},
                  {"2"}};
        }
        return {&scripts::break_, keys_of(keys), {token}};
    }
  }

 private:
  const stores::redis::lock_keys& lock() {
    static const std::vector<stores::redis::lock_keys> all{stores::redis::lock_keys{"orders"},
                                                           stores::redis::lock_keys{"a}b{c"}};
    return random_.one_of(all);
  }
  static std::string entry(const std::string& id) {
    const auto last = id.back() - '0';
    return script_source::entry(id, last % 2 == 0 ? 64 : 1, last % 3 != 0, "host=h;pid=1;label=");
  }
};

// Of locks that several may hold: one of each kind, and a name that is also a mutex's.
class share_scripts final : public script_source {
 public:
  using script_source::script_source;

  script_call next() override {
    static const stores::redis::lock_keys read{"config"}, counted{"slots"}, mutex{"orders"};
    const auto which = random_.between(0, 20);
    const bool reads = which % 2 == 0;
    const auto& one = which == 20 ? mutex : reads ? read : counted;
    const auto four = keys_of(one);
    const auto id = owner(8);
    switch (random_.between(0, 13)) {
      default: {
        auto args = asking(id, entry(id, reads));
        args.push_back(std::to_string(wanted(id, reads)));
        args.push_back(kind(random_.chance(20) ? !reads : reads));
        args.push_back(random_.chance(980) ? units(reads) : "2");
        return {&scripts::share_acquire, four, args};
      }
      case 6:
      case 7:
      case 8:
      case 9:
        return {&scripts::share_release,
                four,
                {id, random_.chance(500) ? entry(id, reads) : "", "", kind(reads),
                 random_.chance(900) ? units(reads) : ""}};
      case 10:
        return {&scripts::renew,
                {one.lock, mutex.lock},
                {"#" + id, ttl(), random_.chance(500) ? "0" : token, owner(8), ttl(), "0"}};
      case 11:
        return {&scripts::inspect, {one.lock, one.queue, "none", "none"}, {"2"}};
      case 12:
        if (random_.chance(500)) return {&scripts::break_, four, {token}};
        return {&scripts::acquire,
                keys_of(mutex),
                {id, ttl(), "1", "2", "host=h;pid=1;label=", "", "100", "1"}};
      case 13:
        if (random_.chance(700)) return {&scripts::share_downgrade, four, {id, ttl(), token}};
        return {&scripts::share_resize, four, {std::to_string(random_.between(1, 4))}};
    }
  }

 private:
  static std::string kind(bool reads) { return reads ? "shared" : "permits"; }
  static std::string units(bool reads) { return reads ? "10000" : "3"; }
  // The same for the same owner, as a client's is.
  static std::uint32_t wanted(const std::string& id, bool reads) {
    const auto last = static_cast<std::uint32_t>(id.back() - '0');
    return reads ? last % 3 == 0 ? 0 : 1 : 1 + last % 3;
  }
  static std::string entry(const std::string& id, bool reads) {
    core::lock_kind of;
    of.what = reads ? core::lock_kind::form::shared : core::lock_kind::form::permits;
    const auto holder = stores::redis::units_wanted(of, wanted(id, reads)) + "host=h;pid=1;label=";
    return script_source::entry(id, 0, (id.back() - '0') % 3 != 2, holder);
  }
};

template <class Source>
void run_on_both(std::uint64_t salt, std::size_t grants_least, std::size_t hand_overs_least) {
  beside_redis both;
  std::size_t grants = 0;
  std::size_t hand_overs = 0;
  for (std::uint64_t seed = 1; seed <= rounds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    both.clear();
    random_stream random{seed, salt};
    Source source{random};
    for (int step = 0; step < steps; ++step) {
      beside_redis::outcome said;
      ASSERT_NO_FATAL_FAILURE(
          both.compare(source.next(), step % contents_compared_every == 0, said));
      if (said.answer.starts_with("[1, 1")) {
        ++grants;
        if (random.chance(500)) source.token = said.answer.substr(4, 16);
      }
      hand_overs += said.sent ? 1 : 0;
      both.advance(random.spread(1, 600'000));
      if (random.chance(30)) both.advance(-random.spread(1000, 5'000'000));
    }
  }
  // Or nothing was compared.
  EXPECT_GT(grants, grants_least);
  EXPECT_GT(hand_overs, hand_overs_least);
}

TEST(SimulatedRedis, RunsScriptsOfSharesAsRedisDoes) { run_on_both<share_scripts>(2, 500, 100); }

TEST(SimulatedRedis, RunsOurScriptsAsRedisDoes) { run_on_both<mutex_scripts>(1, 500, 200); }

}  // namespace

}  // namespace holdfast::sim
