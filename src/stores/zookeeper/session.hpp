// One session: how long it is good for, and who is told when a node changes.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "stores/zookeeper/handle.hpp"
#include "stores/zookeeper/turn.hpp"

namespace holdfast::stores::zookeeper {

// Thread-safe.
//
// A server that has lost its leader answers reads for a while, so a read says nothing about the
// session. A change that was committed does: the leader knew the session then. The leader hears of
// a session's signs of life with the next ping of the server that the client is connected to, half
// a tick later at most, and counts from there. So the session is good for its timeout, less that
// half tick, from the moment the last committed change was sent.
class session {
 public:
  explicit session(core::duration touch_lag) : touch_lag_{touch_lag} {}
  session(const session&) = delete;
  session& operator=(const session&) = delete;

  // Once. What it tells may come before this returns.
  [[nodiscard]] result<void> open(const handle::config& what, handle::events tell);
  [[nodiscard]] handle& at() const noexcept { return *handle_; }

  // Connected, with the session that it had; or with its first. False: the server gave it another.
  [[nodiscard]] bool on_connected();
  void on_suspended() noexcept { connected_ = false; }
  void on_ended();

  [[nodiscard]] bool connected() const noexcept { return connected_ && !ended_; }
  [[nodiscard]] bool ended() const noexcept { return ended_; }
  [[nodiscard]] std::int64_t id() const noexcept { return id_; }
  // What is left of the server's timeout.
  [[nodiscard]] core::duration ttl() const noexcept { return ttl_.load(); }

  // A change that was sent then has been committed.
  void confirm(core::time_point sent) noexcept;
  // When the last change was sent that has been committed.
  [[nodiscard]] core::time_point confirmed() const noexcept { return confirmed_.load(); }

  // `who` is told once of the next event of this node, which has to be read with a watch, and of
  // the end of a connection or of the session.
  void watch(const std::string& path, const std::shared_ptr<turn>& who);
  void unwatch(const std::string& path, const std::shared_ptr<turn>& who);
  void on_node(const std::string& path);

  // The session is to outlive its client.
  void outlive() noexcept { outlives_ = true; }
  // Not on the library's threads.
  void close();

 private:
  void tell_all();

  const core::duration touch_lag_;
  mutable std::mutex opening_;
  std::shared_ptr<handle> handle_;
  std::atomic<std::int64_t> id_{0};
  std::atomic<bool> connected_{false};
  std::atomic<bool> ended_{false};
  std::atomic<bool> outlives_{false};
  std::atomic<core::duration> ttl_{};
  std::atomic<core::time_point> confirmed_{};

  std::mutex m_;
  std::map<std::string, std::vector<std::weak_ptr<turn>>> watched_;  // protected by m_
};

}  // namespace holdfast::stores::zookeeper
