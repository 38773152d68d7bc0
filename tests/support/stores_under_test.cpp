#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>

#include "support/built.hpp"
#include "support/contract.hpp"
#include "support/etcd_cluster.hpp"
#include "support/fresh_prefix.hpp"
#include "support/redis_cluster.hpp"
#include "support/redis_server.hpp"
#include "support/redlock_nodes.hpp"
#include "support/sentinel_group.hpp"
#include "support/session_server.hpp"
#if HOLDFAST_HAS_ZOOKEEPER
#include "support/zookeeper_ensemble.hpp"
#include "support/zookeeper_raw.hpp"
#endif

namespace holdfast::test {

namespace {

class memory_store final : public store_under_test {
 public:
  std::string url() const override { return url_; }
  // It has no server to lose it: the nearest thing is to break it.
  void lose(const std::string& name) override {
    client admin{url_};
    for (const holder& one : admin.status(name).holders)
      admin.break_lock(name, one.token);
  }
  void reachable(bool) override {}

 private:
  static std::string fresh_url() {
    static std::atomic<int> last{0};
    return "memory:contract-" + std::to_string(++last);
  }
  const std::string url_ = fresh_url();
};

class redis_store final : public store_under_test {
 public:
  explicit redis_store(bool tcp) : tcp_{tcp}, server_{{.tcp = tcp}} {}
  std::string url() const override { return tcp_ ? server_.tcp_url() : server_.url(); }
  void lose(const std::string& name) override { (void)server_.command({"DEL", name}); }
  void reachable(bool on) override { on ? server_.resume() : server_.pause(); }

 private:
  const bool tcp_;
  redis_server server_;
};

// Its nodes take seconds to find each other: one cluster for all tests of a process, and names of
// each test's own.
class redis_cluster_store final : public store_under_test {
 public:
  // A test may end with servers that are paused.
  ~redis_cluster_store() override { answer(true); }
  std::string url() const override { return shared().url("prefix=" + prefix_); }
  void lose(const std::string& name) override {
    (void)shared().on_master_of(prefix_ + name, {"DEL", prefix_ + name});
  }
  void reachable(bool on) override { answer(on); }

 private:
  static void answer(bool on) {
    for (std::size_t i = 0; i < shared().size(); ++i)
      on ? shared()[i].resume() : shared()[i].pause();
  }
  static redis_cluster& shared() {
    static redis_cluster all;
    return all;
  }
  const std::string prefix_ = fresh_prefix();
};

class redis_tls_store final : public store_under_test {
 public:
  std::string url() const override { return server_.tcp_url(); }
  void lose(const std::string& name) override { (void)server_.command({"DEL", name}); }
  void reachable(bool on) override { on ? server_.resume() : server_.pause(); }

 private:
  const authority ours_{"our authority"};
  redis_server server_{
      {.tcp = true, .tls = server_tls{.shows = ours_.issue("server"), .authority = ours_.file()}}};
};

class session_store final : public store_under_test {
 public:
  std::string url() const override { return "session:" + server_.socket_path(); }
  void lose(const std::string&) override { server_.forget(); }
  void reachable(bool on) override { server_.reachable(on); }
  std::chrono::milliseconds granted(std::chrono::milliseconds asked) const override {
    return session_server::granted(asked);
  }

 private:
  session_server server_;
};

class redlock_store final : public store_under_test {
 public:
  explicit redlock_store(std::size_t nodes) : nodes_{nodes} {}
  std::string url() const override { return nodes_.url(); }
  void lose(const std::string& name) override {
    // A node that has not been asked yet must not get it afterwards.
    if (!nodes_.await_all_holding(name)) throw std::runtime_error{"not on every node: " + name};
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      (void)nodes_[i].command({"DEL", name});
  }
  void reachable(bool on) override {
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      on ? nodes_[i].resume() : nodes_[i].pause();
  }

