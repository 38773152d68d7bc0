// One Redis server: its connections, and how requests find one.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/result.hpp>

#include "core/backoff.hpp"
#include "core/types.hpp"
#include "scripts.hpp"
#include "stores/redis/channel.hpp"
#include "stores/redis/dialer.hpp"

namespace holdfast::stores::redis {

struct link_limits {
  std::size_t connections = 2;
  core::duration spin = std::chrono::microseconds{60};
};

// Which connection carried a request, so that a later one can be sent behind it.
struct trace {
  std::shared_ptr<channel> on;
  std::uint64_t position = 0;

  [[nodiscard]] bool answered() const noexcept { return !on || on->answered(position); }
};

// A script with its keys and arguments, ready to be sent.
class script_call {
 public:
  // `to_come`: arguments that are added when it is sent.
  script_call(const scripts::script& which, std::span<const std::string_view> keys,
              std::span<const std::string_view> args, std::size_t to_come = 0);
  [[nodiscard]] const std::string& by_hash() const noexcept { return by_hash_; }
  [[nodiscard]] const scripts::script* which() const noexcept { return which_; }
  // For a server that does not know the script: after a restart, or SCRIPT FLUSH.
  [[nodiscard]] std::string by_source() const;

 private:
  const scripts::script* which_;
  std::string by_hash_;
  std::size_t tail_at_ = 0;
  std::size_t arguments_ = 0;
};

// Thread-safe. Few callers get a connection each; more than that share one, where their requests
// travel in batches (from four callers on that is faster, and half of the work).
// A connection on which a reply failed to come is used for nothing new, and closed once it has
// caught up or is too old; those that were idle at the time go with it, because what silenced one
// (a firewall, a moved address) silences all, and finding out one by one takes a timeout each.
// Connecting anew is paced: bounded, jittered back-off for all together.
class link {
 public:
  // Connections that are being given up; the oldest is closed when there are more.
  static constexpr std::size_t retired_max = 8;

  struct hooks {
    std::function<void()> reconnected;
    std::function<void()> retired;  // a connection is being given up: sweep() soon
    // The server is not the master any more, though connections to it work.
    std::function<void()> demoted;
    // A connection was made, or found broken: the server may have come back without its data.
    std::function<void()> doubtful;
  };

  link(std::shared_ptr<dialer> to, link_limits limits, hooks tell);
  link(const link&) = delete;
  link& operator=(const link&) = delete;
  ~link();

  // `behind`: use that connection if it still works, so that this comes after what it carries.
  // `used` (if any) is set to where it was sent.
  [[nodiscard]] result<reply> run(const script_call& script, core::time_point until,
                                  const trace& behind = {}, trace* used = nullptr);
  // For what changes nothing: asked again if the connection breaks under it.
  [[nodiscard]] result<reply> look(const script_call& script, core::time_point until,
                                   const trace& behind = {});
  [[nodiscard]] result<reply> look(std::string_view bytes, core::time_point until);

  // For connections of their own, for a use that is not ours.
  [[nodiscard]] dialer& dial() const noexcept { return *dialer_; }

  // Sends without waiting, if a connection is open; nothing otherwise. Position 0: there are too
  // many requests under way, and it was not sent. `done` and `before` as channel::post().
  [[nodiscard]] trace post(const script_call& script, const trace& behind, channel::on_reply done,
                           std::string_view before = {});

  // Uses no connection that there is now for anything new: behind the same address may be another
  // server.
  void renounce();

  // Those that are in use, and what to do with one whose end was noticed by watching it.
  [[nodiscard]] std::vector<std::shared_ptr<channel>> connections();
  void dismiss(channel& ended);

  // Reads replies that nobody waits for and closes connections that are given up.
  // True while there is more of that to come.
  bool sweep(core::time_point now);

  // Waits for the replies that nobody waits for.
  void flush(core::time_point until);

  [[nodiscard]] const std::string& node() const noexcept { return dialer_->node(); }
  void close();

 private:
  struct retired {
    std::shared_ptr<channel> on;
    core::time_point since;
  };
  class use;

  [[nodiscard]] result<reply> exchange(std::string_view bytes, core::time_point until,
                                       const trace& behind, trace* used);
  [[nodiscard]] result<reply> exchange_once(std::string_view bytes, core::time_point until,
                                            const trace& behind, trace* used);
  // Nothing: open another, and count it in connecting_.
  [[nodiscard]] std::shared_ptr<channel> pick(const trace& behind);
  // The same for a caller that may wait while others connect. Nothing at `until`, too.
  [[nodiscard]] std::shared_ptr<channel> pick_or_wait(std::unique_lock<std::mutex>& held,
                                                      const trace& behind, core::time_point until);
  [[nodiscard]] result<std::shared_ptr<channel>> connect(core::time_point until);
  [[nodiscard]] failure refused(std::string_view said);
  void drop_unfit();

  const std::shared_ptr<dialer> dialer_;
  const link_limits limits_;
  const hooks tell_;

  // The script that the server is known to have, of those that are posted. Nobody is there to
  // send a posted script again if the server does not know it, so the first goes as source.
  std::atomic<const scripts::script*> posted_before_{nullptr};

  std::mutex m_;
  // Protected by m_.
  std::vector<std::shared_ptr<channel>> channels_;
  std::vector<retired> retired_;
  std::size_t connecting_ = 0;
  std::condition_variable connected_;
  int callers_ = 0;
  int crowd_ = 0;  // most callers lately, times crowd_memory
  bool was_connected_ = false;
  bool closed_ = false;
  core::backoff pace_;
  core::time_point not_before_{};
  failure last_failure_;
};

}  // namespace holdfast::stores::redis
