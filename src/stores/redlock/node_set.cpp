#include "stores/redlock/node_set.hpp"

#include <algorithm>
#include <array>

#include "redlock_scripts.hpp"
#include "runtime/clock.hpp"
#include "runtime/host.hpp"
#include "runtime/random.hpp"
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

}  // namespace

request as_request(const record_script& script) {
  const std::vector<std::string_view> args{script.args.begin(), script.args.end()};
  return {*script.which, record_keys, args};
}

node_set::node_set(redlock_config given, std::shared_ptr<runtime::background> background, role as)
    : config{std::move(given)},
      host{runtime::host_name()},
      description{describe_set(sorted_names(config), config.epoch, config.max_ttl)},
      polling{std::make_shared<redlock::polling>(config.spin)},
      as_{as},
      background_{std::move(background)},
      // One thread for each node that hangs while it is connected to, and some to be had then.
      connecting_{std::make_shared<runtime::background>(config.nodes.size() + 2)},
      run_ids_(config.nodes.size()) {}

void node_set::start() {
  const auto sorted = sorted_names(config);
  const auto hash = hash_of(description);
  // A connection must not be given up while its node still has time to answer.
  const auto patience = std::max(config.node_timeout, redis::channel::posted_reply_max);
  std::vector<std::shared_ptr<line>> all;
  for (std::size_t i = 0; i < config.nodes.size(); ++i) {
    const auto& where = config.nodes[i];
    const auto place = std::find(sorted.begin(), sorted.end(), where.node) - sorted.begin();
    node one;
    one.name = where.node;
    one.config = hash + "-" + std::to_string(place);
    const auto dial = config.make_dialer(where);
    one.calls = std::make_shared<line>(dial, patience, connecting_, hooks_of(i));
    line::hooks renewing;
    renewing.prepare = [this, i](redis::channel& fresh,
                                 core::time_point until) -> result<std::string> {
      const auto told = ask_who(i, fresh, until);
      if (!told) return fail(told.error());
      return std::string{line_of(text_of(**told), "run_id:")};
    };
    one.renewals = std::make_shared<line>(dial, patience, connecting_, std::move(renewing));
    names_.push_back(where.node);
    identity_.configs.push_back(one.config);
    all.push_back(one.calls);
    nodes_.push_back(std::move(one));
  }
  identity_.description = description;
  identity_.epoch = config.epoch;
  identity_.max_ttl = config.max_ttl;
  rejoining_.emplace(identity_, core::admission_rule{nodes_.size()},
                     [] { return std::string{runtime::fresh_owner().text()}; });
  turns_ = std::make_unique<turn_inbox>(std::move(all), connecting_);
}

void node_set::close() {
  {
    std::unique_lock held{m_};
    let_in_.wait_for(held, let_in_patience, [this] { return !lets_in_; });
  }
  for (const auto& one : nodes_) {
    one.calls->close();
    one.renewals->close();
  }
  turns_->close();
  connecting_->stop();
}