 private:
  redlock_nodes nodes_;
};

class etcd_store final : public store_under_test {
 public:
  etcd_store() { cluster_.resume_all(); }
  std::string url() const override { return cluster_.url() + "?prefix=" + prefix_; }
  void lose(const std::string& name) override { cluster_.remove_keys(prefix_ + name + "/"); }
  void reachable(bool on) override { on ? cluster_.resume_all() : cluster_.pause_all(); }
  // Whole seconds, and no less than one and a half times its election timeout.
  std::chrono::milliseconds granted(std::chrono::milliseconds asked) const override {
    return std::max(std::chrono::seconds{2}, std::chrono::ceil<std::chrono::seconds>(asked));
  }

 private:
  etcd_cluster& cluster_ = shared_etcd();
  const std::string prefix_ = fresh_prefix();
};

// One deployment for all tests of a process, and a prefix for each.
class sentinel_store final : public store_under_test {
 public:
  // A test may leave it as it is.
  ~sentinel_store() override { sentinel_store::reachable(true); }
  std::string url() const override { return group().url("prefix=" + prefix_); }
  void lose(const std::string& name) override {
    (void)group().server(0).command({"DEL", prefix_ + name});
  }
  void reachable(bool on) override {
    auto& all = group();
    for (std::size_t i = 0; i < all.servers(); ++i)
      on ? all.server(i).resume() : all.server(i).pause();
    for (std::size_t i = 0; i < all.sentinels(); ++i)
      on ? all.sentinel(i).resume() : all.sentinel(i).pause();
  }

 private:
  // What is not reachable for a while is not dead: there is no failover here.
  static sentinel_group& group() {
    static sentinel_group all{{.down_after = std::chrono::minutes{10}}};
    return all;
  }
  const std::string prefix_ = fresh_prefix();
};

#if HOLDFAST_HAS_ZOOKEEPER
// One ensemble for all of them: it takes seconds to start.
zookeeper_ensemble& shared_ensemble() {
  static zookeeper_ensemble three{3};
  return three;
}

class zookeeper_store final : public store_under_test {
 public:
  // The next test has the same servers.
  ~zookeeper_store() override { ensemble_.resume_all(); }
  std::string url() const override { return ensemble_.url(chroot_); }
  void lose(const std::string& name) override {
    raw_zookeeper{ensemble_.hosts()}.remove_all(chroot_ + "/" + name);
  }
  void reachable(bool on) override { on ? ensemble_.resume_all() : ensemble_.pause_all(); }

 private:
  zookeeper_ensemble& ensemble_ = shared_ensemble();
  const std::string chroot_ = fresh_chroot();
};
#endif

template <class Store, class... Arguments>
std::unique_ptr<store_under_test> made(Arguments... arguments) {
  return std::make_unique<Store>(arguments...);
}

}  // namespace

const std::vector<store_entry>& stores_under_test() {
  static const std::vector<store_entry> all {
    {"Memory", false, false, true, true, [] { return made<memory_store>(); }},
        {"Redis", true, true, true, true, [] { return made<redis_store>(false); }},
        {"RedisTcp", true, true, true, false, [] { return made<redis_store>(true); }},
        {"RedisTls", true, true, true, false, [] { return made<redis_tls_store>(); }},
        {"RedisCluster", true, true, true, false, [] { return made<redis_cluster_store>(); }},
        {"Redlock3", true, true, false, true, [] { return made<redlock_store>(std::size_t{3}); }},
        {"Redlock5", true, true, false, false, [] { return made<redlock_store>(std::size_t{5}); }},
        {"Sentinel", true, true, true, false, [] { return made<sentinel_store>(); }},
        {"Session", true, true, false, true, [] { return made<session_store>(); }},
#if HOLDFAST_HAS_ETCD
        {"Etcd", true, true, false, true, [] { return made<etcd_store>(); }},
#endif
#if HOLDFAST_HAS_ZOOKEEPER
        {"Zookeeper", true, true, false, true, [] { return made<zookeeper_store>(); }, true},
#endif
  };
  return all;
}

}  // namespace holdfast::test
