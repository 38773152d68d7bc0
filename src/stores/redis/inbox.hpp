// Where grants arrive: one channel for a client and server, opened when it first has to wait.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/result.hpp>

#include "core/answered_grants.hpp"
#include "core/types.hpp"
#include "stores/pause.hpp"
#include "stores/redis/connection_pool.hpp"
#include "stores/redis/message_reader.hpp"
#include "stores/redis/subscription.hpp"
#include "stores/waiting.hpp"

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

// Thread-safe. Messages are hints: a waiter asks again in time anyway.
class inbox {
 public:
  using on_open = std::function<void(result<void>)>;
  using on_woken = std::function<void(std::optional<grant_message>)>;

  // Open, but no attempt waited for so long: rest() is due.
  static constexpr core::duration rest_after = std::chrono::seconds{1};

  // `name_begins`: how its channel is called, but for what makes it this client's alone.
  // `stray`: called with a grant that no attempt here waits for, to be given back at once.
  // `last_left`: no attempt waits any more, so no thread reads; rest() in a while.
  inbox(connection_pool& via, std::string_view name_begins,
        std::function<void(const grant_message&)> stray, std::function<void()> last_left);
  inbox(const inbox&) = delete;
  inbox& operator=(const inbox&) = delete;

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  // Confirmed open by the server. Joining a queue before would lose grants for sure.
  [[nodiscard]] bool is_open();
  void open(core::time_point until, caller& by, on_open done);
  void close();

  // Unless an attempt has waited since the last call: gives back strays, and closes.
  // A waiter without an inbox is passed over at once. False: not yet, call again.
  [[nodiscard]] bool rest();

  // An attempt is about to join a queue, or has left it. `slot`: of the lock.
  void expect(const core::owner_id& id, unsigned slot);
  void forget(const core::owner_id& id);
  // An attempt learnt of its grant by asking. The message about it may still come, perhaps much
  // later, when a waiter reads here again; it must not be taken for a grant that nobody wants.
  void settle(const core::owner_id& id, fencing_token token);

  // Grants of locks in these slots are sent from another server now: ends the waits for them.
  void ask_again(const std::function<bool(unsigned slot)>& is_meant);

  // A wait of this attempt, to be handed to its caller: it ends when a grant has come, or had come
  // before, at `until`, by end(), and when the connection breaks. `done` gets the newest grant that
  // came; what comes after that is kept for the next wait.
  [[nodiscard]] std::shared_ptr<pause> wait(const core::owner_id& id, core::time_point until,
                                            on_woken done);

 private:
  struct waiter {
    unsigned slot = 0;
    std::optional<grant_message> granted;
    std::shared_ptr<pause> wait;  // under way
  };
  using lock = std::unique_lock<std::mutex>;

  void opened(result<std::shared_ptr<subscription>> made, const on_open& done);
  void received(const message_source& from);
  [[nodiscard]] std::optional<grant_message> end_wait(const core::owner_id& id);
  // Under m_.
  [[nodiscard]] std::vector<grant_message> take_messages();
  [[nodiscard]] bool deliver(const grant_message& grant);
  void disconnect();
  [[nodiscard]] bool settle_locked(const core::owner_id& id, fencing_token token);

  connection_pool& via_;
  const std::string name_;
  const std::function<void(const grant_message&)> stray_;
  const std::function<void()> last_left_;

  std::mutex m_;
  // Protected by m_.
  bool opening_ = false;
  bool drops_what_is_opened_ = false;  // messages may come in it that cannot be told apart
  std::vector<std::shared_ptr<pause>> until_open_;  // callers that wait while another opens it
  core::time_point not_before_{};                   // after a failure
  failure last_failure_;
  std::shared_ptr<subscription> subscription_;
  std::map<core::owner_id, waiter> waiters_;
  core::answered_grants settled_;
  bool used_ = false;  // since rest() was called last

  message_reader reader_;
};

}  // namespace holdfast::stores::redis
