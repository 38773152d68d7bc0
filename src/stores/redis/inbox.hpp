// Where grants arrive: one channel for a client and server, opened when it first has to wait.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include <holdfast/result.hpp>

#include "core/answered_grants.hpp"
#include "core/types.hpp"
#include "runtime/fd.hpp"
#include "runtime/wake_fd.hpp"
#include "stores/redis/link.hpp"
#include "stores/redis/resp.hpp"

namespace holdfast::stores::redis {

// A grant as the hand-over script sends it.
struct grant_message {
  core::owner_id id;
  fencing_token token;  // 0: no grant, but the lock is free soon, so ask
  core::duration claim{};
  std::uint64_t block = 1;
  std::string key;
};
[[nodiscard]] std::optional<grant_message> parse_grant(std::string_view payload);

// Thread-safe. There is no thread behind it: of those who wait, one reads for all; a grant for
// another wakes that one. Messages are hints: whoever waits asks again in time anyway.
class inbox {
 public:
  // Open, but nobody waited for so long: rest() is due.
  static constexpr core::duration rest_after = std::chrono::seconds{1};

  // `stray`: called with a grant that nobody here waits for, to be given back at once.
  // `last_left`: nobody waits any more, so nobody reads; rest() in a while.
  inbox(link& via, std::function<void(const grant_message&)> stray,
        std::function<void()> last_left);
  inbox(const inbox&) = delete;
  inbox& operator=(const inbox&) = delete;

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  // Confirmed open by the server. Joining a queue before would lose grants for sure.
  [[nodiscard]] bool is_open();
  [[nodiscard]] result<void> open(core::time_point until);
  void close();

  // Unless somebody has waited since the last call: gives back what came for nobody, and closes. A
  // waiter without an inbox is passed over at once. False: not yet, call again.
  [[nodiscard]] bool rest();

  // An attempt is about to join a queue, or has left it.
  void expect(const core::owner_id& id);
  void forget(const core::owner_id& id);
  // An attempt learnt of its grant by asking. The message about it may still come, perhaps much
  // later, when somebody reads here again; it must not be taken for a grant that nobody wants.
  void settle(const core::owner_id& id, fencing_token token);

  // Returns when a grant for `id` has come, at `until`, on stop, or when the connection broke.
  void wait(const core::owner_id& id, core::time_point until, const std::stop_token& stop);
  // The newest grant that came for `id`, once.
  [[nodiscard]] std::optional<grant_message> take(const core::owner_id& id);

 private:
  struct waiter {
    std::optional<grant_message> granted;
    std::condition_variable wake;
    bool waits = false;
    bool stopped = false;
  };
  using lock = std::unique_lock<std::mutex>;

  struct subscription {
    std::shared_ptr<runtime::stream> over;
    reply_reader reader;
  };
  [[nodiscard]] result<subscription> subscribe(core::time_point until) const;
  // Whether anything came.
  bool read_once(lock& held, core::time_point until);
  void take_messages(lock& held);
  void deliver(const reply_value& message, std::vector<grant_message>& strays);
  [[nodiscard]] bool settle_locked(const core::owner_id& id, fencing_token token);
  void wake_another();
  void disconnect();

  link& via_;
  const std::string name_;
  const std::function<void(const grant_message&)> stray_;
  const std::function<void()> last_left_;
  const runtime::wake_fd wake_;  // wakes the one who reads

  std::mutex opening_;
  // Protected by opening_.
  core::time_point not_before_{};  // after a failure
  failure last_failure_;

  std::mutex m_;
  // Protected by m_.
  std::shared_ptr<runtime::stream> connection_;
  reply_reader reader_;
  std::map<core::owner_id, waiter> waiters_;
  core::answered_grants settled_;
  bool someone_reads_ = false;
  bool used_ = false;  // since rest() was called last
};

}  // namespace holdfast::stores::redis
