#include "stores/redis/redis_store.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <utility>

#include "core/clock_watch.hpp"
#include "core/weak_registry.hpp"
#include "runtime/clock.hpp"
#include "stores/redis/channel_listener.hpp"
#include "stores/redis/counter.hpp"
#include "stores/redis/layout.hpp"
#include "stores/redis/redis_lock.hpp"
#include "stores/redis/redisson/fair_lock.hpp"
#include "stores/redis/redisson/hash_lock.hpp"
#include "stores/redis/redisson/permit_lock.hpp"
#include "stores/redis/redisson/read_write_lock.hpp"
#include "stores/redis/script_values.hpp"
#include "stores/redis/server.hpp"
#include "stores/redis/server_error.hpp"

namespace holdfast::stores::redis {

namespace {

constexpr std::size_t renewals_per_call = 100;
// Connecting to one node of a cluster holds up the thread that renews on all of them.
constexpr core::duration connect_patience = std::chrono::milliseconds{300};

// Under one key may be locks of several kinds, as far as a client knows.
std::string registered_as(std::string_view key, const core::lock_kind& kind) {
  return std::string{kind_name(kind.what)} + std::to_string(kind.permits) + ';' + std::string{key};
}

// Not one that is shared with Redisson.
bool is_own_kind(const core::lock_kind& kind) {
  using form = core::lock_kind::form;
  return kind.what == form::exclusive || kind.what == form::shared || kind.what == form::permits;
}

class redis_store final : public store {
 public:
  redis_store(redis_config config, std::shared_ptr<runtime::background> background)
      : server_{std::make_shared<server>(std::move(config), background)},
        unlock_messages_{std::make_shared<channel_listener>(server_, std::move(background))} {}

  ~redis_store() override { close(); }

  void on_events(store_events events) override { server_->events = std::move(events); }

  result<std::shared_ptr<store_lock>> open(std::string_view name,
                                           const core::lock_kind& kind) override {
    auto key = server_->prefix + std::string{name};
    if (auto ok = check_key(key); !ok) return fail(std::move(ok.error()));
    if (server_->replicas.count > 0 && !is_own_kind(kind)) {
      return fail(errc::unsupported,
                  "the store URL says replicas=: Redisson's locks are not held back until replicas "
                  "have them, so use a URL without it for them");
    }
    const std::lock_guard guard{m_};
    const auto called = registered_as(key, kind);
    auto lock = locks_.find(called);
    if (lock) return lock;
    lock = make(key, kind);
    locks_.put(called, lock);
    return lock;
  }

  result<std::shared_ptr<store_counter>> open_counter(std::string_view name,
                                                      const core::counter_kind& kind) override {
    auto key = server_->prefix + std::string{name};
    if (auto ok = check_key(key); !ok) return fail(std::move(ok.error()));
    return std::make_shared<redis_counter>(server_, unlock_messages_, std::move(key), kind);
  }

  [[nodiscard]] std::size_t renewal_batch_max() const noexcept override {
    return renewals_per_call;
  }

  void renew(std::vector<held> leases, core::time_point until, caller& by,
             on_renewals done) override;
  doubt await_doubt(int wake_fd) override;
  [[nodiscard]] bool tells_changes() const noexcept override { return server_->hears_changes; }
  result<std::vector<lock_status>> list(std::string_view pattern, core::duration timeout) override;

  [[nodiscard]] guarantees describe() const override { return server_->promises; }
  void flush(core::time_point until) noexcept override { server_->flush(until); }
  void close() noexcept override {
    server_->close();
    unlock_messages_->close();
  }

 private:
  [[nodiscard]] std::shared_ptr<redis_lock> make(const std::string& key,
                                                 const core::lock_kind& kind) const;

  struct renewing;
  struct apart;
  [[nodiscard]] bool is_connected_for(const held& lease);
  [[nodiscard]] core::time_point patience_to_connect(core::time_point until);
  void renew_alike(const scripts::script& by_script, std::vector<held> leases,
                   core::time_point until, caller& by, on_renewals done);
  void ask_renewals(const std::shared_ptr<renewing>& what);
  [[nodiscard]] result<std::vector<renewal>> read_renewals(const renewing& what,
                                                           const reply_value& answer);
  // Of the keys of one type, on one node.
  result<void> walk(server_node& on, std::string_view match, std::string_view type,
                    core::duration timeout, std::vector<lock_status>& to);
  struct inspected;
  void inspect(inspected& what, core::time_point until, caller& by);
  result<void> append_inspected(inspected& what, std::vector<lock_status>& to);
  result<void> append_statuses(std::span<const std::string> keys, core::time_point until,
                               std::vector<lock_status>& to);

