#include "stores/redis/examine.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "runtime/clock.hpp"
#include "scripts.hpp"
#include "stores/redis/channel.hpp"
#include "stores/redis/layout.hpp"
#include "stores/redis/script_call.hpp"
#include "stores/redis/script_values.hpp"
#include "stores/redis/server_error.hpp"

namespace holdfast::stores::redis {

namespace {

using core::server_facts;

constexpr int times_asked = 11;  // an odd number has a middle
constexpr core::duration pause_between_times = std::chrono::milliseconds{100};
// One part in so many: client_options::clock_drift_per_mille, unless it is set otherwise.
constexpr int drift_of_clocks = 100;
constexpr std::size_t refusal_shown_max = 100;
// Elements of what inspect.lua says of one key.
constexpr std::size_t elements_of_a_key = 4;
// What clocks may differ by and still be read alike, beside the round trip.
constexpr core::duration read_doubt = std::chrono::milliseconds{1};

std::string one_command(std::initializer_list<std::string_view> words) {
  command text{words.size()};
  for (const auto word : words)
    text.arg(word);
  return text.bytes();
}

// The lines "name:value" of INFO.
std::map<std::string, std::string, std::less<>> read_info(std::string_view text) {
  std::map<std::string, std::string, std::less<>> all;
  while (!text.empty()) {
    const auto end = text.find('\n');
    auto line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const auto colon = line.find(':');
    if (colon != std::string_view::npos) all.emplace(line.substr(0, colon), line.substr(colon + 1));
  }
  return all;
}

// The server's clock was read between two moments of ours.
struct moment {
  core::time_point sent;
  core::time_point received;
  core::duration theirs;

  // How far it has moved against ours until then, beyond what delays and the drift that is reckoned
  // with explain.
  [[nodiscard]] core::duration step_until(const moment& later) const {
    const auto passed = later.received - sent;
    const auto tolerated = passed / drift_of_clocks + read_doubt;
    const auto most = (later.theirs - theirs) - (later.sent - received);
    const auto least = (later.theirs - theirs) - passed;
    if (least > tolerated) return least;
    return most < -tolerated ? most : core::duration::zero();
  }
};

class look {
 public:
  look(channel& on, const user_scope& user, core::time_point until, server_facts& to)
      : on_{on},
        user_{user},
        until_{until},
        // What is left must do for the rest.
        walks_end_{runtime::now() + (until - runtime::now()) / 2},
        to_{to} {}

  // False: the connection has ended, and `trouble` says why.
  [[nodiscard]] bool at_everything() {
    return at_info() && at_log() && at_clock() && at_keys() && at_records() && at_rights();
  }

 private:
  // Null: it was refused, which is noted. False in `alive_`: nothing can be asked any more.
  reply ask(const std::string& bytes, std::string_view for_what) {
    auto answer = on_.call(bytes, until_, true);
    if (!answer) {
      alive_ = false;
      to_.trouble = std::move(answer.error());
      return {};
    }
    if ((*answer)->type != reply_kind::error) return std::move(*answer);
    const auto note =
        std::string{for_what} + " (" + escape(text_of(**answer).substr(0, refusal_shown_max)) + ")";
    auto& noted = to_.unseen;
    if (!for_what.empty() && std::find(noted.begin(), noted.end(), note) == noted.end()) {
      noted.push_back(note);
    }
    return {};
  }

