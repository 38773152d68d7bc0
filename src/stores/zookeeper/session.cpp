#include "stores/zookeeper/session.hpp"

#include <algorithm>
#include <utility>

#include "runtime/clock.hpp"

namespace holdfast::stores::zookeeper {

namespace {

bool is_or_gone(const std::weak_ptr<turn>& one, const std::shared_ptr<turn>& who) {
  const auto alive = one.lock();
  return !alive || alive == who;
}

}  // namespace

result<void> session::open(const handle::config& what, handle::events tell) {
  // What is told waits here until the handle is known.
  const std::lock_guard guard{opening_};
  // To open a session is a change that is committed.
  confirm(runtime::now());
  auto opened = handle::open(what, std::move(tell));
  if (!opened) return stores::fail(std::move(opened.error()));
  handle_ = std::move(*opened);
  return {};
}

bool session::on_connected() {
  const std::lock_guard guard{opening_};
  const auto now_is = handle_->session_id();
  if (id_ != 0 && id_ != now_is) return false;
  id_ = now_is;
  const auto timeout = handle_->granted_timeout();
  ttl_ = std::max(timeout - touch_lag_, timeout / 2);
  connected_ = true;
  tell_all();
  return true;
}

void session::on_ended() {
  ended_ = true;
  connected_ = false;
  tell_all();
}

void session::confirm(core::time_point sent) noexcept {
  auto known = confirmed_.load();
  while (known < sent && !confirmed_.compare_exchange_weak(known, sent)) {
  }
}

void session::watch(const std::string& path, const std::shared_ptr<turn>& who) {
  const std::lock_guard guard{m_};
  auto& all = watched_[path];
  std::erase_if(all, [&](const auto& one) { return is_or_gone(one, who); });
  all.push_back(who);
}

void session::unwatch(const std::string& path, const std::shared_ptr<turn>& who) {
  const std::lock_guard guard{m_};
  const auto found = watched_.find(path);
  if (found == watched_.end()) return;
  std::erase_if(found->second, [&](const auto& one) { return is_or_gone(one, who); });
  if (found->second.empty()) watched_.erase(found);
}

void session::on_node(const std::string& path) {
  std::vector<std::weak_ptr<turn>> told;
  {
    const std::lock_guard guard{m_};
    const auto found = watched_.find(path);
    if (found == watched_.end()) return;
    told = std::move(found->second);
    watched_.erase(found);
  }
  for (const auto& one : told) {
    if (const auto who = one.lock()) who->come();
  }
}

void session::tell_all() {
  std::map<std::string, std::vector<std::weak_ptr<turn>>> all;
  {
    const std::lock_guard guard{m_};
    all.swap(watched_);
  }
  for (const auto& [path, told] : all) {
    for (const auto& one : told) {
      if (const auto who = one.lock()) who->come();
    }
  }
}

void session::close() {
  std::shared_ptr<handle> mine;
  {
    const std::lock_guard guard{opening_};
    mine = handle_;
  }
  if (!mine) return;
  outlives_ ? mine->abandon() : mine->close();
}

}  // namespace holdfast::stores::zookeeper
