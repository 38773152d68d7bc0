#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>

#include "support/built.hpp"
#include "support/contract.hpp"
#include "support/etcd_cluster.hpp"
#include "support/redis_server.hpp"
#include "support/redlock_nodes.hpp"
#include "support/session_server.hpp"

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
        {"Session", true, true, false, true, [] { return made<session_store>(); }},
#if HOLDFAST_HAS_ETCD
        {"Etcd", true, true, false, true, [] { return made<etcd_store>(); }, true},
#endif
  };
  return all;
}

}  // namespace holdfast::test