  bool at_info() {
    const auto said = ask(one_command({"INFO"}), "what INFO says");
    if (!said) return alive_;
    const auto info = read_info(text_of(*said));
    const auto text = [&](std::string_view name) {
      const auto found = info.find(name);
      return found == info.end() ? std::string{} : escape(found->second);
    };
    const auto number = [&](std::string_view name) { return read_number(text(name)); };
    to_.version = text("redis_version");
    to_.run_id = text("run_id");
    to_.is_replica = text("role") == "slave";
    to_.in_cluster = text("cluster_enabled") == "1";
    if (!text("connected_slaves").empty()) to_.replicas = number("connected_slaves");
    // It is only said where the server wants any.
    to_.wants_replicas = !text("min_slaves_good_slaves").empty();
    if (!text("aof_enabled").empty()) to_.keeps_log = text("aof_enabled") == "1";
    to_.log_fails = text("aof_last_write_status") == "err";
    to_.snapshot_fails = text("rdb_last_bgsave_status") == "err";
    to_.eviction = text("maxmemory_policy");
    to_.memory_max = number("maxmemory");
    to_.memory_used = number("used_memory");
    to_.evicted = number("evicted_keys");
    if (!text("uptime_in_seconds").empty()) {
      to_.up_for = std::chrono::seconds{number("uptime_in_seconds")};
    }
    return true;
  }

  bool at_log() {
    if (to_.keeps_log != true) return true;
    const auto said = ask(one_command({"CONFIG", "GET", "appendfsync"}), "appendfsync");
    if (!said) return alive_;
    const auto fields = elements_of(*said);
    if (fields.size() == 2) to_.syncs_log = escape(text_of(*fields[1]));
    return true;
  }

  // For about a second, so that a clock that is being stepped is seen at it.
  bool at_clock() {
    std::vector<core::duration> took;
    std::optional<moment> first;
    for (int i = 0; i < times_asked; ++i) {
      if (i > 0) std::this_thread::sleep_for(pause_between_times);
      moment at{runtime::now(), {}, {}};
      const auto said = ask(one_command({"TIME"}), i == 0 ? "its clock" : "");
      at.received = runtime::now();
      const auto ours = runtime::wall_now().time_since_epoch();
      if (!said) return alive_;
      const auto fields = elements_of(*said);
      if (fields.size() != 2) return true;
      at.theirs = read_time(*fields[0], *fields[1]);
      if (!first) first = at;
      const auto step = first->step_until(at);
      if (step != core::duration::zero()) to_.clock_stepped = step;
      const auto trip = at.received - at.sent;
      // The quickest answer says most.
      if (took.empty() || trip < *std::min_element(took.begin(), took.end())) {
        to_.clock_ahead = at.theirs - ours + trip / 2;
        to_.clock_doubt = trip / 2 + read_doubt;
      }
      took.push_back(trip);
    }
    std::nth_element(took.begin(), took.begin() + times_asked / 2, took.end());
    to_.round_trip = took[times_asked / 2];
    return true;
  }

  // Walks keys in steps that stop no server, as far as there is time. `at_batch` says whether the
  // connection still works.
  template <class AtBatch>
  bool walk(std::string_view pattern, std::size_t most, const std::string& what, AtBatch at_batch) {
    std::string cursor = "0";
    std::size_t seen = 0;
    do {
      const auto said = ask(one_command({"SCAN", cursor, "MATCH", pattern, "COUNT", "500"}), what);
      if (!said) return alive_;
      const auto fields = elements_of(*said);
      if (fields.size() != 2) return true;
      cursor = text_of(*fields[0]);
      std::vector<std::string> keys;
      for (const auto* key : elements_of(*fields[1]))
        keys.emplace_back(text_of(*key));
      seen += keys.size();
      if (!keys.empty() && !in_batches(keys, at_batch)) return false;
    } while (cursor != "0" && seen < most && runtime::now() < walks_end_);
    walked_all_ = cursor == "0";
    return true;
  }

  // Of a cluster one by one: keys of several slots may not travel together.
  template <class AtBatch>
  bool in_batches(std::vector<std::string>& keys, AtBatch at_batch) {
    if (!to_.in_cluster) return at_batch(keys);
    for (auto& key : keys) {
      std::vector<std::string> one{std::move(key)};
      if (!at_batch(one)) return false;
    }
    return true;
  }