  const std::shared_ptr<server> server_;
  const std::shared_ptr<channel_listener> unlock_messages_;
  std::map<std::string, core::clock_watch> clocks_;  // the renewing thread's, by node

  std::mutex m_;
  // Protected by m_. Names in use, or with a release under way: an ask for the same name has to
  // know of that release.
  core::weak_registry<redis_lock> locks_;
};

std::shared_ptr<redis_lock> redis_store::make(const std::string& key,
                                              const core::lock_kind& kind) const {
  using form = core::lock_kind::form;
  switch (kind.what) {
    case form::exclusive:
    case form::shared:
    case form::permits:
      break;
    case form::redisson:
    case form::redisson_fenced:
      return std::make_shared<redisson::hash_lock>(server_, unlock_messages_, key, kind);
    case form::redisson_permits:
      return std::make_shared<redisson::permit_lock>(server_, unlock_messages_, key, kind.permits);
    case form::redisson_rw:
      return std::make_shared<redisson::read_write_lock>(server_, unlock_messages_, key);
    case form::redisson_fair:
      return std::make_shared<redisson::fair_lock>(server_, unlock_messages_, key);
  }
  return std::make_shared<redis_lock>(server_, key, kind);
}

struct redis_store::renewing {
  std::vector<held> leases;
  script_call script;
  core::time_point until;
  caller& by;
  on_renewals done;
  core::time_point counted_from;
  bool again = false;
};

// A batch that takes several scripts or goes to several slots, and so in several requests.
struct redis_store::apart {
  on_renewals done;
  std::vector<renewal> all;
  std::size_t open = 0;
  bool answered = false;
  failure why{};

