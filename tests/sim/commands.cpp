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

// The value of a key if it has this type; `wrong` if it has another.
template <class T>
struct looked_up {
  T* value = nullptr;
  bool wrong = false;
};
template <class T>
looked_up<T> look(call_context& in, std::string_view key) {
  auto* found = in.data.find(key, in.now_ms());
  if (found == nullptr) return {};
  auto* value = std::get_if<T>(&found->value);
  return {value, value == nullptr};
}
// The same, made if it is not there.
template <class T>
looked_up<T> look_or_make(call_context& in, std::string_view key) {
  auto found = look<T>(in, key);
  if (found.value != nullptr || found.wrong) return found;
  return {&std::get<T>(in.data.put(key, {T{}, {}}).value), false};
}

reply text_or_none(const std::string* text) {
  return text == nullptr ? reply::none() : reply::of(*text);
}

const std::string* field_of(const stored::hash* in, std::string_view name) {
  if (in == nullptr) return nullptr;
  const auto found = in->find(name);
  return found == in->end() ? nullptr : &found->second;
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
  const auto found = look<std::string>(in, args[0]);
  return found.wrong ? wrong_type() : text_or_none(found.value);
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
  const auto found = look<std::string>(in, args[0]);
  if (found.wrong) return wrong_type();
  if (found.value == nullptr || (*from < 0 && *to < 0 && *from > *to)) return reply::of("");
  const auto length = static_cast<std::int64_t>(found.value->size());
  const auto start = std::max<std::int64_t>(0, *from < 0 ? length + *from : *from);
  const auto last = std::min(length - 1, std::max<std::int64_t>(0, *to < 0 ? length + *to : *to));
  if (start > last || length == 0) return reply::of("");
  return reply::of(found.value->substr(static_cast<std::size_t>(start),
                                       static_cast<std::size_t>(last - start + 1)));
}

reply mget(call_context& in, words args) {
  std::vector<reply> values;
  values.reserve(args.size());
  for (const auto key : args) {
    const auto found = look<std::string>(in, key);
    values.push_back(text_or_none(found.wrong ? nullptr : found.value));
  }
  return reply::list(std::move(values));
}

// ---- hashes ------------------------------------------------------------------------------------

reply hset(call_context& in, words args) {
  if (args.size() % 2 == 0) {
    return reply::error("ERR wrong number of arguments for 'hset' command");
  }
  const auto found = look_or_make<stored::hash>(in, args[0]);
  if (found.wrong) return wrong_type();
  std::int64_t fresh = 0;
  for (std::size_t i = 1; i < args.size(); i += 2) {
    const auto at = found.value->find(args[i]);
    if (at == found.value->end()) {
      found.value->emplace(args[i], args[i + 1]);
      ++fresh;
    } else {
      at->second = args[i + 1];
    }
  }
  return reply::of(fresh);
}

reply hget(call_context& in, words args) {
  const auto found = look<stored::hash>(in, args[0]);
  return found.wrong ? wrong_type() : text_or_none(field_of(found.value, args[1]));
}

reply hmget(call_context& in, words args) {
  const auto found = look<stored::hash>(in, args[0]);
  if (found.wrong) return wrong_type();
  std::vector<reply> fields;
  fields.reserve(args.size());
  for (const auto name : args.subspan(1))
    fields.push_back(text_or_none(field_of(found.value, name)));
  return reply::list(std::move(fields));
}

// In no order that anybody may rely on.
reply hgetall(call_context& in, words args) {
  const auto found = look<stored::hash>(in, args[0]);
  if (found.wrong) return wrong_type();
  std::vector<reply> all;
  if (found.value != nullptr) {
    for (const auto& [name, value] : *found.value) {
      all.push_back(reply::of(name));
      all.push_back(reply::of(value));
    }
  }
  return reply::list(std::move(all));
}

reply hdel(call_context& in, words args) {
  const auto found = look<stored::hash>(in, args[0]);
  if (found.wrong) return wrong_type();
  if (found.value == nullptr) return reply::of(0);
  std::int64_t count = 0;
  for (const auto name : args.subspan(1)) {
    const auto at = found.value->find(name);
    if (at == found.value->end()) continue;
    found.value->erase(at);
    ++count;
  }
  if (found.value->empty()) in.data.erase(args[0], in.now_ms());
  return reply::of(count);
}

reply hlen(call_context& in, words args) {
  const auto found = look<stored::hash>(in, args[0]);
  if (found.wrong) return wrong_type();
  return reply::of(found.value == nullptr ? 0 : static_cast<std::int64_t>(found.value->size()));
}

// ---- lists -------------------------------------------------------------------------------------

reply rpush(call_context& in, words args) {
  const auto found = look_or_make<stored::list>(in, args[0]);
  if (found.wrong) return wrong_type();
  for (const auto value : args.subspan(1))
    found.value->emplace_back(value);
  return reply::of(static_cast<std::int64_t>(found.value->size()));
}

