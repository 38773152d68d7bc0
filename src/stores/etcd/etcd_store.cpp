#include "stores/etcd/etcd_store.hpp"

#include <set>
#include <utility>

#include "core/fail.hpp"
#include "core/weak_registry.hpp"
#include "runtime/clock.hpp"
#include "stores/etcd/etcd_lock.hpp"
#include "stores/etcd/renewing.hpp"
#include "stores/glob.hpp"

namespace holdfast::stores::etcd {

namespace {

// etcd takes 128 operations in a transaction unless it is told otherwise.
constexpr std::size_t renewals_per_call = 100;
// Of keys, when all locks are listed.
constexpr std::int64_t keys_per_page = 1000;
// For the leases of a client that goes; etcd would end them itself when their TTL is over.
constexpr core::duration farewell_patience = std::chrono::milliseconds{250};

class etcd_store final : public store {
 public:
  etcd_store(const component_config& config, std::shared_ptr<runtime::background> background)
      : of_{std::make_shared<services>(config, std::move(background))} {}
  ~etcd_store() override { of_->servers.stop(); }

  void on_events(store_events events) override {
    of_->events = events;
    of_->held->on_events(std::move(events));
  }

  result<std::shared_ptr<store_lock>> open(std::string_view name,
                                           const core::lock_kind& kind) override {
    if (core::is_redissons(kind)) {
      return fail(errc::unsupported, "Redisson's locks are on Redis only");
    }
    if (kind.what == core::lock_kind::form::permits) {
      return fail(errc::unsupported,
                  "etcd:// has no semaphores: take one on Redis, or so many mutexes");
    }
    const std::lock_guard guard{m_};
    // Both kinds under one name are two locks to this client.
    const bool is_shared = core::is_shared(kind);
    const auto called = (is_shared ? "s" : "m") + std::string{name};
    if (auto known = locks_.find(called)) return known;
    auto fresh = std::make_shared<etcd_lock>(of_, std::string{name}, is_shared);
    locks_.put(called, fresh);
    return fresh;
  }

  std::size_t renewal_batch_max() const noexcept override { return renewals_per_call; }

  void renew(std::vector<held> leases, core::time_point until, caller& by,
             on_renewals done) override {
    renew_all(of_, std::move(leases), until, by, std::move(done));
  }

  result<std::vector<lock_status>> list(std::string_view pattern, core::duration timeout) override {
    auto names = names_of_all(timeout);
    if (!names) return fail(std::move(names.error()));
    std::vector<lock_status> all;
    for (const auto& name : *names) {
      if (!glob_matches(pattern, name)) continue;
      auto one = etcd_lock{of_, name}.inspect(core::after(runtime::now(), timeout));
      if (!one) return fail(std::move(one.error()));
      if (one->holder) all.push_back(std::move(*one));
    }
    return all;
  }

  guarantees describe() const override {
    guarantees g;
    g.storage = guarantees::storage_kind::session;
    g.shared_between_processes = true;
    g.shared_between_hosts = true;
    g.lock_survives_server_crash = true;
    g.fifo = true;
    g.summary =
        "an etcd cluster: locks survive the loss of a minority of its servers; tokens are "
        "revisions, which start again only if the cluster is set up anew or restored from a backup";
    return g;
  }

  void flush(core::time_point until) noexcept override {
    {
      std::unique_lock lock{of_->m};
      const auto left = std::max<core::duration>(core::duration{}, until - runtime::now());
      of_->released.wait_for(lock, left, [&] { return of_->releases == 0; });
    }
    of_->sessions.end_all(std::min(until, runtime::now() + farewell_patience));
  }

  void close() noexcept override { of_->servers.close(); }

 private:
  result<std::set<std::string>> names_of_all(core::duration timeout) {
    std::set<std::string> names;
    const auto& prefix = of_->prefix;
    std::string from = prefix.empty() ? std::string(1, '\0') : prefix;
    for (;;) {
      const read page{.from = from, .to = end_of_prefix(prefix), .limit = keys_per_page};
      const auto got = of_->servers.call({"/v3/kv/range", to_json(page), false},
                                         core::after(runtime::now(), timeout));
      if (!got) return fail(got.error());
      const auto all = read_found(got->body);
      if (!all) return fail(all.error());
      for (const auto& one : all->keys)
        if (auto name = lock_of(prefix, one)) names.insert(std::move(*name));
      if (all->keys.size() < static_cast<std::size_t>(keys_per_page)) return names;
      from = all->keys.back().key + '\0';
    }
  }

  const std::shared_ptr<services> of_;
  std::mutex m_;
  core::weak_registry<etcd_lock> locks_;  // protected by m_
};

}  // namespace

result<std::unique_ptr<store>> make_etcd_store(component_config config,
                                               std::shared_ptr<runtime::background> background) {
  return std::make_unique<etcd_store>(config, std::move(background));
}

}  // namespace holdfast::stores::etcd
