// One connection to Redis, shared by callers who do its I/O themselves.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/result.hpp>

#include "core/adaptive_spin.hpp"
#include "core/types.hpp"
#include "runtime/parker.hpp"
#include "runtime/stream.hpp"
#include "stores/redis/changed_keys.hpp"
#include "stores/redis/resp.hpp"
#include "stores/waiting.hpp"

namespace holdfast::stores::redis {

// Thread-safe. There is no I/O thread: a thread that waits for a reply and finds no other reading
// reads, for all. A lone caller therefore writes and reads its own socket with no thread hop, and
// polls it briefly before it sleeps, when that has paid; many callers' commands leave together,
// because a thread that comes while another is sending only adds to what that one sends. Over a
// stream that tells by itself no thread waits: replies are read as they come.
//
// | state   | call()                        | post()    |
// |---------|-------------------------------|-----------|
// | healthy | sent, answered in order       | sent      |
// | suspect | as healthy; the pool drops it | as before |
// | broken  | errc::store_unreachable       | 0         |
class channel {
 public:
  // Commands in flight on one connection; beyond it a caller is told errc::overloaded.
  static constexpr std::size_t in_flight_max = 4096;
  // How long the reply to a posted command may take before the connection is given up, unless told
  // otherwise.
  static constexpr core::duration posted_reply_max = std::chrono::milliseconds{500};
  // A connection that was idle for longer is looked at before it is used: the server may have
  // closed it, and what is sent then has an outcome that nobody knows.
  static constexpr core::duration trusted_idle_max = std::chrono::milliseconds{10};

  using on_reply = std::function<void(result<reply>)>;

  // `spin`: how long a lone caller polls before it sleeps; zero: never.
  channel(std::unique_ptr<runtime::stream> over, std::string node, core::duration spin,
          core::duration posted_patience = posted_reply_max);
  channel(const channel&) = delete;
  channel& operator=(const channel&) = delete;
  ~channel();

  // Sends one command. `done` gets its reply, in turn with the caller. `alone`: no other caller
  // uses this server now. errc::store_unreachable: it was not sent. errc::outcome_unknown: sent, no
  // reply. `position` (if any) is where it stands among all commands sent here, for answered(); it
  // is set before `done` can be called. `before`: another command, to go right in front of it.
  void call(std::string_view command, core::time_point until, bool alone, caller& by, on_reply done,
            std::uint64_t* position = nullptr, std::string_view before = {});
  // The same on the calling thread.
  [[nodiscard]] result<reply> call(std::string_view command, core::time_point until, bool alone);

  // Sends one command whose reply nobody waits for. Never blocks. `done` is called by the thread
  // that reads the reply, or when the connection breaks. Gives its position; 0, and no call of
  // `done`, if it could not be sent. `before`: another command, to go right in front of it.
  [[nodiscard]] std::uint64_t post(std::string_view command, on_reply done,
                                   std::string_view before = {});

  // Calls `done` when the reply to the command at this position has been read, when the connection
  // breaks, or at `until`; at once if another caller waits for the same reply.
  void await(std::uint64_t position, core::time_point until, caller& by,
             const std::function<void()>& done);
  // On a stream that tells by itself, replies are read as they come, as long as `self` lives.
  void read_when_told(std::weak_ptr<channel> self);

  // Sends and reads what can be without waiting, unless another thread does. Breaks the connection
  // if a reply that nobody waits for has not come for too long: no caller would notice.
  void sweep();

  // Whether replies to everything sent up to now, or up to then, have been read.
  [[nodiscard]] std::uint64_t sent() const noexcept { return sent_.load(); }
  [[nodiscard]] bool answered(std::uint64_t up_to) const noexcept { return read_.load() >= up_to; }
  [[nodiscard]] bool idle() const noexcept { return answered(sent()); }

  // To be called before the first use of a connection on which the server tells of changed keys.
  // Where it was not called, what comes unasked on an idle connection breaks it.
  void keep_changes() noexcept { keeps_changes_ = true; }
  // Those that have been told since the last call. Reads what has come, if nothing is under way.
  [[nodiscard]] changed_keys take_changes();

  [[nodiscard]] bool broken() const noexcept { return broken_.load(); }
  // A caller gave up waiting for a reply: the connection may be stuck.
  [[nodiscard]] bool suspect() const noexcept { return suspect_.load(); }
  void break_off(const std::string& why);
  // The server at its end is the wrong one by now: nothing new goes there.
  void doubt() noexcept { suspect_ = true; }

  // Gives the connection away, for another use than commands and replies. Only when idle.
  [[nodiscard]] std::unique_ptr<runtime::stream> take();

  // To wait on several connections at once: poll for reading, then sweep(). Only where nobody uses
  // call(), whose leader may make the socket sleep through short replies.
  [[nodiscard]] int fd() const noexcept { return stream_->fd(); }
  // There may be something to read already: do not poll before sweep().
  [[nodiscard]] bool has_buffered() const noexcept { return stream_->has_buffered(); }

  // How many callers the pool has put here; the pool's business.
  int users = 0;

 private:
  class pending_call;
  struct in_flight {
    std::shared_ptr<pending_call> call;  // null: no caller waits, or not any more
    on_reply done;                       // for posted commands: gets the reply
    std::uint64_t ends_at = 0;
    core::time_point posted_at = core::never;
  };
  // What is to be said once m_ is unlocked.
  struct announcements {
    std::vector<std::shared_ptr<runtime::parker>> woken;
    std::vector<std::pair<on_reply, result<reply>>> told;
  };
  using lock = std::unique_lock<std::mutex>;

  bool enqueue(std::string_view command, in_flight entry);
  void send_or_leave(lock& held);
  void notice_closing(lock& held);
  void read_unasked(lock& held);
  void send_pending(lock& held);
  void lead(lock& held, pending_call& mine);
  enum class read_result { progress, nothing, failed };
  read_result read_replies(lock& held, core::time_point until, bool may_wait, bool alone);
  void deliver(lock& held, std::vector<reply>& replies);
  void break_locked(lock& held, const std::string& why, errc sent_code);
  static void answer(in_flight& entry, result<reply> with, announcements& say);
  static void announce(lock& held, announcements& all);
  void pass_lead(lock& held);
  void wait_for(lock& held, pending_call& mine);
  void give_up(const pending_call& mine);
  [[nodiscard]] runtime::io_outcome poll_briefly(char* into, std::size_t room);
  void sleep_through(std::size_t posted);

  std::unique_ptr<runtime::stream> stream_;
  const std::string node_;
  const core::duration spin_;
  const core::duration posted_patience_;
  bool keeps_changes_ = false;  // constant after construction
  reply_reader reader_;         // the leader's

  std::atomic<bool> broken_{false};
  std::atomic<bool> suspect_{false};
  std::atomic<std::uint64_t> sent_{0};
  std::atomic<std::uint64_t> read_{0};

  // The leader's.
  core::adaptive_spin polling_;
  int bytes_that_wake_ = 1;  // as the socket is set

  std::mutex m_;
  // Protected by m_.
  std::string out_;
  std::string sending_;
  std::deque<in_flight> in_flight_;
  std::uint64_t stream_end_ = 0;      // bytes ever put into out_
  std::uint64_t stream_flushed_ = 0;  // bytes ever handed to the kernel
  core::time_point last_used_{};
  changed_keys changes_;
  std::size_t awaited_ = 0;         // commands in flight that a caller waits for
  std::size_t awaited_unsent_ = 0;  // of those, the ones in out_
  bool someone_sends_ = false;
  bool someone_leads_ = false;
};

}  // namespace holdfast::stores::redis
