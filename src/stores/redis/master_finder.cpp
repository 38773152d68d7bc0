#include "stores/redis/master_finder.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "core/passing.hpp"
#include "runtime/clock.hpp"

namespace holdfast::stores::redis {

master_finder::master_finder(std::unique_ptr<deployment> in,
                             std::function<endpoint(const core::server_address&)> at)
    : in_{std::move(in)}, at_{std::move(at)} {}

master_finder::~master_finder() {
  stopping_ = true;
  stop_.wake();
  if (watcher_.joinable()) watcher_.join();
}

result<std::unique_ptr<runtime::stream>> master_finder::connect_to(const core::server_address& to,
                                                                   endpoint terms,
                                                                   core::time_point until) {
  auto where = at_(to);
  terms.node = std::move(where.node);
  terms.connect = std::move(where.connect);
  terms.host = std::move(where.host);
  terms.tls = std::move(where.tls);
  terms.wanted = endpoint::role::master;
  terms.keep_in = [this, &to](auto made) { return connections_->keep(std::move(made), to); };
  return open_connection(terms, std::min(until, core::after(runtime::now(), greeting_max)));
}

result<std::unique_ptr<runtime::stream>> master_finder::connect(const endpoint& terms,
                                                                core::time_point until) {
  const auto known = connections_->master();
  result<std::unique_ptr<runtime::stream>> over;
  bool is_final = false;
  if (known) {
    over = connect_to(*known, terms, until);
    is_final = over || !core::is_passing(over.error().code);
  }
  if (!is_final) {
    const auto found = search(until);
    if (!found) return fail(found.error());
    // The same again: what has come of that is all that there is to say.
    if (known != *found) over = connect_to(*found, terms, until);
  }
  if (over) start_watching();
  return over;
}

// Of callers that come at the same time one searches for all: an answer counts for those that came
// before it was asked for.
result<core::server_address> master_finder::search(core::time_point until) {
  std::unique_lock lock{m_};
  const auto came_at = searches_;
  while (searching_) {
    const auto now = runtime::now();
    if (now >= until) return fail(errc::store_unreachable, "others search for the master");
    searched_.wait_for(lock, until - now);
  }
  if (searches_ > came_at) return found_;
  searching_ = true;
  ++searches_;
  lock.unlock();
  auto found = in_->find_master(std::min(until, core::after(runtime::now(), search_max)));
  if (found) connections_->set_master(*found);
  lock.lock();
  searching_ = false;
  found_ = found;
  lock.unlock();
  searched_.notify_all();
  return found;
}

void master_finder::start_watching() {
  const std::lock_guard guard{m_};
  if (watcher_.joinable()) return;
  try {
    watcher_ = std::thread{[this] { watch(); }};
  } catch (const std::system_error&) {
    // The next connection tries again. Until then a failover is noticed by what breaks.
  }
}

void master_finder::watch() {
  while (!stopping_) {
    if (!in_->await_news(stop_.fd()) || stopping_) return;
    static_cast<void>(search(core::after(runtime::now(), search_max)));
  }
}

namespace {

class master_dialer final : public dialer {
 public:
  master_dialer(std::shared_ptr<master_finder> by, endpoint terms)
      : dialer{by->name()}, finder_{std::move(by)}, terms_{std::move(terms)} {}
  void dial(core::time_point until, on_connected done) override {
    done(finder_->connect(terms_, until));
  }

 private:
  const std::shared_ptr<master_finder> finder_;
  const endpoint terms_;
};

}  // namespace

std::shared_ptr<dialer> make_master_dialer(std::shared_ptr<master_finder> by, endpoint terms) {
  return std::make_shared<master_dialer>(std::move(by), std::move(terms));
}

}  // namespace holdfast::stores::redis