  // `at`: where in the batch these are. Of those that failed while others did not, it is not known.
  void take(const std::vector<std::size_t>& at, result<std::vector<renewal>> got) {
    if (got) {
      answered = true;
      for (std::size_t i = 0; i < at.size(); ++i)
        all[at[i]] = (*got)[i];
    } else {
      why = std::move(got.error());
    }
    if (--open > 0) return;
    if (answered) return done(std::move(all));
    done(fail(std::move(why)));
  }
};

void redis_store::renew(std::vector<held> leases, core::time_point until, caller& by,
                        on_renewals done) {
  const auto script_of = [](const held& one) {
    return &static_cast<redis_lock*>(one.lock)->renew_script();
  };
  // Keys of one request belong to one node; of a cluster, to one slot.
  std::map<std::pair<const scripts::script*, unsigned>, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < leases.size(); ++i) {
    const auto& key = static_cast<redis_lock*>(leases[i].lock)->renewed_key();
    groups[{script_of(leases[i]), server_->nodes->group_of(key)}].push_back(i);
  }
  if (groups.size() == 1) {
    if (!is_connected_for(leases.front())) until = patience_to_connect(until);
    return renew_alike(*groups.begin()->first.first, std::move(leases), until, by, std::move(done));
  }
  const auto whole = std::make_shared<apart>();
  whole->done = std::move(done);
  whole->all.resize(leases.size());
  whole->open = groups.size();
  const auto begin = [&](const scripts::script& script, const std::vector<std::size_t>& at,
                         core::time_point by_then) {
    std::vector<held> alike;
    for (const auto i : at)
      alike.push_back(leases[i]);
    renew_alike(script, std::move(alike), by_then, by,
                [whole, at](auto got) { whole->take(at, std::move(got)); });
  };
  // First where there is a connection: those requests are under way while others are made.
  std::vector<const decltype(groups)::value_type*> unconnected;
  for (const auto& one : groups) {
    if (is_connected_for(leases[one.second.front()])) {
      begin(*one.first.first, one.second, until);
    } else {
      unconnected.push_back(&one);
    }
  }
  for (const auto* one : unconnected)
    begin(*one->first.first, one->second, patience_to_connect(until));
}

bool redis_store::is_connected_for(const held& lease) {
  const auto node = server_->nodes->node_of(static_cast<redis_lock*>(lease.lock)->renewed_key());
  return node && !node->renewals.connections().empty();
}

core::time_point redis_store::patience_to_connect(core::time_point until) {
  const bool is_alone = server_->nodes->nodes().size() < 2;
  return is_alone ? until : std::min(until, core::after(runtime::now(), connect_patience));
}

doubt redis_store::await_doubt(int wake_fd) {
  using form = core::lock_kind::form;
  for (;;) {
    const auto changed = server_->await_changes(wake_fd);
    if (changed.empty()) return {};
    doubt about{changed.all, {}};
    const std::lock_guard guard{m_};
    for (const auto& key : changed.keys) {
      // Others may change what several hold, all the time and with every right.
      const auto is_open = [&](form what) { return locks_.find(registered_as(key, {what})); };
      if (is_open(form::exclusive) || is_open(form::redisson) || is_open(form::redisson_fenced) ||
          is_open(form::redisson_fair)) {
        about.names.push_back(key.substr(server_->prefix.size()));
      }
    }
    if (about.about_all || !about.names.empty()) return about;
  }
}

void redis_store::renew_alike(const scripts::script& by_script, std::vector<held> leases,
                              core::time_point until, caller& by, on_renewals done) {
  std::vector<std::string_view> keys;
  std::vector<std::string> ttls;
  std::vector<std::string> tokens;
  std::vector<std::string> ids;
  std::vector<std::string_view> args;
  keys.reserve(leases.size());
  ttls.reserve(leases.size());
  tokens.reserve(leases.size());
  ids.reserve(leases.size());
  args.reserve(3 * leases.size());
  for (const auto& one : leases) {
    const auto& lock = *static_cast<redis_lock*>(one.lock);
    keys.push_back(lock.renewed_key());
    server_->nodes->needed_for(one.ttl);
    ids.push_back(lock.renewed_as(one.id));
    ttls.push_back(milliseconds_text(one.ttl));
    tokens.push_back(to_string(one.token));
    args.push_back(ids.back());
    args.push_back(ttls.back());
    args.push_back(tokens.back());
  }
  script_call script{by_script, keys, args};
  ask_renewals(std::make_shared<renewing>(
      renewing{std::move(leases), std::move(script), until, by, std::move(done), runtime::now()}));
}

void redis_store::ask_renewals(const std::shared_ptr<renewing>& what) {
  server_->renewals.run(
      what->script, what->until, {}, what->by, [this, what](result<reply> answer, const auto&) {
        if (answer) return what->done(read_renewals(*what, **answer));
        // Once more if the connection ended under it: a renewal may be repeated, and one that
        // another connection's end has set off often meets a server that is about to close this one
        // as well.
        const bool was_cut_off = answer.error().code == errc::outcome_unknown;
        if (was_cut_off && !std::exchange(what->again, true) && runtime::now() < what->until) {
          return ask_renewals(what);
        }
        what->done(fail(std::move(answer.error())));
      });
}

result<std::vector<renewal>> redis_store::read_renewals(const renewing& what,
                                                        const reply_value& answer) {
  const auto fields = elements_of(answer);
  if (fields.size() != what.leases.size() + 2) {
    return fail(strange_answer(server_->renewals.node()));
  }
  const auto node =
      server_->nodes->node_of(static_cast<redis_lock*>(what.leases.front().lock)->renewed_key());
  const auto step = clocks_[node ? node->calls.node() : std::string{}].look(
      read_time(*fields[0], *fields[1]), what.counted_from, runtime::now());
  if (step != core::duration::zero() && server_->events.clock_stepped) {
    server_->events.clock_stepped(step);
  }
  std::vector<renewal> all;
  all.reserve(what.leases.size());
  for (std::size_t i = 0; i < what.leases.size(); ++i) {
    all.push_back(read_renewal(*fields[i + 2], what.leases[i].ttl, what.counted_from));
  }
  return all;
}

// Of keys that may travel in one request; begun, for wait_here() to end.
struct redis_store::inspected {
  std::vector<std::string> keys;
  result<reply> answer;
};

void redis_store::inspect(inspected& what, core::time_point until, caller& by) {
  std::vector<std::string> queues;
  std::vector<std::string_view> names;
  for (const auto& key : what.keys)
    queues.push_back(lock_keys{key}.queue);
  for (std::size_t i = 0; i < what.keys.size(); ++i) {
    names.push_back(what.keys[i]);
    names.push_back(queues[i]);
  }
  const auto shown = std::to_string(waiters_shown_max);
  const std::array<std::string_view, 1> args{shown};
  server_->calls.look({scripts::inspect, names, args}, until, {}, by,
                      [&what](auto answer) { what.answer = std::move(answer); });
}

result<void> redis_store::append_statuses(std::span<const std::string> keys, core::time_point until,
                                          std::vector<lock_status>& to) {
  std::map<unsigned, inspected> groups;
  for (const auto& key : keys)
    groups[server_->nodes->group_of(key)].keys.push_back(key);
  blocking_caller here;
  for (auto& [group, what] : groups)
    inspect(what, until, here);
  here.run();
  for (auto& [group, what] : groups) {
    if (auto ok = append_inspected(what, to); !ok) return ok;
  }
  return {};
}

result<void> redis_store::append_inspected(inspected& what, std::vector<lock_status>& to) {
  if (!what.answer) return fail(std::move(what.answer.error()));
  const auto said = elements_of(**what.answer);
  const auto& keys = what.keys;
  for (std::size_t i = 0; i < keys.size() && (i + 1) * status_elements <= said.size(); ++i) {
    auto status = read_status(keys[i].substr(server_->prefix.size()),
                              said.subspan(i * status_elements, status_elements));
    if (!status && status.error().code == errc::wrong_type) continue;  // not a lock
    if (!status) return fail(std::move(status.error()));
    // Any string key of the database may match the pattern: only ours are known to be locks.
    if (status->holder && !status->holder->foreign) to.push_back(std::move(*status));
  }
  return {};
}

result<void> redis_store::walk(server_node& on, std::string_view match, std::string_view type,
                               core::duration timeout, std::vector<lock_status>& to) {
  std::string cursor = "0";
  do {
    const auto scan = scan_step(cursor, match, type);
    const auto until = core::after(runtime::now(), timeout);
    auto answer = wait_here<result<reply>>([&](auto& by, auto done) {
      on.calls.look(script_call{scan.bytes()}, until, {}, by, std::move(done));
    });
    if (!answer) return fail(std::move(answer.error()));
    if ((*answer)->type == reply_kind::error)
      return fail(translate_error(text_of(**answer), on.calls.node()));
    const auto fields = elements_of(**answer);
    if (fields.size() < 2) break;
    cursor = text_of(*fields[0]);
    std::vector<std::string> keys;
    for (const auto* one : elements_of(*fields[1]))
      keys.emplace_back(text_of(*one));
    if (auto ok = append_statuses(keys, core::after(runtime::now(), timeout), to); !ok)
      return fail(std::move(ok.error()));
  } while (cursor != "0" && to.size() < listed_max);
  return {};
}

result<std::vector<lock_status>> redis_store::list(std::string_view pattern,
                                                   core::duration timeout) {
  std::vector<lock_status> all;
  const auto match = scan_pattern(server_->prefix, pattern);
  auto nodes = server_->nodes->nodes_with_keys(core::after(runtime::now(), timeout));
  if (!nodes) return fail(std::move(nodes.error()));
  for (const auto& one : *nodes) {
    // Mutexes, and what several may hold.
    for (const std::string_view type : {"string", "hash"}) {
      if (auto ok = walk(*one, match, type, timeout, all); !ok) return fail(std::move(ok.error()));
    }
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  // SCAN may give a key twice, and two nodes one that is moved between them.
  all.erase(std::unique(all.begin(), all.end(),
                        [](const auto& a, const auto& b) { return a.name == b.name; }),
            all.end());
  return all;
}

}  // namespace

std::unique_ptr<store> make_redis_store(redis_config config,
                                        std::shared_ptr<runtime::background> background) {
  return std::make_unique<redis_store>(std::move(config), std::move(background));
}

}  // namespace holdfast::stores::redis
