#include "stores/redlock/node_set.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "redlock_scripts.hpp"
#include "runtime/clock.hpp"
#include "runtime/host.hpp"
#include "stores/redis/script_values.hpp"
#include "stores/redis/server_error.hpp"

namespace holdfast::stores::redlock {

namespace {

using redis::command;
using redis::elements_of;
using redis::text_of;
using std::chrono::milliseconds;

// Long enough that a busy client sweeps seldom, short enough that late answers are acted on soon.
constexpr core::duration sweep_pause = milliseconds{50};
// How long a look at the nodes may take, and the most between two while one of them may not vote.
constexpr core::duration look_patience = std::chrono::seconds{1};
constexpr core::duration look_pause_max = std::chrono::seconds{1};
constexpr core::duration look_pause_min = milliseconds{20};

std::vector<std::string> sorted_names(const redlock_config& config) {
  std::vector<std::string> names;
  for (const auto& one : config.nodes)
    names.push_back(one.node);
  std::sort(names.begin(), names.end());
  return names;
}

std::string describe(const redlock_config& config) {
  std::string text;
  for (const auto& one : sorted_names(config))
    text += (text.empty() ? "" : ",") + one;
  return text + " (epoch " + std::to_string(config.epoch) + ", max_ttl " +
         redis::milliseconds_text(config.max_ttl) + " ms)";
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

constexpr std::array<std::string_view, 1> record_keys{record_key};

}  // namespace

node_set::node_set(redlock_config given, std::shared_ptr<runtime::background> background)
    : config{std::move(given)},
      host{runtime::host_name()},
      description{describe(config)},
      polling{std::make_shared<redlock::polling>(config.spin)},
      background_{std::move(background)},
      // One thread for each node that hangs while it is connected to, and some to be had then.
      connecting_{std::make_shared<runtime::background>(config.nodes.size() + 2)},
      run_ids_(config.nodes.size()) {}

void node_set::start() {
  const auto sorted = sorted_names(config);
  const auto hash = hash_of(description);
  by_name_.resize(config.nodes.size());
  // A connection must not be given up while its node still has time to answer.
  const auto patience = std::max(config.node_timeout, redis::channel::posted_reply_max);
  std::vector<std::shared_ptr<line>> all;
  for (std::size_t i = 0; i < config.nodes.size(); ++i) {
    const auto& where = config.nodes[i];
    const auto place = std::find(sorted.begin(), sorted.end(), where.node) - sorted.begin();
    by_name_[static_cast<std::size_t>(place)] = i;
    node one;
    one.name = where.node;
    one.config = hash + "-" + std::to_string(place);
    one.calls = std::make_shared<line>(where, patience, connecting_, hooks_of(i));
    line::hooks renewing;
    renewing.prepare = [this, i](redis::channel& fresh,
                                 core::time_point until) -> result<std::string> {
      const auto told = ask_who(i, fresh, until);
      if (!told) return fail(told.error());
      return std::string{line_of(text_of(**told), "run_id:")};
    };
    one.renewals = std::make_shared<line>(where, patience, connecting_, std::move(renewing));
    names_.push_back(where.node);
    all.push_back(one.calls);
    nodes_.push_back(std::move(one));
  }
  hints_ = std::make_unique<hints>(std::move(all), majority(), connecting_);
}

void node_set::close() {
  for (const auto& one : nodes_) {
    one.calls->close();
    one.renewals->close();
  }
  hints_->close();
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

result<std::string> node_set::check_identity(std::size_t node, const redisReply& info) {
  const auto& name = nodes_[node].name;
  if (line_of(text_of(info), "redis_mode:") == "cluster") {
    return fail(errc::incompatible,
                name +
                    " is a member of a cluster, whose nodes are not independent: redlock:// takes "
                    "servers of their own");
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
  if (answer && (*answer)->type == REDIS_REPLY_ERROR) {
    return fail(redis::translate_error(text_of(**answer), nodes_[node].name));
  }
  return answer;
}

result<redis::reply> node_set::ask_who(std::size_t node, redis::channel& fresh,
                                       core::time_point until) const {
  command info{2};
  info.arg("INFO").arg("server");
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
  const auto max_ttl = redis::milliseconds_text(config.max_ttl);
  const std::array<std::string_view, 3> args{nodes_[node].config, description, max_ttl};
  const request enrol{scripts::enrol, record_keys, args};
  const auto enrolled = say(node, fresh, enrol.as_source(*run_id), until);
  if (!enrolled) return fail(enrolled.error());
  const auto fields = elements_of(**enrolled);
  const bool votes = !fields.empty() && (fields[0]->integer == 1 || fields[0]->integer == 3);
  if (!votes) look_after_nodes();
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

std::shared_ptr<question> node_set::ask_all() const {
  return std::make_shared<question>(calls(), config.node_timeout, nullptr);
}

core::first_asked node_set::ask_first(unsigned slot, core::rivals others,
                                      core::time_point now) const {
  std::vector<core::node_habit> habits;
  habits.reserve(nodes_.size());
  for (const auto i : by_name_)
    habits.push_back(nodes_[i].calls->habit(now));
  auto first = core::ask_first(habits, slot % nodes_.size(), others, now);
  for (auto& one : first.nodes)
    one = by_name_[one];
  return first;
}

void node_set::soon(std::function<void()> task) {
  {
    const std::lock_guard guard{m_};
    if (later_.size() < later_max) {
      later_.push_back(std::move(task));
      task = nullptr;
    }
  }
  if (task) task();
  watch_replies();
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
  std::vector<std::function<void()>> due;
  {
    const std::lock_guard guard{m_};
    due = std::exchange(soon_, std::exchange(later_, {}));
    more = !soon_.empty();
  }
  for (const auto& task : due)
    task();
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

void node_set::look_after_nodes() {
  if (looking_.exchange(true)) return;
  const bool queued = background_->run([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->admit_those_who_may();
  });
  if (!queued) looking_ = false;
}

std::vector<node_set::standing> node_set::survey(core::time_point until) const {
  const auto max_ttl = redis::milliseconds_text(config.max_ttl);
  const auto asked = ask_all();
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const std::array<std::string_view, 3> args{nodes_[i].config, description, max_ttl};
    asked->ask(i, {scripts::enrol, record_keys, args});
  }
  const auto answers = asked->gather(until);
  std::vector<standing> all(nodes_.size());
  using is = core::node_report::standing;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    auto& one = all[i];
    one.said = "no answer";
    if (!answers[i]) continue;
    if (!*answers[i]) {
      one.said = answers[i]->error().message;
      continue;
    }
    const auto fields = elements_of(***answers[i]);
    if (fields.size() < 2) continue;
    one.run_id = text_of(*fields[1]);
    const auto waited =
        fields.size() > 2 && fields[2]->type == REDIS_REPLY_INTEGER ? fields[2]->integer : 0;
    one.report.waited = milliseconds{waited};
    switch (fields[0]->integer) {
      case 1:
        one.report.is = is::votes;
        one.said = "votes";
        break;
      case 0:
        one.report.is = is::blank;
        one.said = "is empty, for " + std::to_string(waited / 1000) + " s";
        break;
      case 2:
        one.report.is = is::restarted;
        one.said = "was restarted, " + std::to_string(waited / 1000) + " s ago";
        one.report.loses_nothing = loses_nothing(i, until);
        break;
      default:
        one.report.is = is::foreign;
        one.voted_elsewhere = fields.size() > 3 && fields[3]->integer == 1;
        one.said = "belongs to the set " +
                   escape(fields.size() > 2 ? text_of(*fields[2]) : std::string_view{});
    }
  }
  return all;
}

// Every write is on disk before it is answered. What keeps us from knowing counts as no.
bool node_set::loses_nothing(std::size_t node, core::time_point until) const {
  const auto setting = [&](std::string_view name) -> std::string {
    command get{3};
    get.arg("CONFIG").arg("GET").arg(name);
    const auto asked = ask_all();
    asked->ask(node, request{get});
    const auto answers = asked->gather(until);
    if (!answers[node] || !*answers[node]) return {};
    const auto fields = elements_of(***answers[node]);
    return fields.size() < 2 ? std::string{} : std::string{text_of(*fields[1])};
  };
  return setting("appendonly") == "yes" && setting("appendfsync") == "always";
}

namespace {

using highest_counters = std::map<std::string, std::uint64_t, std::less<>>;

void take_higher(highest_counters& highest, const redisReply& record) {
  const auto fields = elements_of(record);
  for (std::size_t f = 0; f + 1 < fields.size(); f += 2) {
    const auto field = text_of(*fields[f]);
    if (!field.starts_with("c:") && field != "floor") continue;
    auto& most = highest[std::string{field}];
    most = std::max(most, redis::read_number(text_of(*fields[f + 1])));
  }
}

node_set::counters as_pairs(const highest_counters& highest) {
  node_set::counters pairs;
  for (const auto& [field, value] : highest) {
    pairs.push_back(field);
    pairs.push_back(std::to_string(value));
  }
  return pairs;
}

}  // namespace

result<node_set::counters> node_set::counters_known(core::time_point until) const {
  const auto asked = ask_all();
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const std::array<std::string_view, 1> args{nodes_[i].config};
    asked->ask(i, {scripts::counters, record_keys, args});
  }
  const auto answers = asked->gather(until);
  highest_counters highest;
  std::size_t intact = 0;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!answers[i] || !*answers[i]) continue;
    const auto& answer = ***answers[i];
    if (read_refusal(answer, nodes_[i].name, set())) continue;
    ++intact;
    take_higher(highest, answer);
  }
  if (intact >= majority()) return as_pairs(highest);
  return fail(errc::store_unreachable,
              "only " + std::to_string(intact) + " of " + std::to_string(nodes_.size()) +
                  " nodes have kept their counters: " + std::to_string(majority()) + " are needed");
}

result<node_set::counters> node_set::counters_left(core::time_point until) const {
  command get{2};
  get.arg("HGETALL").arg(record_key);
  const auto asked = ask_all();
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    asked->ask(i, request{get});
  const auto answers = asked->gather(until);
  highest_counters highest;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!answers[i]) return fail(errc::store_unreachable, "no answer from " + nodes_[i].name);
    if (!*answers[i]) return fail(answers[i]->error());
    take_higher(highest, ***answers[i]);
  }
  return as_pairs(highest);
}

