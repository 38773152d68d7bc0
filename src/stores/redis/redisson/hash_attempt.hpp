// One acquisition of a lock in Redisson's layout.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "stores/pause.hpp"
#include "stores/redis/redisson/hash_lock.hpp"
#include "stores/store.hpp"

namespace holdfast::stores::redis::redisson {

// Asks; if that is to wait, listens to the lock's channel, and asks once more, for what was
// published before the subscription was not heard. From then on it asks when it is told of a
// release, when the holder's TTL is up, and now and then besides. Of a lock that has a queue,
// asking takes a place in it, and says "still here".
class hash_attempt final : public attempt {
 public:
  hash_attempt(hash_lock& at, attempt_spec what);
  ~hash_attempt() override;

  core::owner_id id() const override { return id_; }
  void ask(core::time_point until, caller& by, on_answer done) override;
  void wait(core::time_point until, caller& by, on_woken done) override;
  void wake() override;
  void withdraw(core::time_point until, caller& by, on_removal done) override;

 private:
  // Of one ask.
  void send();
  void read(const reply_value& answered);
  void read_busy(reply_elements fields);
  void listen_or_say(core::busy busy);
  void answer(result<core::answer> with);

  void leave_channel(bool pass_on);
  // Sends a release behind each ask that was not answered, on its own connection, where it cannot
  // overtake. Says how many such asks there are, those on broken connections included. `spared`:
  // how the owner's field of a lock begins that is to be left alone; empty: none.
  std::size_t follow_unanswered(std::string_view spared);

  hash_lock& lock_;
  server& on_;
  const attempt_spec spec_;
  const core::owner_id id_;
  const std::string holder_;
  const std::string entry_;  // in the lock's queue; empty: it takes no place there

  // Asks that were sent and not answered.
  std::vector<sent_position> unanswered_;
  std::size_t asks_ = 0;
  std::shared_ptr<channel_listener::place> place_;  // null: it does not listen

  // The call that is under way.
  core::time_point until_{};
  caller* by_ = nullptr;
  on_answer answered_;
  on_woken woken_;
  on_removal removed_;
  bool tried_to_listen_ = false;
  int calls_ = 0;
  redis_lock::unanswered_releases releases_;
  core::time_point counted_from_{};
  std::optional<core::time_point> asked_before_;  // of the last ask that was answered "busy"

  std::mutex m_;
  // Protected by m_.
  std::shared_ptr<pause> wait_;  // under way
  bool woken_before_ = false;    // the next wait ends at once
};

}  // namespace holdfast::stores::redis::redisson