reply pop(call_context& in, std::string_view key, bool from_front) {
  const auto found = look<stored::list>(in, key);
  if (found.wrong) return wrong_type();
  if (found.value == nullptr) return reply::none();
  auto taken = reply::of(std::move(from_front ? found.value->front() : found.value->back()));
  if (from_front) {
    found.value->pop_front();
  } else {
    found.value->pop_back();
  }
  if (found.value->empty()) in.data.erase(key, in.now_ms());
  return taken;
}
reply lpop(call_context& in, words args) { return pop(in, args[0], true); }
reply rpop(call_context& in, words args) { return pop(in, args[0], false); }

reply llen(call_context& in, words args) {
  const auto found = look<stored::list>(in, args[0]);
  if (found.wrong) return wrong_type();
  return reply::of(found.value == nullptr ? 0 : static_cast<std::int64_t>(found.value->size()));
}

reply lindex(call_context& in, words args) {
  // Redis looks at the key first here.
  const auto found = look<stored::list>(in, args[0]);
  if (found.wrong) return wrong_type();
  if (found.value == nullptr) return reply::none();
  const auto index = integer(args[1]);
  if (!index) return not_an_integer();
  const auto length = static_cast<std::int64_t>(found.value->size());
  const auto at = *index < 0 ? length + *index : *index;
  if (at < 0 || at >= length) return reply::none();
  return reply::of((*found.value)[static_cast<std::size_t>(at)]);
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
  const auto found = look<stored::list>(in, args[0]);
  if (found.wrong) return wrong_type();
  if (found.value == nullptr) return reply::list({});
  const auto [first, end] = *range(args.subspan(1), found.value->size());
  std::vector<reply> some;
  for (auto i = first; i < end; ++i)
    some.push_back(reply::of((*found.value)[i]));
  return reply::list(std::move(some));
}

reply lrem(call_context& in, words args) {
  const auto count = integer(args[1]);
  if (!count) return not_an_integer();
  const auto found = look<stored::list>(in, args[0]);
  if (found.wrong) return wrong_type();
  if (found.value == nullptr) return reply::of(0);
  auto& list = *found.value;
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
  if (list.empty()) in.data.erase(args[0], in.now_ms());
  return reply::of(removed);
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
  const auto found = look_or_make<stored::sorted_set>(in, args[0]);
  if (found.wrong) return wrong_type();
  auto& set = *found.value;
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
}

reply zrem(call_context& in, words args) {
  const auto found = look<stored::sorted_set>(in, args[0]);
  if (found.wrong) return wrong_type();
  if (found.value == nullptr) return reply::of(0);
  auto& set = *found.value;
  std::int64_t count = 0;
  for (const auto name : args.subspan(1)) {
    const auto at = set.scores.find(name);
    if (at == set.scores.end()) continue;
    set.order.erase({at->second, at->first});
    set.scores.erase(at);
    ++count;
  }
  if (set.scores.empty()) in.data.erase(args[0], in.now_ms());
  return reply::of(count);
}

reply zcard(call_context& in, words args) {
  const auto found = look<stored::sorted_set>(in, args[0]);
  if (found.wrong) return wrong_type();
  return reply::of(found.value == nullptr ? 0
                                          : static_cast<std::int64_t>(found.value->scores.size()));
}

reply zrange_with_scores(call_context& in, words args) {
  if (args[3] != "WITHSCORES") return reply::error("ERR syntax error");
  if (!range(args.subspan(1), 0)) return not_an_integer();
  const auto found = look<stored::sorted_set>(in, args[0]);
  if (found.wrong) return wrong_type();
  if (found.value == nullptr) return reply::list({});
  const auto [first, end] = *range(args.subspan(1), found.value->order.size());
  std::vector<reply> some;
  std::size_t i = 0;
  for (const auto& [value, name] : found.value->order) {
    if (i >= first && i < end) {
      some.push_back(reply::of(name));
      some.push_back(reply::of(score_text(value)));
    }
    ++i;
  }
  return reply::list(std::move(some));
}

reply zpopmin(call_context& in, words args) {
  const auto found = look<stored::sorted_set>(in, args[0]);
  if (found.wrong) return wrong_type();
  if (found.value == nullptr) return reply::list({});
  auto& set = *found.value;
  const auto [value, name] = *set.order.begin();
  set.order.erase(set.order.begin());
  set.scores.erase(name);
  if (set.scores.empty()) in.data.erase(args[0], in.now_ms());
  return reply::list({reply::of(name), reply::of(score_text(value))});
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
    command{"HLEN", hlen, 1, 1},
    command{"HMGET", hmget, 2, any},
    command{"HSET", hset, 3, any},
    command{"INFO", info, 0, 1},
    command{"LINDEX", lindex, 2, 2},
    command{"LLEN", llen, 1, 1},
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
    command{"ZCARD", zcard, 1, 1},
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
