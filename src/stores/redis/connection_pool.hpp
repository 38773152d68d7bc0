// One Redis server: its connections, and how requests find one.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/result.hpp>

#include "core/backoff.hpp"
#include "core/types.hpp"
#include "stores/pause.hpp"
#include "stores/redis/channel.hpp"
#include "stores/redis/dialer.hpp"
#include "stores/redis/request_carrier.hpp"
#include "stores/redis/script_call.hpp"
#include "stores/waiting.hpp"

namespace holdfast::stores::redis {

struct pool_limits {
  std::size_t connections = 2;
  core::duration spin = std::chrono::microseconds{60};
  bool keeps_changes = false;  // what the server tells of changed keys is read
  // Where a request belongs is for the caller to find out: an error reply that says "elsewhere" is
  // given as it came.
  bool in_cluster = false;
};

// Thread-safe; must outlive what it was asked for. Few callers get a connection each; more than
// that share one, where their requests travel in batches (from four callers on that is faster, and
// half of the work).
// A connection on which a reply failed to come is used for nothing new, and closed once it has
// caught up or is too old; those that were idle at the time go with it, because what silenced one
// (a firewall, a moved address) silences all, and finding out one by one takes a timeout each.
// Connecting anew is paced: bounded, jittered back-off for all together.
class connection_pool final : public request_carrier {
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

  connection_pool(std::shared_ptr<dialer> to, pool_limits limits, hooks tell);
  ~connection_pool() override;

  void run(script_call script, core::time_point until, const sent_position& behind, caller& by,
           on_answer done) override;
  void look(script_call script, core::time_point until, const sent_position& behind, caller& by,
            on_looked done) override;

  // For connections of their own, for a use that is not ours.
  [[nodiscard]] dialer& dial() const noexcept { return *dialer_; }

  [[nodiscard]] sent_position post(const script_call& script, const sent_position& behind,
                                   channel::on_reply done, std::string_view before) override;
  // Whether it is one of the connections here, so that something can be sent behind what it
  // carries.
  [[nodiscard]] bool carries(const channel& one);

  // Uses no connection that there is now for anything new: behind the same address may be another
  // server.
  void renounce();

  // Those that are in use, and what to do with one whose end was noticed by watching it.
  [[nodiscard]] std::vector<std::shared_ptr<channel>> connections();
  void dismiss(channel& ended);

  // Reads replies that nobody waits for and closes connections that are given up.
  // True while there is more of that to come.
  bool sweep(core::time_point now);

  // Blocks until the replies that nobody waits for have come.
  void flush(core::time_point until);

  [[nodiscard]] const std::string& node() const noexcept override { return dialer_->node(); }
  void close();

 private:
  struct retired {
    std::shared_ptr<channel> on;
    core::time_point since;
  };
  class exchange;
  using on_connected = std::function<void(result<std::shared_ptr<channel>>)>;

  // Nothing: open another, and count it in connecting_.
  [[nodiscard]] std::shared_ptr<channel> pick(const sent_position& behind);
  void connect(core::time_point until, on_connected done);
  void connected(bool again, result<std::shared_ptr<channel>> fresh, const on_connected& done);
  void end_connecting(std::unique_lock<std::mutex>& held);
  void leave(channel& on);
  // Of callers for whose requests there was no room, one looks again for each request that is over:
  // were all to look again and again, thousands of them would keep a thread from reading replies.
  void wait_for_room(std::shared_ptr<pause> turn);
  void room_was_made();
  [[nodiscard]] failure refused(std::string_view said);
  void drop_unfit();

  const std::shared_ptr<dialer> dialer_;
  const pool_limits limits_;
  const hooks tell_;

  // The script that the server is known to have, of those that are posted. Nobody is there to
  // send a posted script again if the server does not know it, so the first goes as source.
  std::atomic<const scripts::script*> posted_before_{nullptr};

  std::mutex m_;
  // Protected by m_.
  std::vector<std::shared_ptr<channel>> channels_;
  std::vector<retired> retired_;
  std::size_t connecting_ = 0;
  std::vector<std::shared_ptr<pause>> until_connected_;  // callers that wait while others connect
  std::deque<std::shared_ptr<pause>> until_room_;        // first come, first served
  int callers_ = 0;
  int crowd_ = 0;  // most callers lately, times crowd_memory
  bool was_connected_ = false;
  bool closed_ = false;
  core::backoff pace_;
  core::time_point not_before_{};
  failure last_failure_;
};

}  // namespace holdfast::stores::redis