result<void> node_set::admit(std::size_t node, const standing& seen, admit_mode mode,
                             const counters& least, core::time_point until) const {
  const auto max_ttl = redis::milliseconds_text(config.max_ttl);
  std::vector<std::string_view> args{nodes_[node].config,
                                     description,
                                     max_ttl,
                                     seen.run_id,
                                     mode == admit_mode::kept          ? "kept"
                                     : mode == admit_mode::vouched_for ? "new"
                                                                       : "waited",
                                     mode == admit_mode::recovered ? ahead_us_max : "0"};
  args.insert(args.end(), least.begin(), least.end());
  const auto asked = ask_all();
  asked->ask(node, {scripts::admit, record_keys, args});
  const auto answers = asked->gather(until);
  if (!answers[node]) {
    return fail(errc::outcome_unknown, "no answer from " + nodes_[node].name);
  }
  if (!*answers[node]) return fail(answers[node]->error());
  const auto fields = elements_of(***answers[node]);
  if (!fields.empty() && fields[0]->integer == 1) return {};
  return fail(errc::store_refused,
              nodes_[node].name + ": " +
                  std::string{fields.size() > 1 ? text_of(*fields[1]) : std::string_view{}});
}

void node_set::admit_those_who_may() {
  const auto until = core::after(runtime::now(), look_patience);
  const auto seen = survey(until);
  std::vector<core::node_report> reports;
  bool somebody_waits = false;
  for (const auto& one : seen) {
    reports.push_back(one.report);
    somebody_waits = somebody_waits || one.report.is == core::node_report::standing::blank ||
                     one.report.is == core::node_report::standing::restarted;
  }
  const auto plan = core::plan_admission(reports, config.max_ttl);
  using grounds = core::admission::grounds;
  for (const auto& one : plan.admit) {
    counters least;
    if (one.because == grounds::recovered) {
      auto known = counters_known(until);
      if (!known) continue;
      least = std::move(*known);
    }
    // What fails is tried again: somebody still waits.
    static_cast<void>(admit(one.node, seen[one.node],
                            one.because == grounds::kept ? admit_mode::kept : admit_mode::waited,
                            least, until));
  }
  const auto pause =
      std::clamp(plan.again.value_or(look_pause_max), look_pause_min, look_pause_max);
  const bool again = somebody_waits && background_->run_at(core::after(runtime::now(), pause),
                                                           [weak = weak_from_this()] {
                                                             if (const auto self = weak.lock()) {
                                                               self->admit_those_who_may();
                                                             }
                                                           });
  if (!again) looking_ = false;
}

}  // namespace holdfast::stores::redlock
