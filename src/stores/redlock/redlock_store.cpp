#include "stores/redlock/redlock_store.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "core/clock_watch.hpp"
#include "core/planted.hpp"
#include "core/weak_registry.hpp"
#include "redlock_scripts.hpp"
#include "runtime/clock.hpp"
#include "stores/redis/layout.hpp"
#include "stores/redis/script_values.hpp"
#include "stores/redlock/node_set.hpp"
#include "stores/redlock/redlock_lock.hpp"

namespace holdfast::stores::redlock {

namespace {

using redis::elements_of;
using redis::text_of;

constexpr std::size_t renewals_per_call = 100;
constexpr std::size_t inspected_per_call = 100;

std::string_view why_refused(const core::lock_kind& kind) noexcept {
  if (core::is_redissons(kind)) return "Redisson keeps its locks on one Redis server: name that";
  if (kind.what == core::lock_kind::form::shared) {
    return "a quorum has no shared locks so far: use one Redis server, or a mutex";
  }
  return "a quorum has no semaphores: a majority of counts that nodes keep each for themselves "
         "does "
         "not bound the total; use one Redis server";
}

class redlock_store final : public store {
 public:
  redlock_store(redlock_config config, std::shared_ptr<runtime::background> background)
      : set_{std::make_shared<node_set>(std::move(config), std::move(background))},
        clocks_(set_->config.nodes.size()) {}
  ~redlock_store() override { set_->close(); }

  void on_events(store_events events) override { set_->events = std::move(events); }

  result<std::shared_ptr<store_lock>> open(std::string_view name,
                                           const core::lock_kind& kind) override {
    if (auto ok = core::check_exclusive(kind, why_refused(kind)); !ok) {
      return fail(std::move(ok.error()));
    }
    auto key = set_->config.prefix + std::string{name};
    if (auto ok = redis::check_key(key); !ok) return fail(std::move(ok.error()));
    const std::lock_guard guard{m_};
    auto lock = locks_.find(key);
    if (!lock) locks_.put(key, lock = std::make_shared<redlock_lock>(set_, key));
    return lock;
  }

  result<std::shared_ptr<store_counter>> open_counter(std::string_view,
                                                      const core::counter_kind& kind) override {
    if (kind.what != core::counter_kind::form::latch) {
      return fail(errc::unsupported, "Redisson keeps its counters on one Redis server: name that");
    }
    return fail(errc::unsupported,
                "a quorum has no latches: nodes that count each for themselves do not agree when "
                "all have counted; use one Redis server");
  }

  [[nodiscard]] std::size_t renewal_batch_max() const noexcept override {
    return renewals_per_call;
  }
  void renew(std::vector<held> leases, core::time_point until, caller& by,
             on_renewals done) override;
  result<std::vector<lock_status>> list(std::string_view pattern, core::duration timeout) override;
  [[nodiscard]] guarantees describe() const override;
  void flush(core::time_point until) noexcept override { set_->flush(until); }
  void close() noexcept override { set_->close(); }

 private:
  [[nodiscard]] result<std::vector<renewal>> read_renewals(const std::vector<held>& leases,
                                                           core::time_point counted_from,
                                                           const gather::answers& answers);
#ifdef HOLDFAST_PLANT
  // Planted: what answered the last renewal counts in this one.
  std::map<core::owner_id, std::vector<extension>> last_said_;
  void answer_as_last_time(const std::vector<held>& leases,
                           std::vector<std::vector<extension>>& said) {
    for (std::size_t l = 0; l < leases.size(); ++l) {
      auto& before = last_said_[leases[l].id];
      before.resize(said[l].size());
      for (std::size_t i = 0; i < said[l].size(); ++i) {
        const bool planted = core::planted(core::planted_bug::own_round);
        if (planted && !said[l][i].known) said[l][i] = before[i];
      }
      before = said[l];
    }
  }
#endif
  // Empty: the node did not show all of them.
  [[nodiscard]] std::optional<std::set<std::string>> keys_on(std::size_t node,
                                                             const std::string& match,
                                                             core::duration timeout) const;

  const std::shared_ptr<node_set> set_;
  std::vector<core::clock_watch> clocks_;  // of the nodes; the renewing thread's

