#include "stores/redlock/node_set.hpp"

#include <algorithm>
#include <array>

#include "core/planted.hpp"
#include "redlock_scripts.hpp"
#include "runtime/clock.hpp"
#include "runtime/host.hpp"
#include "runtime/random.hpp"
#include "stores/redis/layout.hpp"
#include "stores/redis/script_values.hpp"
#include "stores/redis/server_error.hpp"

namespace holdfast::stores::redlock {

namespace {

using redis::command;
using redis::text_of;
using std::chrono::milliseconds;

// Long enough that a busy client sweeps seldom, short enough that late answers are acted on soon.
constexpr core::duration sweep_pause = milliseconds{50};
// How long a client that goes stays for nodes that it is about to let in: two looks, and a moment.
constexpr core::duration let_in_patience = milliseconds{2500};

std::vector<std::string> sorted_names(const redlock_config& config) {
  std::vector<std::string> names;
  for (const auto& one : config.nodes)
    names.push_back(one.node);
  std::sort(names.begin(), names.end());
  return names;
}

// FNV-1a: tells sets apart that differ by mistake, which is all it is for.
std::string hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3ULL;
  }
  constexpr std::string_view hex = "0123456789abcdef";
  std::string shown;
  for (int shift = 60; shift >= 0; shift -= 4)
    shown += hex[(hash >> shift) & 0xf];
  return shown;
}

std::string_view line_of(std::string_view info, std::string_view field) {
  const auto at = info.find(field);
  if (at == std::string_view::npos) return {};
  info.remove_prefix(at + field.size());
  return info.substr(0, info.find_first_of("\r\n"));
}

std::string run_id_in(std::string_view info) { return std::string{line_of(info, "run_id:")}; }

core::admission_rule admission_rule_for(std::size_t nodes) {
  core::admission_rule rule{nodes};
  if (core::planted(core::planted_bug::enough_sources)) rule.intact_min = 1;
  return rule;
}

}  // namespace

set_identity identity_of(const redlock_config& config) {
  const auto sorted = sorted_names(config);
  set_identity set;
  set.description = describe_set(sorted, config.epoch, config.max_ttl);
  const auto hash = hash_of(set.description);
  for (const auto& one : config.nodes) {
    const auto place = std::find(sorted.begin(), sorted.end(), one.node) - sorted.begin();
    set.configs.push_back(hash + "-" + std::to_string(place));
  }
  set.epoch = config.epoch;
  set.max_ttl = config.max_ttl;
  return set;
}

request as_request(const record_script& script) {
  const std::vector<std::string_view> args{script.args.begin(), script.args.end()};
  return {*script.which, record_keys, args};
}

// Loads the scripts of an acquisition, and looks whether the node may vote.
std::vector<node_connection::outgoing> node_set::first_words(std::size_t node) {
  std::vector<node_connection::outgoing> all;
  for (const auto* script : {&scripts::acquire, &scripts::raise, &scripts::release}) {
    command load{3};
    load.arg("SCRIPT").arg("LOAD").arg(script->source);
    all.push_back({request{load}, nullptr});
  }
  const auto look = standing_script(identity_, node, runtime::wall_ms(), {}, with_counters::no);
  all.push_back({as_request(look), [this](const auto& answer) {
                   const bool waits =
                       answer && core::has_to_wait(read_standing(**answer, config.epoch).report);
                   if (waits) look_after_nodes();
                 }});
  return all;
}

std::string node_set::describe_us(std::string_view label) const {
  return redis::describe_holder(host, runtime::process_id(), label);
}

node_set::node_set(redlock_config given, std::shared_ptr<runtime::background> background, role as)
    : config{std::move(given)},
      host{runtime::host_name()},
      polling{std::make_shared<redlock::polling>(config.spin)},
      as_{as},
      identity_{identity_of(config)},
      background_{std::move(background)},
      // One thread for each node that hangs while it is connected to, and some to be had then.
      connecting_{std::make_shared<runtime::background>(config.nodes.size() + 2)},
      rejoining_{identity_, admission_rule_for(config.nodes.size()),
                 [] { return std::string{runtime::fresh_owner().text()}; }},
      sweeps_{*background_, sweep_pause, [this] { return sweep(); }},
      run_ids_(config.nodes.size()) {
  // A connection must not be given up while its node still has time to answer.
  const auto patience = std::max(config.node_timeout, redis::channel::posted_reply_max);
  for (std::size_t i = 0; i < config.nodes.size(); ++i) {
    const auto dial = config.make_dialer(config.nodes[i]);
    const auto connection = [&](node_connection::hooks tell) {
      return std::make_shared<node_connection>(dial, patience, connecting_, std::move(tell));
    };
    names_.push_back(config.nodes[i].node);
    calls_.push_back(connection(hooks_of(i)));
    // Renewals only want to know whose connection it is.
    renewals_.push_back(connection({.identify = run_id_in}));
  }
  turns_ = std::make_shared<turn_inbox>(calls_, connecting_);
}

void node_set::close() {
  for (const auto* all : {&calls_, &renewals_}) {
    for (const auto& one : *all)
      one->close();
  }
  turns_->close();
  connecting_->stop();
}

