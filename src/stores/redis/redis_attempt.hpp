// One acquisition of a lock on a Redis server.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/queue_place.hpp"
#include "stores/pause.hpp"
#include "stores/redis/redis_lock.hpp"
#include "stores/store.hpp"

namespace holdfast::stores::redis {

class redis_attempt final : public attempt {
 public:
  redis_attempt(redis_lock& at, attempt_spec what);
  // However the attempt ended: a grant that comes now is for nobody.
  ~redis_attempt() override;

  core::owner_id id() const override { return id_; }
  void ask(core::time_point until, caller& by, on_answer done) override;
  void wait(core::time_point until, caller& by, on_woken done) override;
  void wake() override;
  void withdraw(core::time_point until, caller& by, on_removal done) override;

 private:
  // Of one ask.
  void send();
  void send_behind_releases();
  void read(const reply_value& answered);
  void read_grant(reply_elements fields);
  void read_busy(reply_elements fields, bool queued);
  void join_or_say(core::busy busy);
  void answer(result<core::answer> with);

  void answer_grant(const core::grant& granted, bool written_by_this_ask);
  void woken(std::optional<grant_message> sent);
  void granted_or_not(std::optional<core::grant> granted);
  // What is left of this attempt when its grant was given back: it may ask again.
  void leave();
  [[nodiscard]] std::optional<core::grant> accept(const grant_message& sent) const;
  void join();
  [[nodiscard]] std::string entry_for(const inbox& at) const;
  // The lock's slot has another node: opens the inbox there, moves the place in the queue to it,
  // and asks.
  void follow_the_slot(std::shared_ptr<inbox> to);
  void forget_grants();
  // Sends a release behind each ask that was not answered, on its own connection, where it cannot
  // overtake. Says how many such asks there are, those on broken connections included. `spared`:
  // how the value of a lock begins that is to be left alone; empty: none.
  std::size_t follow_unanswered(std::string_view spared);

  redis_lock& lock_;
  server& on_;
  const attempt_spec spec_;
  const core::owner_id id_;
  const std::string holder_;

  // Asks that were sent and not answered.
  std::vector<sent_position> unanswered_;
  std::size_t asks_ = 0;
  // Its entry in the queue; empty: not joined.
  std::string entry_;
  std::chrono::milliseconds joined_{};
  // Where its grants arrive; null: not known yet. Of a cluster, that on the node with the slot.
  std::shared_ptr<inbox> grants_;
  // Where they did before. What was sent there may still come.
  std::vector<std::shared_ptr<inbox>> left_inboxes_;
  core::queue_place place_;

  // The call that is under way.
  core::time_point until_{};
  caller* by_ = nullptr;
  on_answer answered_;
  on_woken woken_;
  on_removal removed_;
  bool joining_ = false;
  int calls_ = 0;
  redis_lock::unanswered_releases releases_;
  core::time_point counted_from_{};
  std::shared_ptr<channel> carrier_;  // of the latest ask that was answered

  std::mutex m_;
  // Protected by m_.
  std::shared_ptr<pause> wait_;  // under way
  bool woken_before_ = false;    // the next wait ends at once
};

}  // namespace holdfast::stores::redis
