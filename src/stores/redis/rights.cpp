#include "stores/redis/rights.hpp"

#include <array>
#include <utility>

#include "runtime/random.hpp"
#include "stores/redis/layout.hpp"
#include "stores/redis/script_values.hpp"

namespace holdfast::stores::redis {

namespace {

constexpr std::string_view waking = "message to a waiter: those who wait ask again and again";
constexpr std::string_view wait = "wait";
constexpr std::string_view info = "info";
constexpr std::string_view no_sha = "0000000000000000000000000000000000000000";

constexpr unsigned bit(locks_kept where) { return 1U << static_cast<unsigned>(where); }
constexpr unsigned quorum = bit(locks_kept::on_a_quorum);
constexpr unsigned cluster_nodes = bit(locks_kept::in_a_cluster);
constexpr unsigned with_queues = bit(locks_kept::by_one_server) | cluster_nodes;

constexpr right off_quorum(std::string_view command, std::string_view probe,
                           std::string_view used_for = "locking", bool essential = true) {
  return {command, probe, with_queues, used_for, essential};
}
constexpr right only_cluster(std::string_view command, std::string_view probe,
                             std::string_view used_for = "locking", bool essential = true) {
  return {command, probe, cluster_nodes, used_for, essential};
}
constexpr right only_quorum(std::string_view command, std::string_view probe,
                            std::string_view used_for = "locking", bool essential = true) {
  return {command, probe, quorum, used_for, essential};
}
constexpr right everywhere(std::string_view command, std::string_view probe,
                           std::string_view used_for = "locking", bool essential = true) {
  return {command, probe, quorum | with_queues, used_for, essential};
}

// What scripts call, they call for the user. SUBSCRIBE and what follows it come last: a connection
// that listens is for nothing else. DEL comes first: without it nothing that is tried could be
// taken back.
constexpr std::array rights{
    everywhere("del", "DEL KEY"),
    everywhere("eval", "EVAL return 0"),
    everywhere("evalsha", "EVALSHA SHA"),
    only_quorum("script|load", "SCRIPT LOAD return"),
    only_cluster("cluster|slots", "CLUSTER SLOTS"),
    only_cluster("cluster|info", "CLUSTER INFO", "way to tell a node that is cut off", false),
    only_cluster("asking", "ASKING", "lock whose slot is being moved", false),
    only_cluster("pubsub|numsub", "PUBSUB NUMSUB CHANNEL", waking, false),
    off_quorum(wait, "WAIT 0 1", "acknowledgement by replicas, which replicas= asks for"),
    everywhere("ping", "PING"),
    everywhere("time", "TIME"),
    everywhere(info, "INFO server"),
    everywhere("get", "GET KEY"),
    off_quorum("mget", "MGET KEY"),
    everywhere("getrange", "GETRANGE KEY 0 0", "status of a lock", false),
    everywhere("set", "SET KEY x PX 1000"),
    off_quorum("append", "APPEND KEY x", "graceful break", false),
    off_quorum("exists", "EXISTS KEY"),
    everywhere("pexpire", "PEXPIRE KEY 1000"),
    off_quorum("persist", "PERSIST KEY", "resizing of a semaphore", false),
    everywhere("pttl", "PTTL KEY"),
    off_quorum("incr", "INCR COUNT", "token counted on a key that others count as well", false),
    everywhere("hget", "HGET HASH f"),
    everywhere("hmget", "HMGET HASH f"),
    everywhere("hset", "HSET HASH f 1"),
    everywhere("hdel", "HDEL HASH f"),
    off_quorum("hincrby", "HINCRBY HASH n 1", "giving back of a share", false),
    off_quorum("hexists", "HEXISTS HASH f"),
    everywhere("hgetall", "HGETALL HASH", "lock that several may hold", false),
    off_quorum("lindex", "LINDEX LIST 0"),
    off_quorum("llen", "LLEN LIST", "status of a lock", false),
    off_quorum("lrange", "LRANGE LIST 0 0", "status of a lock", false),
    off_quorum("rpush", "RPUSH LIST x"),
    only_cluster("linsert", "LINSERT LIST BEFORE y x", "place in a queue whose slot is moved",
                 false),
    off_quorum("lrem", "LREM LIST 1 y"),
    off_quorum("lpop", "LPOP LIST"),
    off_quorum("rpop", "RPOP LIST"),
    only_quorum("zadd", "ZADD ZSET 1 x"),
    only_quorum("zcard", "ZCARD ZSET"),
    only_quorum("zpopmin", "ZPOPMIN ZSET"),
    only_quorum("zrange", "ZRANGE ZSET 0 0"),
    only_quorum("zrem", "ZREM ZSET x"),
    everywhere("scan", "SCAN 0 COUNT 1", "list of all locks", false),
    everywhere("publish", "PUBLISH CHANNEL x", waking, false),
    off_quorum("client|tracking", "CLIENT TRACKING OFF", "word of a loss before the next renewal",
               false),
    everywhere("subscribe", "SUBSCRIBE CHANNEL", waking, false),
    off_quorum("unsubscribe", "UNSUBSCRIBE CHANNEL", "end to listening to old latches", false),
};

bool is_needed(const right& one, const user_scope& of) {
  if (one.command == wait && !of.awaits_replicas) return false;
  const bool asks_info = of.seeks_master || of.locks == locks_kept::on_a_quorum;
  return (one.needed & bit(of.locks)) != 0 && (one.command != info || asks_info);
}

// Letters that stand for themselves in patterns, and that redis-cli takes as they are.
bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view{":._-/{*~&@+=|"}.find(c) != std::string_view::npos;
}

// As redis-cli takes an argument.
std::string quoted(const std::string& word) {
  bool plain = true;
  for (const char c : word)
    plain = plain && is_plain(c);
  if (plain) return word;
  constexpr std::string_view hex = "0123456789abcdef";
  std::string text = "\"";
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (byte < ' ' || byte >= 0x7f) {
      text += "\\x";
      text += hex[byte >> 4];
      text += hex[byte & 0xf];
    } else {
      text += c;
    }
  }
  return text + '"';
}

