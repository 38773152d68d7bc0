// Messages of many channels of one server, on one connection; see channel_listener.hpp.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <holdfast/result.hpp>

#include "core/types.hpp"
#include "runtime/background.hpp"
#include "runtime/stream.hpp"
#include "stores/pause.hpp"
#include "stores/redis/message_reader.hpp"
#include "stores/redis/resp.hpp"
#include "stores/redis/server_node.hpp"
#include "stores/waiting.hpp"

namespace holdfast::stores::redis {

// Thread-safe. The connection is opened when a waiter first joins a channel, and closed when nobody
// has listened for a while. Messages are hints: a waiter asks again in time anyway.
//
// A message "0" is for one waiter of the channel, the first that was not told yet; others are for
// all.
// A waiter that was told and leaves without having asked for the lock passes the word on.
class node_listener : public std::enable_shared_from_this<node_listener> {
 public:
  // A channel that nobody listens to is kept for so long, at least: who had a lock comes back.
  static constexpr core::duration rest_after = std::chrono::seconds{1};
  // At a time; beyond it waiters are told errc::overloaded, and poll.
  static constexpr std::size_t channels_max = 10'000;

  node_listener(std::shared_ptr<server_node> at, std::shared_ptr<runtime::background> background);
  node_listener(const node_listener&) = delete;
  node_listener& operator=(const node_listener&) = delete;

  // What one waiter hears of one channel. Opaque: everything in it is the listener's.
  class place;
  using on_joined = std::function<void(result<std::shared_ptr<place>>)>;

  // `done` is told when the server has confirmed the subscription: what is published from then on
  // is heard. What was published before is not, so ask for the lock once more.
  // `sharded`: the channel belongs to the node that has its slot, as SPUBLISH has it.
  void join(std::string name, bool sharded, core::time_point until, caller& by, on_joined done);
  // False once its connection is gone: join anew.
  [[nodiscard]] bool hears(const place& mine);
  // A wait to be handed to its caller: ends with a message, at `until`, by end(), and when the
  // connection breaks; at once if a message came since ask_begins().
  [[nodiscard]] std::shared_ptr<pause> wait(const std::shared_ptr<place>& mine,
                                            core::time_point until, std::function<void()> done);
  // The waiter asks for the lock now: what it was told is used up.
  void ask_begins(place& mine);
  // `pass_on`: what it was told and did not use is for another. Not if it has the lock now: it will
  // publish when it gives that back.
  void leave(const std::shared_ptr<place>& mine, bool pass_on);

  void close();

 private:
  class connection;
  struct channel {
    bool sharded = false;
    bool confirmed = false;
    bool used = true;                              // since rest() looked last
    std::vector<std::shared_ptr<place>> places{};  // first come first
  };
  using lock = std::unique_lock<std::mutex>;

  void opened(result<std::unique_ptr<runtime::stream>> made);
  [[nodiscard]] message_reader::sources open_now();
  void received(const message_source& from);
  // All under m_.
  [[nodiscard]] bool send(std::string_view verb, bool sharded, const std::string& name);
  void read(const reply_value& what);
  void refused(std::string_view why);
  void deliver(channel& to, bool all);
  void drop_places(channel& of);
  void disconnect();
  [[nodiscard]] bool is_confirmed(const place& one) const;

  void plan_rest();
  [[nodiscard]] bool rest();

  const std::shared_ptr<server_node> node_;
  const std::shared_ptr<runtime::background> background_;
  message_reader reader_;
  std::atomic<bool> rest_planned_{false};

  std::mutex m_;
  // Protected by m_.
  bool closed_ = false;
  bool opening_ = false;
  std::vector<std::shared_ptr<pause>> until_open_;  // callers that wait while another opens it
  core::time_point not_before_{};                   // after a failure
  failure last_failure_;
  std::shared_ptr<connection> connection_;
  std::map<std::string, channel, std::less<>> channels_;
  std::deque<std::string> unanswered_;  // channels, of (UN)SUBSCRIBE commands in the order sent
};

}  // namespace holdfast::stores::redis
