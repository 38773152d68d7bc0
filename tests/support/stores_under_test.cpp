#include <atomic>
#include <stdexcept>
#include <string>

#include "support/built.hpp"
#include "support/contract.hpp"
#include "support/redis_server.hpp"
#include "support/redlock_nodes.hpp"
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
        {"Redlock3", true, true, false, true, [] { return made<redlock_store>(std::size_t{3}); }},
        {"Redlock5", true, true, false, false, [] { return made<redlock_store>(std::size_t{5}); }},
#if HOLDFAST_HAS_ZOOKEEPER
        {"Zookeeper", true, true, false, true, [] { return made<zookeeper_store>(); }, true, true},
#endif
        {"Session", true, true, false, true, [] { return made<session_store>(); }},
  };
  return all;
}

}  // namespace holdfast::test