// What stands in a probe, and the name that it stands for; the keys first.
using probe_names = std::vector<std::pair<std::string_view, std::string>>;

// The probe's words, with names that nobody else uses.
std::string probe_of(const right& one, const probe_names& names) {
  std::vector<std::string> words;
  for (auto rest = one.probe; !rest.empty();) {
    const auto end = rest.find(' ');
    std::string word{rest.substr(0, end)};
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    for (const auto& [stands, name] : names) {
      if (word == stands) word = name;
    }
    // A script is one word, and what follows it says that it has no keys.
    if (word == "return" && !rest.empty()) word += " " + std::string{std::exchange(rest, {})};
    words.push_back(std::move(word));
  }
  if (one.command == "eval" || one.command == "evalsha") words.emplace_back("0");
  command text{words.size()};
  for (const auto& word : words)
    text.arg(word);
  return text.bytes();
}

// One by one: in a cluster a prefix may have them in different slots.
void clean_up(channel& on, const probe_names& names) {
  constexpr std::size_t keys = 5;
  for (std::size_t i = 0; i < keys; ++i) {
    command gone{2};
    gone.arg("DEL").arg(names[i].second);
    static_cast<void>(on.post(gone.bytes(), nullptr));
  }
}

// Empty: it is allowed, whatever came of it.
std::string said_by(const reply_value& answer) {
  const bool refused = answer.type == reply_kind::error && text_of(answer).starts_with("NOPERM");
  return refused ? std::string{text_of(answer)} : std::string{};
}

std::vector<core::server_facts::missing_right> what_is_missing(
    const std::vector<const right*>& tried, const std::vector<std::string>& said) {
  std::vector<core::server_facts::missing_right> missing;
  bool told_of_keys = false;
  bool told_of_channels = false;
  for (std::size_t i = 0; i < tried.size(); ++i) {
    const auto speaks_of = [&](std::string_view what) {
      return said[i].find(what) != std::string::npos;
    };
    if (said[i].empty()) continue;
    if (speaks_of("command")) {
      missing.push_back(
          {std::string{tried[i]->command}, std::string{tried[i]->used_for}, tried[i]->essential});
    } else if (speaks_of("channel")) {
      if (std::exchange(told_of_channels, true)) continue;
      missing.push_back({"the channels that begin with holdfast:", std::string{waking}, false});
    } else if (!std::exchange(told_of_keys, true)) {
      missing.push_back(
          {"the keys of locks, or those that begin with holdfast:{", "locking", true});
    }
  }
  return missing;
}

}  // namespace

std::span<const right> all_rights() noexcept { return rights; }

std::vector<std::string> rule_elements(const user_scope& of) {
  std::vector<std::string> all;
  // Without a prefix a lock is a key of any name, the helper keys' among them.
  if (!of.prefix.empty()) all.push_back("~" + std::string{reserved_prefix} + "*");
  all.push_back("~" + scan_pattern(of.prefix, "*"));
  all.emplace_back("&holdfast:*");
  for (const auto& one : rights) {
    if (is_needed(one, of)) all.push_back("+" + std::string{one.command});
  }
  if (of.selects_database) all.emplace_back("+select");
  return all;
}

std::string rule_text(const user_scope& of, std::string_view user) {
  std::string text = "ACL SETUSER " + std::string{user} + " reset on >PASSWORD";
  for (const auto& one : rule_elements(of))
    text += " " + quoted(one);
  return text;
}

result<std::vector<core::server_facts::missing_right>> missing_rights(channel& on,
                                                                      const user_scope& of,
                                                                      core::time_point until) {
  const auto fresh = std::string{runtime::fresh_owner().text()};
  // In a cluster all in one slot, unless the prefix says otherwise.
  const auto helper = std::string{reserved_prefix} + "doctor}:" + fresh;
  const auto key = [&](std::string_view kind) {
    return of.prefix + "holdfast-doctor:{doctor}:" + fresh + ":" + std::string{kind};
  };
  const probe_names names{{"KEY", key("key")},         {"COUNT", key("count")},
                          {"HASH", helper + ":hash"},  {"LIST", helper + ":list"},
                          {"ZSET", helper + ":zset"},  {"CHANNEL", "holdfast:doctor:" + fresh},
                          {"SHA", std::string{no_sha}}};
  std::vector<const right*> tried;
  for (const auto& one : rights) {
    if (is_needed(one, of)) tried.push_back(&one);
  }
  std::vector<std::string> said(tried.size());
  const auto first = on.call(probe_of(*tried.front(), names), until, true);
  if (!first) return fail(first.error());
  said.front() = said_by(**first);
  if (said.front().empty()) {
    // The others all at once: a server may be far away.
    for (std::size_t i = 1; i < tried.size(); ++i) {
      if (tried[i]->command == "publish") clean_up(on, names);
      const auto sent = on.post(probe_of(*tried[i], names), [&text = said[i]](const auto& answer) {
        if (answer && *answer) text = said_by(**answer);
      });
      if (sent == 0) return fail(errc::store_unreachable, "the connection has ended");
    }
    clean_up(on, names);
    // Replies come in order: with this one, all before it have.
    const auto last = on.call(probe_of(*tried.front(), names), until, true);
    if (!last) return fail(last.error());
  }
  return what_is_missing(tried, said);
}

}  // namespace holdfast::stores::redis