  std::mutex m_;
  core::weak_registry<redlock_lock> locks_;  // protected by m_
};

void redlock_store::renew(std::vector<held> leases, core::time_point until, caller& by,
                          on_renewals done) {
  const auto counted_from = runtime::now();
  const auto asked = ask_to_extend(*set_, set_->renewals(), leases);
  asked->collect(until, by,
                 [this, counted_from, leases = std::move(leases), done = std::move(done)](
                     const auto& answers) { done(read_renewals(leases, counted_from, answers)); });
}

result<std::vector<renewal>> redlock_store::read_renewals(const std::vector<held>& leases,
                                                          core::time_point counted_from,
                                                          const gather::answers& answers) {
  set_->watch_replies();
  auto said = read_extensions(*set_, leases.size(), answers);
  for (const auto& [node, clock] : said.clocks) {
    const auto step = clocks_[node].look(clock, counted_from, runtime::now());
    if (step != core::duration::zero() && set_->events.clock_stepped) {
      set_->events.clock_stepped(step);
    }
  }
#ifdef HOLDFAST_PLANT
  answer_as_last_time(leases, said.of_lease);
#endif
  const auto from = core::planted(core::planted_bug::early_count) ? runtime::now() : counted_from;
  std::vector<renewal> all;
  bool any_known = false;
  for (std::size_t l = 0; l < leases.size(); ++l) {
    auto* lock = static_cast<redlock_lock*>(leases[l].lock);
    all.push_back(lock->judge(leases[l].id, leases[l].ttl, from, said.of_lease[l]));
    any_known = any_known || all.back().renewed || all.back().why != loss::none;
  }
  if (!any_known) return fail(std::move(said.why));
  return all;
}

std::optional<std::set<std::string>> redlock_store::keys_on(std::size_t node,
                                                            const std::string& match,
                                                            core::duration timeout) const {
  std::set<std::string> keys;
  std::string cursor = "0";
  do {
    const auto asked = set_->ask_all();
    asked->ask(node, request{redis::scan_step(cursor, match)});
    const auto answers = asked->collect(core::after(runtime::now(), timeout));
    if (!answers[node] || !*answers[node]) return std::nullopt;
    const auto fields = elements_of(***answers[node]);
    if (fields.size() < 2) return std::nullopt;
    cursor = text_of(*fields[0]);
    for (const auto* one : elements_of(*fields[1])) {
      if (!text_of(*one).starts_with(redis::reserved_prefix)) keys.emplace(text_of(*one));
    }
  } while (cursor != "0" && keys.size() < redis::listed_max);
  return keys;
}

// Whatever a majority holds is on at least one node of any majority; all are walked, for some may
// be down. With fewer, or where a majority may have forgotten, what is held is not known: an empty
// list would say that nothing is.
result<std::vector<lock_status>> redlock_store::list(std::string_view pattern,
                                                     core::duration timeout) {
  const auto match = redis::scan_pattern(set_->config.prefix, pattern);
  std::set<std::string> keys;
  failure unseen{errc::store_unreachable, "too few nodes show which locks they hold", {}};
  for (std::size_t i = 0; i < set_->size(); ++i) {
    if (auto some = keys_on(i, match, timeout)) {
      keys.merge(*some);
    } else {
      unseen.nodes.push_back({set_->names()[i], "does not show its locks"});
    }
  }
  // One key is asked for in any case: the answers say which nodes may vote.
  const bool none = keys.empty();
  if (none) keys.insert(match);
  const std::vector<std::string> all_keys{keys.begin(), keys.end()};
  std::vector<lock_status> all;
  for (std::size_t from = 0; from < all_keys.size(); from += inspected_per_call) {
    const auto count = std::min(inspected_per_call, all_keys.size() - from);
    const auto seen = set_->inspect(std::span{all_keys}.subspan(from, count),
                                    core::after(runtime::now(), timeout));
    for (std::size_t k = 0; k < count; ++k) {
      auto status = judge_status(all_keys[from + k].substr(set_->config.prefix.size()), seen[k]);
      if (!status) return fail(std::move(status.error()));
      if (none) continue;
      // Any string key of the database may match the pattern: only ours are known to be locks.
      if (status->holder && !status->holder->foreign) all.push_back(std::move(*status));
    }
  }
  const auto nodes = set_->size();
  if (nodes - unseen.nodes.size() < core::majority_of(nodes)) return fail(std::move(unseen));
  return all;
}

guarantees redlock_store::describe() const {
  const auto nodes = set_->size();
  guarantees all;
  all.storage = nodes == 1 ? guarantees::storage_kind::single : guarantees::storage_kind::quorum;
  all.shared_between_processes = true;
  all.shared_between_hosts = true;
  all.tokens_survive_data_loss = true;
  const auto spare = nodes - core::majority_of(nodes);
  all.summary =
      "a majority of " + std::to_string(nodes) + " independent Redis servers (" +
      std::to_string(spare) +
      " may fail): exclusion while a majority keeps its data and clocks run alike; "
      "tokens increase whatever clients' clocks and pauses do, and where a majority lost its "
      "data as far as the nodes' clocks are right";
  if (nodes == 1) {
    all.summary += ". Warning: one node is no majority of anything: it adds nothing to redis://";
  } else if (nodes % 2 == 0) {
    all.summary += ". An even number survives no more failures than one node fewer";
  }
  return all;
}

}  // namespace

std::unique_ptr<store> make_redlock_store(redlock_config config,
                                          std::shared_ptr<runtime::background> background) {
  return std::make_unique<redlock_store>(std::move(config), std::move(background));
}

}  // namespace holdfast::stores::redlock
