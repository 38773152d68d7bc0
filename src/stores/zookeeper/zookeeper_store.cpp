#include "stores/zookeeper/zookeeper_store.hpp"

#include <utility>

#include "core/fail.hpp"
#include "runtime/clock.hpp"
#include "stores/glob.hpp"
#include "stores/zookeeper/looking.hpp"
#include "stores/zookeeper/paths.hpp"
#include "stores/zookeeper/renewing.hpp"
#include "stores/zookeeper/shared.hpp"
#include "stores/zookeeper/zookeeper_lock.hpp"

namespace holdfast::stores::zookeeper {

namespace {

handle::config server_of(const component_config& from) {
  handle::config to;
  for (const auto& one : from.servers) {
    const bool is_v6 = one.host.find(':') != std::string::npos;
    if (!to.servers.empty()) to.servers += ',';
    to.servers += is_v6 ? "[" + one.host + "]" : one.host;
    to.servers += ":" + std::to_string(one.port);
  }
  to.user = from.user;
  to.password = from.password;
  to.password_file = from.password_file;
  to.open_to_all = from.open_to_all.value_or(from.user.empty());
  return to;
}

class zookeeper_store final : public store {
 public:
  zookeeper_store(const component_config& config, std::shared_ptr<runtime::background> background)
      : in_{std::make_shared<shared>()} {
    in_->at = std::make_shared<connection>(server_of(config), config.tick / 2, background);
    in_->background = std::move(background);
    in_->chroot = config.chroot;
    const std::weak_ptr<shared> weak = in_;
    connection::events tell;
    tell.reconnected = [weak] {
      const auto in = weak.lock();
      if (!in) return;
      if (in->events.reconnected) in->events.reconnected();
      if (in->events.doubtful) in->events.doubtful();
    };
    tell.ended = [weak](const std::shared_ptr<session>& which) {
      const auto in = weak.lock();
      if (!in || !in->events.lost) return;
      for (const auto& id : in->held.held_in(which.get()))
        in->events.lost(id, loss::session);
    };
    in_->at->on_events(std::move(tell));
  }
  ~zookeeper_store() override { in_->at->close(); }

  void on_events(store_events events) override { in_->events = std::move(events); }

  result<std::shared_ptr<store_lock>> open(std::string_view name,
                                           const core::lock_kind& kind) override {
    if (core::is_redissons(kind)) {
      return fail(errc::unsupported,
                  "ZooKeeper has no locks of Redisson's: they are kept on a Redis server");
    }
    if (kind.what == core::lock_kind::form::permits)
      return fail(errc::unsupported, "a ZooKeeper store has no semaphores");
    auto path = path_of(in_->chroot, name);
    if (!path) return fail(std::move(path.error()));
    return std::make_shared<zookeeper_lock>(in_, std::string{name}, std::move(*path), kind);
  }

  [[nodiscard]] std::size_t renewal_batch_max() const noexcept override {
    return renewals_per_call;
  }

  void renew(std::vector<held> leases, core::time_point until, caller& by,
             on_renewals done) override {
    std::vector<std::shared_ptr<contender>> all;
    all.reserve(leases.size());
    for (const auto& one : leases)
      all.push_back(in_->held.find(one.id));
    await<result<std::vector<renewal>>>(
        in_->calls, until, by,
        [in = in_, all = std::move(all)](auto told) {
          zookeeper::renew(in->at, all, std::move(told));
        },
        [] {
          return failure{errc::outcome_unknown, "ZooKeeper does not answer", {}};
        },
        std::move(done));
  }

  result<std::vector<lock_status>> list(std::string_view pattern, core::duration timeout) override {
    const auto paths = wait_here<result<std::vector<std::string>>>([&](caller& by, auto done) {
      await<result<std::vector<std::string>>>(
          in_->calls, core::after(runtime::now(), timeout), by,
          [in = in_](auto told) { find_locks(in->at, in->chroot, std::move(told)); },
          [in = in_] { return in->at->unreachable(); }, std::move(done));
    });
    if (!paths) return fail(paths.error());
    std::vector<lock_status> all;
    for (const auto& path : *paths) {
      auto name = name_of(in_->chroot, path);
      if (!glob_matches(pattern, name)) continue;
      zookeeper_lock one{in_, std::move(name), path, {}};
      auto status = one.inspect(core::after(runtime::now(), timeout));
      if (!status) return fail(std::move(status.error()));
      if (status->holder) all.push_back(std::move(*status));
    }
    return all;
  }

  [[nodiscard]] guarantees describe() const override {
    guarantees all;
    all.storage = guarantees::storage_kind::session;
    all.shared_between_processes = true;
    all.shared_between_hosts = true;
    all.fifo = true;
    all.summary =
        "a ZooKeeper ensemble: exclusion while a majority keeps its data and clocks run alike; "
        "tokens are czxids, which start anew with an empty ensemble";
    return all;
  }

  void flush(core::time_point until) noexcept override {
    in_->leaving.await_none(std::max(core::duration::zero(), until - runtime::now()));
  }

  void close() noexcept override { in_->calls.close(); }

 private:
  const std::shared_ptr<shared> in_;
};

}  // namespace

result<std::unique_ptr<store>> make_zookeeper_store(
    component_config config, std::shared_ptr<runtime::background> background) {
  return std::make_unique<zookeeper_store>(config, std::move(background));
}

}  // namespace holdfast::stores::zookeeper
