// Locks in an etcd cluster of three, beside the same calls by hand: what etcdctl sends for a lock.
#include "support/built.hpp"

#if HOLDFAST_HAS_ETCD

#include <curl/curl.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>

#include <holdfast/holdfast.hpp>

#include "bench.hpp"
#include "pairs.hpp"
#include "support/etcd_cluster.hpp"
#include "workers.hpp"

namespace holdfast::bench {

namespace {

// For a waiter to have its watch, once it is queued.
constexpr auto until_watched = std::chrono::milliseconds{3};

// Requests on one connection that stays open.
class by_hand {
 public:
  explicit by_hand(std::uint16_t port)
      : root_{"http://127.0.0.1:" + std::to_string(port) + "/v3/"}, easy_{curl_easy_init()} {
    curl_easy_setopt(easy_, CURLOPT_WRITEFUNCTION, &by_hand::take);
    curl_easy_setopt(easy_, CURLOPT_WRITEDATA, &got_);
    curl_easy_setopt(easy_, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy_, CURLOPT_PROXY, "");
  }
  by_hand(const by_hand&) = delete;
  by_hand& operator=(const by_hand&) = delete;
  ~by_hand() { curl_easy_cleanup(easy_); }

  const std::string& post(const std::string& path, const std::string& body) {
    got_.clear();
    const auto url = root_ + path;
    curl_easy_setopt(easy_, CURLOPT_URL, url.c_str());
    curl_easy_setopt(easy_, CURLOPT_COPYPOSTFIELDS, body.c_str());
    if (curl_easy_perform(easy_) != CURLE_OK) throw std::runtime_error{"baseline: no answer"};
    if (got_.find("\"revision\"") == std::string::npos) {
      throw std::runtime_error{"baseline: " + got_};
    }
    return got_;
  }

  // Grants a lease, puts the key unless it is there, and removes it again. Its key is "h/x".
  void lock_and_unlock() {
    const auto& granted = post("lease/grant", R"({"TTL":"60"})");
    const auto at = granted.find("\"ID\":\"");
    const auto lease = granted.substr(at + 6, granted.find('"', at + 6) - at - 6);
    post("kv/txn",
         R"({"compare":[{"key":"aC94","target":"CREATE","result":"EQUAL","create_revision":"0"}],)"
         R"("success":[{"request_put":{"key":"aC94","lease":")" +
             lease +
             R"("}},{"request_range":{"key":"aC8=","range_end":"aDA=","sort_target":"CREATE",)"
             R"("sort_order":"ASCEND","limit":"1"}}]})");
    post("kv/deleterange", R"({"key":"aC94"})");
  }
  void write() { post("kv/put", R"({"key":"dw==","value":"dw=="})"); }

 private:
  static std::size_t take(char* bytes, std::size_t, std::size_t count, void* to) {
    static_cast<std::string*>(to)->append(bytes, count);
    return count;
  }
  const std::string root_;
  CURL* const easy_;
  std::string got_;
};

// Started when the first case needs it.
test::etcd_cluster& cluster() { return test::shared_etcd(); }

double our_pairs(std::chrono::milliseconds time) {
  client us{cluster().url(), {.lock = {.ttl = std::chrono::seconds{60}}}};
  auto lock = us.mutex("bench/pair");
  return per_second(time, [&] { const std::scoped_lock guard{lock}; });
}

double their_pairs(std::chrono::milliseconds time) {
  by_hand them{cluster().port(0)};
  return per_second(time, [&] { them.lock_and_unlock(); });
}

std::int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds{1};
}

// Says whether its client waits.
class waiting_shown : public observer {
 public:
  explicit waiting_shown(std::atomic<bool>& where) : where_{where} {}
  void on_event(const event& what) noexcept override {
    if (what.type == event::kind::waiting) where_ = true;
  }

 private:
  std::atomic<bool>& where_;
};

template <class Condition>
void look_until(Condition over) {
  while (!over())
    std::this_thread::sleep_for(std::chrono::microseconds{100});
}

// Held until the other one is queued, and no longer: servers that rest for a while answer later,
// and the baseline's do not rest either. Who gave it back asks again when the other one runs: the
// baseline's servers have nothing else to do either.
double handoff(std::chrono::milliseconds time) {
  const auto url = cluster().url();
  board all;
  run_workers(*all, 2, time, [&](int me) {
    client us{url,
              {.lock = {.ttl = std::chrono::seconds{60}},
               .observer = std::make_shared<waiting_shown>(all->waits[me])}};
    auto lock = us.mutex("bench/handoff");
    static_cast<void>(us.status("bench/handoff"));
    ready_and_wait(*all);
    while (!all->stop.load()) {
      {
        const std::scoped_lock guard{lock};
        const auto since = all->released_at_ns.exchange(0);
        // One that did not wait had it first.
        if (all->waits[me].exchange(false) && since != 0) {
          all->sample(static_cast<double>(now_ns() - since) / 1000);
        }
        look_until([&] { return all->waits[1 - me] || all->stop; });
        std::this_thread::sleep_for(until_watched);
        all->released_at_ns = now_ns();
      }
      look_until([&] { return all->released_at_ns == 0 || all->stop; });
    }
  });
  auto samples = all->samples();
  return quantile(samples, 0.5);
}

double one_write(std::chrono::milliseconds time) {
  by_hand them{cluster().port(0)};
  return quantile_of_calls(time, 0.5, [&] { return microseconds_of([&] { them.write(); }); });
}

}  // namespace

std::vector<bench_case> etcd_cases() {
  return {
      {"etcd_pair_1", "etcd, three servers in memory: one thread, one lock", "pairs/s",
       "lease grant, transaction and removal by hand, as etcdctl does", true, 1.3, our_pairs,
       their_pairs},
      {"etcd_handoff", "the same: release in one process to running in the next, p50", "µs",
       "one write to the same cluster after another, p50", false, 2.5, handoff, one_write},
  };
}

}  // namespace holdfast::bench

#else

#include "bench.hpp"

namespace holdfast::bench {
std::vector<bench_case> etcd_cases() { return {}; }
}  // namespace holdfast::bench

#endif