  bool at_keys() {
    to_.keys.emplace();
    const auto pattern = scan_pattern(user_.prefix, "*");
    const bool alive = walk(pattern, keys_examined_max, "the keys of locks", [&](auto& keys) {
      std::erase_if(keys, [](const auto& key) { return key.starts_with(reserved_prefix); });
      return keys.empty() || at_locks(keys);
    });
    to_.keys->complete = walked_all_;
    return alive;
  }

  bool at_locks(const std::vector<std::string>& keys) {
    std::vector<std::string> queues;
    std::vector<std::string_view> names;
    for (const auto& key : keys)
      queues.push_back(lock_keys{key}.queue);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      names.push_back(keys[i]);
      names.push_back(queues[i]);
    }
    const std::array<std::string_view, 1> shown{"1"};
    const auto said = ask(script_call{scripts::inspect, names, shown}.by_source(), "locks");
    if (!said) return alive_;
    const auto fields = elements_of(*said);
    for (std::size_t i = 0; i < keys.size() && (i + 1) * elements_of_a_key <= fields.size(); ++i)
      at_lock(keys[i], *fields[i * elements_of_a_key], fields[i * elements_of_a_key + 1]->integer);
    return true;
  }

  void at_lock(const std::string& key, const reply_value& value, long long pttl) {
    constexpr long long no_key = -2;
    constexpr long long no_expiry = -1;
    if (pttl == no_key || value.type == reply_kind::array) return;  // gone, or of several holders
    auto& keys = *to_.keys;
    const auto name = escape(key);
    if (value.type != reply_kind::text) return keys.foreign.add(name);
    const auto holder = parse_holder(text_of(value));
    if (!holder) return keys.newer.add(name);
    if (holder->foreign) return keys.foreign.add(name);
    if (holder->token == fencing_token{}) return keys.damaged.add(name);
    if (pttl == no_expiry) keys.without_expiry.add(name);
  }

  bool at_records() {
    const auto pattern = std::string{reserved_prefix} + "*}:slot";
    return walk(pattern, records_examined_max, "token counters", [&](const auto& keys) {
      const std::vector<std::string_view> names{keys.begin(), keys.end()};
      const auto said =
          ask(script_call{scripts::examine_records, names, {}}.by_source(), "token counters");
      if (!said) return alive_;
      const auto fields = elements_of(*said);
      for (std::size_t i = 0; i < keys.size() && 2 * i + 1 < fields.size(); ++i)
        at_record(escape(keys[i]), text_of(*fields[2 * i]), fields[2 * i + 1]->integer);
      return true;
    });
  }

  void at_record(const std::string& name, std::string_view token, long long pttl) {
    auto& keys = *to_.keys;
    const bool is_number =
        !token.empty() && token.find_first_not_of("0123456789") == std::string_view::npos;
    if (!is_number) keys.damaged_record.add(name);
    if (pttl >= 0) keys.expiring_record.add(name);
  }

  bool ended(const failure& why) {
    to_.trouble = why;
    return false;
  }

  bool at_rights() {
    auto missing = missing_rights(on_, user_, until_);
    if (!missing) return ended(missing.error());
    to_.missing_rights = std::move(*missing);
    return true;
  }

  channel& on_;
  const user_scope& user_;
  const core::time_point until_;
  const core::time_point walks_end_;
  server_facts& to_;
  bool alive_ = true;
  bool walked_all_ = true;
};

}  // namespace

core::server_facts examine(const endpoint& where, const user_scope& user, core::time_point until) {
  server_facts facts;
  facts.node = where.node;
  std::unique_ptr<runtime::stream> over;
  make_dialer(where)->dial(until, [&](auto got) {
    if (got) {
      over = std::move(*got);
    } else {
      facts.trouble = std::move(got.error());
    }
  });
  if (!over) return facts;
  channel on{std::move(over), where.node, core::duration::zero(), until - runtime::now()};
  if (!look{on, user, until, facts}.at_everything()) {
    server_facts nothing;
    nothing.node = std::move(facts.node);
    nothing.trouble = std::move(facts.trouble);
    return nothing;
  }
  return facts;
}

}  // namespace holdfast::stores::redis