node_connection::hooks node_set::hooks_of(std::size_t node) {
  return {.identify = [this, node](auto info) { return check_identity(node, info); },
          .first = [this, node] { return first_words(node); },
          .opened =
              [this, before = std::make_shared<std::atomic<bool>>(false)] {
                if (before->exchange(true) && events.reconnected) events.reconnected();
              },
          .unread = [this] { watch_replies(); }};
}

namespace {

// Why a server cannot be a node: what it grants may be lost without its being restarted.
std::string unfit_as_node(std::string_view info) {
  if (line_of(info, "redis_mode:") == "cluster") {
    return "is a member of a cluster, whose nodes are not independent: redlock:// takes servers of "
           "their own";
  }
  if (line_of(info, "role:") == "slave") {
    return "is a replica, and what its master has not sent yet is lost with the master: name "
           "servers that replicate nobody";
  }
  const auto limit = line_of(info, "maxmemory:");
  const auto policy = line_of(info, "maxmemory_policy:");
  if (!limit.empty() && limit != "0" && policy != "noeviction") {
    return "may evict locks (maxmemory-policy " + std::string{policy} +
           "): set maxmemory-policy noeviction";
  }
  return {};
}

}  // namespace

result<std::string> node_set::check_identity(std::size_t node, std::string_view info) {
  const auto& name = names_[node];
  if (const auto why = unfit_as_node(info); !why.empty()) {
    return fail(errc::incompatible, name + " " + why);
  }
  // It would answer all else with just that, and is looked at anew when it has its data.
  if (line_of(info, "loading:") == "1") {
    return fail(redis::translate_error("LOADING Redis is loading the dataset in memory", name));
  }
  auto run_id = run_id_in(info);
  const std::lock_guard guard{m_};
  run_ids_[node] = run_id;
  for (std::size_t i = 0; i < run_ids_.size(); ++i) {
    if (i != node && !run_id.empty() && run_ids_[i] == run_id) {
      return fail(errc::incompatible, name + " and " + names_[i] +
                                          " are the same server, and would vote twice: name "
                                          "each server once");
    }
  }
  return run_id;
}

std::shared_ptr<gather> node_set::ask_all(silent_nodes are) const {
  return std::make_shared<gather>(calls_, config.node_timeout, nullptr, are);
}

void node_set::ask_every(const request_of& what, core::time_point until, caller& by,
                         on_answers done, silent_nodes are) const {
  std::vector<std::optional<request>> words;
  const auto first = ask_all(are);
  for (std::size_t i = 0; i < size(); ++i) {
    words.push_back(what(i));
    if (words[i]) first->ask(i, *words[i]);
  }
  first->collect(
      until, by,
      [this, until, are, &by, words = std::move(words), done = std::move(done)](auto said) {
        const auto second = ask_all(are);
        bool any = false;
        for (std::size_t i = 0; i < said.size(); ++i) {
          if (!said[i] || !was_cut_off(*said[i])) continue;
          any = true;
          second->ask(i, *words[i]);
        }
        if (!any) return done(std::move(said));
        const auto once = std::make_shared<gather::answers>(std::move(said));
        second->collect(until, by, [once, done](auto again) {
          for (std::size_t i = 0; i < once->size(); ++i) {
            if (again[i]) (*once)[i] = std::move(again[i]);
          }
          done(std::move(*once));
        });
      });
}

std::vector<std::vector<node_view>> node_set::inspect(std::span<const std::string> locks,
                                                      core::time_point until) const {
  std::vector<std::string> queues;
  queues.reserve(locks.size());
  std::vector<std::string_view> keys{record_key};
  for (const auto& lock : locks) {
    keys.push_back(lock);
    keys.push_back(queues.emplace_back(waiters_key(lock)));
  }
  const auto shown = std::to_string(waiters_shown_max);
  const auto look = [&](std::size_t i) {
    const std::array<std::string_view, 2> args{config_of(i), shown};
    return request{scripts::inspect, keys, args};
  };
  const auto answers = wait_here<gather::answers>(
      [&](caller& by, auto done) { ask_every(look, until, by, std::move(done)); });
  std::vector<std::vector<node_view>> all(locks.size());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    auto views = read_views(answers[i], locks.size(), names_[i], identity_);
    for (std::size_t k = 0; k < views.size(); ++k)
      all[k].push_back(std::move(views[k]));
  }
  return all;
}

bool node_set::sweep() {
  bool more = false;
  for (const auto* all : {&calls_, &renewals_}) {
    for (const auto& one : *all)
      more = one->sweep() || more;
  }
  return more;
}

void node_set::flush(core::time_point until) noexcept {
  const auto pings = ask_all();
  command ping{1};
  ping.arg("PING");
  // Replies come in order: with these, all before them have come.
  for (std::size_t i = 0; i < size(); ++i) {
    const auto on = calls_[i]->current();
    if (on && !on->idle()) pings->ask(i, request{ping});
  }
  static_cast<void>(pings->collect(until));
  std::unique_lock held{m_};
  let_in_.wait_for(held, let_in_patience, [this] { return !lets_in_; });
}

}  // namespace holdfast::stores::redlock
