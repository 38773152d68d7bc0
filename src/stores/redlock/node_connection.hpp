// One connection to one node, made and remade in the background.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/result.hpp>

#include "core/backoff.hpp"
#include "core/types.hpp"
#include "runtime/background.hpp"
#include "runtime/wake_fd.hpp"
#include "stores/delayed_task.hpp"
#include "stores/redis/channel.hpp"
#include "stores/redis/dialer.hpp"
#include "stores/redis/script_call.hpp"
#include "stores/waiting.hpp"

namespace holdfast::stores::redlock {

// A command, or a script in a form that can be sent to a node that does not know it.
//
// Every script is told, as its last argument, the run_id that the server gave when the connection
// was made. A server that is started anew has another one, and its connections are new as well: so
// scripts need not ask the server for it each time, which costs as much as the rest of them.
class request {
 public:
  using words = std::span<const std::string_view>;

  explicit request(const redis::command& plain)
      : call_{std::make_shared<const redis::script_call>(plain.bytes())} {}
  request(const redis::scripts::script& which, words keys, words args)
      : call_{std::make_shared<const redis::script_call>(which, keys, args, 1)},
        may_be_unknown_{true} {}
  request(const redis::scripts::script& which, std::initializer_list<std::string_view> keys,
          std::initializer_list<std::string_view> args)
      : request{which, words{keys.begin(), keys.size()}, words{args.begin(), args.size()}} {}

  // True for a script that is sent by its hash.
  [[nodiscard]] bool may_be_unknown() const noexcept { return may_be_unknown_; }
  [[nodiscard]] request as_source() const;
  [[nodiscard]] std::string sent(std::string_view run_id) const;

 private:
  std::shared_ptr<const redis::script_call> call_;
  bool may_be_unknown_ = false;
};

// True if a connection failed the request: the node may not have got it, and a repetition might.
[[nodiscard]] bool was_cut_off(const result<redis::reply>& answer);

// Thread-safe. Nothing here blocks, so that a node that is dead or hung costs its callers nothing.
//
// | state      | send()                                      | doubtful() |
// |------------|---------------------------------------------|------------|
// | open       | sent                                        | if silent  |
// | connecting | sent when it is open; failed when that fails | no         |
// | down       | fails at once; tried again in the background | yes        |
// | closed     | fails at once                               | yes        |
class node_connection : public std::enable_shared_from_this<node_connection> {
 public:
  // Requests that wait for a connection that is being made; beyond it they fail.
  static constexpr std::size_t queued_max = 1024;
  // Releases kept for a node that is down; beyond it the oldest is left to its TTL.
  static constexpr std::size_t owed_max = 4096;
  // Connecting and the greeting: longer than an answer may take, for it is several.
  static constexpr core::duration connect_patience = std::chrono::milliseconds{500};

  using on_reply = redis::channel::on_reply;
  struct outgoing {
    request what;
    on_reply done;
    // False: nobody needs it any more, and it fails instead. None: it is needed.
    std::function<bool()> wanted{};
  };
  // All but `identify` may be empty.
  struct hooks {
    // Of what a fresh connection's server says of itself: its run_id. A failure: the connection is
    // of no use.
    std::function<result<std::string>(std::string_view info)> identify{};
    // What is sent on it in front of all else.
    std::function<std::vector<outgoing>()> first{};
    std::function<void()> opened{};
    std::function<void()> unread{};  // replies that nobody waits for: sweep() soon
  };

  // `reply_patience`: without a reply for so long, the connection is made anew.
  node_connection(std::shared_ptr<redis::dialer> to, core::duration reply_patience,
                  std::shared_ptr<runtime::background> connecting, hooks tell);
  node_connection(const node_connection&) = delete;
  node_connection& operator=(const node_connection&) = delete;
  ~node_connection();

  // `done` is called once, by the thread that reads the reply, or at once. An error reply is a
  // failure. `wanted`, if any, is asked when the connection is made at last: if it says no, this is
  // not sent any more.
  void send(const request& what, on_reply done, std::function<bool()> wanted = nullptr);
  // For a release: kept and sent again, until `give_up`, if the node cannot be asked now, or
  // answers with an error that passes.
  void send_for_sure(const request& what, core::time_point give_up, on_reply done);

  // Not to be waited for: it is down, or did not answer in time when it was last waited for.
  [[nodiscard]] bool doubtful() const noexcept { return silent_ || down_; }
  [[nodiscard]] bool connecting() const;
  void mark_silent() noexcept { silent_ = true; }
  // The connection, to be polled and swept; none if it is not open, and then `tell` (if any) is
  // woken when that changes.
  [[nodiscard]] std::shared_ptr<redis::channel> current(
      const std::shared_ptr<runtime::wake_fd>& tell = {});
  // Reads what has come. True while there is more to come.
  bool sweep();

  [[nodiscard]] const std::string& node() const noexcept { return dialer_->node(); }
  // For a connection of its own.
  [[nodiscard]] redis::dialer& dial() const noexcept { return *dialer_; }
  void close();

 private:
  struct owed {
    request what;
    core::time_point give_up;
  };
  using lock = std::unique_lock<std::mutex>;

  // A connection, and whose it is.
  struct opened {
    opened(std::unique_ptr<runtime::stream> over, const std::string& node,
           core::duration reply_patience)
        : to{std::move(over), node, core::duration::zero(), reply_patience} {}
    redis::channel to;
    std::string run_id{};
  };
  [[nodiscard]] on_reply owing(const request& what, core::time_point give_up, on_reply done);
  bool post(const std::shared_ptr<opened>& on, const request& what, const on_reply& done);
  void on_answer(const std::shared_ptr<opened>& on, const request& what, const on_reply& done,
                 result<redis::reply> answer);
  void owe(owed what);
  [[nodiscard]] bool repeat_owed();
  void send_owed(const std::shared_ptr<opened>& on, const std::deque<owed>& all);
  void lost(const std::shared_ptr<opened>& which);
  void start_connecting(lock& held, core::duration wait);
  void connect(caller& by);
  void greet(std::unique_ptr<runtime::stream> over, core::time_point until, caller& by);
  void on_greeted(const std::shared_ptr<opened>& fresh, result<redis::reply> info);
  void open(const std::shared_ptr<opened>& fresh);
  void went_down(failure why);
  void wake_all(lock& held);

  const std::shared_ptr<redis::dialer> dialer_;
  const core::duration reply_patience_;
  const std::shared_ptr<runtime::background> connecting_;
  const hooks tell_;
  delayed_task repetitions_;  // of what is owed
  std::atomic<bool> silent_{false};
  std::atomic<bool> down_{false};

  mutable std::mutex m_;
  // Protected by m_.
  std::shared_ptr<opened> on_;
  std::shared_ptr<opened> greeted_;  // while it is
  bool under_way_ = false;           // a connection is being made, or planned
  bool closed_ = false;
  std::deque<outgoing> queue_;
  std::deque<owed> owed_;
  std::vector<std::shared_ptr<runtime::wake_fd>> wake_on_open_;  // of threads that wait for that
  core::backoff pace_;
  failure last_failure_;
};

}  // namespace holdfast::stores::redlock
