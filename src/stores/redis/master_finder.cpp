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
                                                                   core::time_point until,
                                                                   bool tells_changes) {
  auto where = at_(to);
  where.tells_changes = tells_changes;
  where.wanted = endpoint::role::master;
  where.keep_in = [this, &to](auto made) { return connections_->keep(std::move(made), to); };
  return open_connection(where, std::min(until, core::after(runtime::now(), greeting_max)));
}

result<std::unique_ptr<runtime::stream>> master_finder::connect(core::time_point until,
                                                                bool tells_changes) {
  const auto known = connections_->master();
  result<std::unique_ptr<runtime::stream>> over;
  bool is_final = false;
  if (known) {
    over = connect_to(*known, until, tells_changes);
    is_final = over || !core::is_passing(over.error().code);
  }
  if (!is_final) {
    const auto found = search(until);
    if (!found) return fail(found.error());
    // The same again: what has come of that is all that there is to say.
    if (known != *found) over = connect_to(*found, until, tells_changes);
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
  master_dialer(std::shared_ptr<master_finder> by, bool tells_changes)
      : dialer{by->name()}, finder_{std::move(by)}, tells_changes_{tells_changes} {}
  void dial(core::time_point until, on_connected done) override {
    done(finder_->connect(until, tells_changes_));
  }

 private:
  const std::shared_ptr<master_finder> finder_;
  const bool tells_changes_;
};

}  // namespace

std::shared_ptr<dialer> make_master_dialer(std::shared_ptr<master_finder> by, bool tells_changes) {
  return std::make_shared<master_dialer>(std::move(by), tells_changes);
}

}  // namespace holdfast::stores::redis
