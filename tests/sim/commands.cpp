// The commands that our scripts use, one function each, and the table of them.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <unordered_map>

#include "sim/keyspace.hpp"

namespace holdfast::sim {

namespace {

using words = std::span<const std::string_view>;  // without the command's name

struct call_context {
  keyspace& data;
  surroundings& around;
  std::int64_t now_us;
  [[nodiscard]] std::int64_t now_ms() const noexcept { return now_us / 1000; }
};

reply wrong_type() {
  return reply::error("WRONGTYPE Operation against a key holding the wrong kind of value");
}
reply not_an_integer() { return reply::error("ERR value is not an integer or out of range"); }

// As Redis reads integers: nothing around them, no leading zeros or plus.
std::optional<std::int64_t> integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool plain = ec == std::errc{} && end == text.data() + text.size();
  if (!plain || std::to_string(value) != text) return std::nullopt;
  return value;
}

// What `then` makes of the value of a key: `absent` if there is none, an error if it has another
// type.
template <class T, class Then>
reply with(call_context& in, std::string_view key, reply absent, Then then) {
  auto* found = in.data.find(key, in.now_ms());
  if (found == nullptr) return absent;
  auto* value = std::get_if<T>(&found->value);
  return value == nullptr ? wrong_type() : then(*value);
}
// The same of a value that is made if it is not there.
template <class T, class Then>
reply with_made(call_context& in, std::string_view key, Then then) {
  if (in.data.find(key, in.now_ms()) == nullptr) in.data.put(key, {T{}, {}});
  return with<T>(in, key, {}, std::move(then));
}

// How many elements a key has.
template <class T>
reply length(call_context& in, words args) {
  return with<T>(in, args[0], reply::of(0),
                 [](const T& all) { return reply::of(static_cast<std::int64_t>(all.size())); });
}
// A key goes with the last of its elements.
template <class T>
void drop_if_empty(call_context& in, std::string_view key, const T& all) {
  if (all.size() == 0) in.data.erase(key, in.now_ms());
}
// Removes the named elements from a key, each by `remove`, and counts those that were there.
template <class T, class Remove>
reply remove_each(call_context& in, words args, Remove remove) {
  return with<T>(in, args[0], reply::of(0), [&](T& all) {
    std::int64_t count = 0;
    for (const auto name : args.subspan(1))
      count += remove(all, name) ? 1 : 0;
    drop_if_empty(in, args[0], all);
    return reply::of(count);
  });
}

reply field_of(const stored::hash& in, std::string_view name) {
  const auto found = in.find(name);
  return found == in.end() ? reply::none() : reply::of(found->second);
}

// ---- keys --------------------------------------------------------------------------------------

reply exists(call_context& in, words args) {
  std::int64_t count = 0;
  for (const auto key : args)
    count += in.data.find(key, in.now_ms()) != nullptr ? 1 : 0;
  return reply::of(count);
}

reply del(call_context& in, words args) {
  std::int64_t count = 0;
  for (const auto key : args)
    count += in.data.erase(key, in.now_ms()) ? 1 : 0;
  return reply::of(count);
}

reply pttl(call_context& in, words args) {
  const auto* found = in.data.find(args[0], in.now_ms());
  if (found == nullptr) return reply::of(-2);
  if (!found->expires_ms) return reply::of(-1);
  return reply::of(std::max<std::int64_t>(0, *found->expires_ms - in.now_ms()));
}

reply pexpire(call_context& in, words args) {
  const auto ms = integer(args[1]);
  if (!ms) return not_an_integer();
  if (*ms > std::numeric_limits<std::int64_t>::max() - in.now_ms()) {
    return reply::error("ERR invalid expire time in 'pexpire' command");
  }
  auto* found = in.data.find(args[0], in.now_ms());
  if (found == nullptr) return reply::of(0);
  if (*ms <= 0) {
    in.data.erase(args[0], in.now_ms());
  } else {
    found->expires_ms = in.now_ms() + *ms;
  }
  return reply::of(1);
}

reply persist(call_context& in, words args) {
  auto* found = in.data.find(args[0], in.now_ms());
  const bool had = found != nullptr && found->expires_ms;
  if (had) found->expires_ms.reset();
  return reply::of(had ? 1 : 0);
}

// ---- strings -----------------------------------------------------------------------------------

reply get(call_context& in, words args) {
  return with<std::string>(in, args[0], reply::none(),
                           [](const auto& text) { return reply::of(text); });
}

reply set(call_context& in, words args) {
  bool if_absent = false;
  bool if_present = false;
  bool keep_expiry = false;
  std::optional<std::int64_t> expires;
  for (std::size_t i = 2; i < args.size(); ++i) {
    if (args[i] == "NX" && !if_present) {
      if_absent = true;
    } else if (args[i] == "XX" && !if_absent) {
      if_present = true;
    } else if (args[i] == "KEEPTTL" && !expires) {
      keep_expiry = true;
    } else if (args[i] == "PX" && !expires && !keep_expiry && i + 1 < args.size()) {
      const auto ms = integer(args[++i]);
      if (!ms) return not_an_integer();
      if (*ms <= 0 || *ms > std::numeric_limits<std::int64_t>::max() - in.now_ms()) {
        return reply::error("ERR invalid expire time in 'set' command");
      }
      expires = in.now_ms() + *ms;
    } else {
      return reply::error("ERR syntax error");
    }
  }
  const auto* before = in.data.find(args[0], in.now_ms());
  const bool there = before != nullptr;
  if ((if_absent && there) || (if_present && !there)) return reply::none();
  if (keep_expiry && there) expires = before->expires_ms;
  in.data.put(args[0], {std::string{args[1]}, expires});
  return reply::ok();
}

reply getrange(call_context& in, words args) {
  const auto from = integer(args[1]);
  const auto to = integer(args[2]);
  if (!from || !to) return not_an_integer();
  return with<std::string>(in, args[0], reply::of(""), [&](const auto& text) {
    const auto length = static_cast<std::int64_t>(text.size());
    const auto start = std::max<std::int64_t>(0, *from < 0 ? length + *from : *from);
    const auto last = std::min(length - 1, std::max<std::int64_t>(0, *to < 0 ? length + *to : *to));
    const bool reversed = *from < 0 && *to < 0 && *from > *to;
    if (reversed || start > last || length == 0) return reply::of("");
    return reply::of(
        text.substr(static_cast<std::size_t>(start), static_cast<std::size_t>(last - start + 1)));
  });
}

reply mget(call_context& in, words args) {
  std::vector<reply> values;
  values.reserve(args.size());
  for (const auto& key : args) {
    auto value = get(in, {&key, 1});
    values.push_back(value.is_error() ? reply::none() : std::move(value));
  }
  return reply::list(std::move(values));
}

// ---- hashes ------------------------------------------------------------------------------------

reply hset(call_context& in, words args) {
  if (args.size() % 2 == 0) {
    return reply::error("ERR wrong number of arguments for 'hset' command");
  }
  return with_made<stored::hash>(in, args[0], [&](auto& hash) {
    std::int64_t fresh = 0;
    for (std::size_t i = 1; i < args.size(); i += 2) {
      const auto at = hash.find(args[i]);
      if (at == hash.end()) {
        hash.emplace(args[i], args[i + 1]);
        ++fresh;
      } else {
        at->second = args[i + 1];
      }
    }
    return reply::of(fresh);
  });
}

reply hget(call_context& in, words args) {
  return with<stored::hash>(in, args[0], reply::none(),
                            [&](const auto& hash) { return field_of(hash, args[1]); });
}

reply hmget(call_context& in, words args) {
  const auto names = args.subspan(1);
  const auto none = reply::list(std::vector<reply>(names.size()));
  return with<stored::hash>(in, args[0], none, [&](const auto& hash) {
    std::vector<reply> fields;
    fields.reserve(names.size());
    for (const auto name : names)
      fields.push_back(field_of(hash, name));
    return reply::list(std::move(fields));
  });
}

// In no order that anybody may rely on.
reply hgetall(call_context& in, words args) {
  return with<stored::hash>(in, args[0], reply::list({}), [](const auto& hash) {
    std::vector<reply> all;
    for (const auto& [name, value] : hash) {
      all.push_back(reply::of(name));
      all.push_back(reply::of(value));
    }
    return reply::list(std::move(all));
  });
}

reply hdel(call_context& in, words args) {
  return remove_each<stored::hash>(in, args, [](auto& hash, std::string_view name) {
    const auto at = hash.find(name);
    if (at == hash.end()) return false;
    hash.erase(at);
    return true;
  });
}

reply hincrby(call_context& in, words args) {
  const auto by = integer(args[2]);
  if (!by) return not_an_integer();
  return with_made<stored::hash>(in, args[0], [&](auto& hash) {
    auto& value = hash.try_emplace(stored::hash::key_type{args[1]}, "0").first->second;
    const auto had = integer(value);
    if (!had) return reply::error("ERR hash value is not an integer");
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    constexpr auto least = std::numeric_limits<std::int64_t>::min();
    if (*by < 0 ? *had < least - *by : *had > most - *by) {
      return reply::error("ERR increment or decrement would overflow");
    }
    value = std::to_string(*had + *by);
    return reply::of(*had + *by);
  });
}

// ---- lists -------------------------------------------------------------------------------------

reply rpush(call_context& in, words args) {
  return with_made<stored::list>(in, args[0], [&](auto& list) {
    for (const auto value : args.subspan(1))
      list.emplace_back(value);
    return reply::of(static_cast<std::int64_t>(list.size()));
  });
}

reply lpop(call_context& in, words args) {
  return with<stored::list>(in, args[0], reply::none(), [&](auto& list) {
    auto taken = reply::of(std::move(list.front()));
    list.pop_front();
    drop_if_empty(in, args[0], list);
    return taken;
  });
}

reply rpop(call_context& in, words args) {
  return with<stored::list>(in, args[0], reply::none(), [&](auto& list) {
    auto taken = reply::of(std::move(list.back()));
    list.pop_back();
    drop_if_empty(in, args[0], list);
    return taken;
  });
}

reply lindex(call_context& in, words args) {
  // Redis looks at the key first here.
  return with<stored::list>(in, args[0], reply::none(), [&](const auto& list) {
    const auto index = integer(args[1]);
    if (!index) return not_an_integer();
    const auto length = static_cast<std::int64_t>(list.size());
    const auto at = *index < 0 ? length + *index : *index;
    if (at < 0 || at >= length) return reply::none();
    return reply::of(list[static_cast<std::size_t>(at)]);
  });
}

// "from to", both counted from the end if below 0: the first, and one past the last.
std::optional<std::pair<std::size_t, std::size_t>> range(words args, std::size_t length) {
  const auto from = integer(args[0]);
  const auto to = integer(args[1]);
  if (!from || !to) return std::nullopt;
  const auto all = static_cast<std::int64_t>(length);
  const auto first = std::max<std::int64_t>(0, *from < 0 ? all + *from : *from);
  const auto last = std::min(all - 1, *to < 0 ? all + *to : *to);
  if (first > last) return std::pair<std::size_t, std::size_t>{0, 0};
  return std::pair{static_cast<std::size_t>(first), static_cast<std::size_t>(last) + 1};
}

reply lrange(call_context& in, words args) {
  if (!range(args.subspan(1), 0)) return not_an_integer();
  return with<stored::list>(in, args[0], reply::list({}), [&](const auto& list) {
    const auto [first, end] = *range(args.subspan(1), list.size());
    std::vector<reply> some;
    for (auto i = first; i < end; ++i)
      some.push_back(reply::of(list[i]));
    return reply::list(std::move(some));
  });
}

reply lrem(call_context& in, words args) {
  const auto count = integer(args[1]);
  if (!count) return not_an_integer();
  return with<stored::list>(in, args[0], reply::of(0), [&](auto& list) {
    std::int64_t removed = 0;
    const auto most = *count == 0 ? std::numeric_limits<std::int64_t>::max() : std::abs(*count);
    const auto unwanted = [&](const std::string& one) {
      if (removed == most || one != args[2]) return false;
      ++removed;
      return true;
    };
    if (*count >= 0) {
      list.erase(std::remove_if(list.begin(), list.end(), unwanted), list.end());
    } else {
      list.erase(list.begin(), std::remove_if(list.rbegin(), list.rend(), unwanted).base());
    }
    drop_if_empty(in, args[0], list);
    return reply::of(removed);
  });
}

// ---- sorted sets -------------------------------------------------------------------------------

// Numbers as our scripts write them: digits, perhaps with a fraction.
std::optional<double> score(std::string_view text) {
  double value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string score_text(double value) {
  constexpr double exact_max = 9007199254740992.0;  // 2^53
  if (std::abs(value) <= exact_max && value == std::trunc(value)) {
    return std::to_string(static_cast<std::int64_t>(value));
  }
  std::array<char, 40> digits;
  const int length = std::snprintf(digits.data(), digits.size(), "%.17g", value);
  return {digits.data(), static_cast<std::size_t>(length)};
}

reply zadd(call_context& in, words args) {
  const bool only_new = args.size() > 1 && args[1] == "NX";
  const std::size_t first = only_new ? 2 : 1;
  if (args.size() <= first || (args.size() - first) % 2 != 0) {
    return reply::error("ERR syntax error");
  }
  std::vector<double> scores;
  for (std::size_t i = first; i < args.size(); i += 2) {
    const auto value = score(args[i]);
    if (!value) return reply::error("ERR value is not a valid float");
    scores.push_back(*value);
  }
  return with_made<stored::sorted_set>(in, args[0], [&](auto& set) {
    std::int64_t fresh = 0;
    for (std::size_t i = first + 1; i < args.size(); i += 2) {
      const auto value = scores[(i - first - 1) / 2];
      const auto at = set.scores.find(args[i]);
      if (at == set.scores.end()) {
        set.scores.emplace(args[i], value);
        ++fresh;
      } else if (only_new) {
        continue;
      } else {
        set.order.erase({at->second, at->first});
        at->second = value;
      }
      set.order.emplace(value, args[i]);
    }
    return reply::of(fresh);
  });
}

reply zrem(call_context& in, words args) {
  return remove_each<stored::sorted_set>(in, args, [](auto& set, std::string_view name) {
    const auto at = set.scores.find(name);
    if (at == set.scores.end()) return false;
    set.order.erase({at->second, at->first});
    set.scores.erase(at);
    return true;
  });
}

reply zrange_with_scores(call_context& in, words args) {
  if (args[3] != "WITHSCORES") return reply::error("ERR syntax error");
  if (!range(args.subspan(1), 0)) return not_an_integer();
  return with<stored::sorted_set>(in, args[0], reply::list({}), [&](const auto& set) {
    const auto [first, end] = *range(args.subspan(1), set.order.size());
    std::vector<reply> some;
    std::size_t i = 0;
    for (const auto& [value, name] : set.order) {
      if (i >= first && i < end) {
        some.push_back(reply::of(name));
        some.push_back(reply::of(score_text(value)));
      }
      ++i;
    }
    return reply::list(std::move(some));
  });
}

reply zpopmin(call_context& in, words args) {
  return with<stored::sorted_set>(in, args[0], reply::list({}), [&](auto& set) {
    const auto [value, name] = *set.order.begin();
    set.order.erase(set.order.begin());
    set.scores.erase(name);
    drop_if_empty(in, args[0], set);
    return reply::list({reply::of(name), reply::of(score_text(value))});
  });
}

// ---- the server --------------------------------------------------------------------------------

reply time(call_context& in, words) {
  return reply::list({reply::of(std::to_string(in.now_us / 1'000'000)),
                      reply::of(std::to_string(in.now_us % 1'000'000))});
}

reply publish(call_context& in, words args) {
  return reply::of(in.around.publish(args[0], args[1]));
}

// Of all that INFO says, the one line that our scripts read.
reply info(call_context& in, words) {
  return reply::of("# Server\r\nrun_id:" + in.around.run_id() + "\r\n");
}

// ------------------------------------------------------------------------------------------------

constexpr std::size_t any = std::numeric_limits<std::size_t>::max();

struct command {
  std::string_view name;
  reply (*run)(call_context&, words);
  std::size_t least;  // arguments, without the name
  std::size_t most;
};

constexpr std::array commands{
    command{"DEL", del, 1, any},
    command{"EXISTS", exists, 1, any},
    command{"GET", get, 1, 1},
    command{"GETRANGE", getrange, 3, 3},
    command{"HDEL", hdel, 2, any},
    command{"HGET", hget, 2, 2},
    command{"HGETALL", hgetall, 1, 1},
    command{"HINCRBY", hincrby, 3, 3},
    command{"HLEN", length<stored::hash>, 1, 1},
    command{"HMGET", hmget, 2, any},
    command{"HSET", hset, 3, any},
    command{"INFO", info, 0, 1},
    command{"LINDEX", lindex, 2, 2},
    command{"LLEN", length<stored::list>, 1, 1},
    command{"LPOP", lpop, 1, 1},
    command{"LRANGE", lrange, 3, 3},
    command{"LREM", lrem, 3, 3},
    command{"MGET", mget, 1, any},
    command{"PERSIST", persist, 1, 1},
    command{"PEXPIRE", pexpire, 2, 2},
    command{"PTTL", pttl, 1, 1},
    command{"PUBLISH", publish, 2, 2},
    command{"RPOP", rpop, 1, 1},
    command{"RPUSH", rpush, 2, any},
    command{"SET", set, 2, any},
    command{"TIME", time, 0, 0},
    command{"ZADD", zadd, 3, any},
    command{"ZCARD", length<stored::sorted_set>, 1, 1},
    command{"ZPOPMIN", zpopmin, 1, 1},
    command{"ZRANGE", zrange_with_scores, 4, 4},
    command{"ZREM", zrem, 2, any},
};

const command* named(std::string_view name) {
  // Only looked up, never walked.
  static const auto by_name = [] {
    std::unordered_map<std::string_view, const command*> all;
    for (const auto& one : commands)
      all.emplace(one.name, &one);
    return all;
  }();
  const auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : found->second;
}

}  // namespace

reply execute(keyspace& data, surroundings& around, std::span<const std::string_view> words) {
  const auto* which = words.empty() ? nullptr : named(words[0]);
  if (which == nullptr) return reply::error(std::string{unknown_command});
  const auto args = words.subspan(1);
  if (args.size() < which->least || args.size() > which->most) {
    return reply::error(std::string{wrong_arity});
  }
  call_context in{data, around, around.wall_us()};
  return which->run(in, args);
}

}  // namespace holdfast::sim