line::hooks node_set::hooks_of(std::size_t node) {
  line::hooks tell;
  tell.prepare = [this, node](redis::channel& fresh, core::time_point until) {
    return prepare(node, fresh, until);
  };
  tell.opened = [this, before = std::make_shared<std::atomic<bool>>(false)] {
    if (before->exchange(true) && events.reconnected) events.reconnected();
  };
  tell.unread = [this] { watch_replies(); };
  return tell;
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

result<std::string> node_set::check_identity(std::size_t node, const redis::reply_value& info) {
  const auto& name = nodes_[node].name;
  if (const auto why = unfit_as_node(text_of(info)); !why.empty()) {
    return fail(errc::incompatible, name + " " + why);
  }
  std::string run_id{line_of(text_of(info), "run_id:")};
  const std::lock_guard guard{m_};
  run_ids_[node] = run_id;
  for (std::size_t i = 0; i < run_ids_.size(); ++i) {
    if (i != node && !run_id.empty() && run_ids_[i] == run_id) {
      return fail(errc::incompatible, name + " and " + nodes_[i].name +
                                          " are the same server, and would vote twice: name "
                                          "each server once");
    }
  }
  return run_id;
}

result<redis::reply> node_set::say(std::size_t node, redis::channel& fresh,
                                   const std::string& bytes, core::time_point until) const {
  auto answer = fresh.call(bytes, until, false);
  if (answer && (*answer)->type == redis::reply_kind::error) {
    return fail(redis::translate_error(text_of(**answer), nodes_[node].name));
  }
  return answer;
}

result<redis::reply> node_set::ask_who(std::size_t node, redis::channel& fresh,
                                       core::time_point until) const {
  command info{1};
  info.arg("INFO");
  return say(node, fresh, info.bytes(), until);
}

// A fresh connection: whose is it, does it know the scripts, may it vote.
result<std::string> node_set::prepare(std::size_t node, redis::channel& fresh,
                                      core::time_point until) {
  const auto told = ask_who(node, fresh, until);
  if (!told) return fail(told.error());
  auto run_id = check_identity(node, **told);
  if (!run_id) return run_id;
  for (const auto* script : {&scripts::acquire, &scripts::raise, &scripts::release}) {
    command load{3};
    load.arg("SCRIPT").arg("LOAD").arg(script->source);
    if (const auto loaded = say(node, fresh, load.bytes(), until); !loaded) {
      return fail(loaded.error());
    }
  }
  const auto look = as_request(look_script(identity_, node, runtime::wall_ms(), with_counters::no));
  const auto told_standing = say(node, fresh, look.as_source(*run_id), until);
  if (!told_standing) return fail(told_standing.error());
  if (core::has_to_wait(read_standing(**told_standing, config.epoch).report)) look_after_nodes();
  return run_id;
}

round::lines node_set::calls() const {
  round::lines all;
  for (const auto& one : nodes_)
    all.push_back(one.calls);
  return all;
}

round::lines node_set::renewals() const {
  round::lines all;
  for (const auto& one : nodes_)
    all.push_back(one.renewals);
  return all;
}

std::shared_ptr<question> node_set::ask_all(silent_nodes are) const {
  return std::make_shared<question>(calls(), config.node_timeout, nullptr, are);
}

question::answers node_set::ask_every(const request_of& what, core::time_point until,
                                      silent_nodes are) const {
  const auto ask = [&](question& asked, std::size_t node) {
    if (const auto words = what(node)) asked.ask(node, *words);
  };
  const auto first = ask_all(are);
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    ask(*first, i);
  auto answers = first->gather(until);
  const auto second = ask_all(are);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (answers[i] && was_cut_off(*answers[i])) ask(*second, i);
  }
  auto again = second->gather(until);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (again[i]) answers[i] = std::move(again[i]);
  }
  return answers;
}

question::answers node_set::inspect(std::span<const std::string> locks,
                                    core::time_point until) const {
  std::vector<std::string> lines;
  lines.reserve(locks.size());
  std::vector<std::string_view> keys{record_key};
  for (const auto& lock : locks) {
    keys.push_back(lock);
    keys.push_back(lines.emplace_back(waiters_key(lock)));
  }
  const auto shown = std::to_string(waiters_shown_max);
  const auto look = [&](std::size_t i) {
    const std::array<std::string_view, 2> args{nodes_[i].config, shown};
    return request{scripts::inspect, keys, args};
  };
  return ask_every(look, until);
}

void node_set::watch_replies() {
  if (sweep_planned_.exchange(true)) return;
  const bool planned =
      background_->run_at(core::after(runtime::now(), sweep_pause), [weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->sweep();
      });
  if (!planned) sweep_planned_ = false;
}

void node_set::sweep() {
  sweep_planned_ = false;
  bool more = false;
  for (const auto& one : nodes_) {
    more = one.calls->sweep() || more;
    more = one.renewals->sweep() || more;
  }
  if (more) watch_replies();
}

void node_set::flush(core::time_point until) noexcept {
  const auto pings = ask_all();
  command ping{1};
  ping.arg("PING");
  // Replies come in order: with these, all before them have come.
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const auto on = nodes_[i].calls->current();
    if (on && !on->idle()) pings->ask(i, request{ping});
  }
  static_cast<void>(pings->gather(until));
}

}  // namespace holdfast::stores::redlock
