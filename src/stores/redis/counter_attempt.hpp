// One request of a counter, from its first ask to its answer.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "stores/pause.hpp"
#include "stores/redis/counter.hpp"

namespace holdfast::stores::redis {

// Asks; if that is to wait, listens to the counter's channel, and asks once more, for what was
// published before the subscription was not heard. From then on it asks when it is told of a
// change, and now and then besides. There is no queue, and nothing to take back.
class redis_counter_attempt final : public counter_attempt {
 public:
  redis_counter_attempt(std::shared_ptr<redis_counter> at, core::counter_request what,
                        bool may_wait);
  ~redis_counter_attempt() override;

  void ask(core::time_point until, caller& by, on_answer done) override;
  void wait(core::time_point until, caller& by, std::function<void()> done) override;
  void wake() override;

 private:
  void send();
  void read(const reply_value& answered);
  void listen_or_say(core::counter_answer with);
  void answer(result<core::counter_answer> with);

  const std::shared_ptr<redis_counter> counter_;
  const core::counter_request what_;
  const bool may_wait_;
  const core::owner_id id_;  // one for all asks, so that they are counted once
  std::string round_;        // of a latch, once one is known
  std::shared_ptr<channel_listener::place> place_;  // null: it does not listen

  // The call that is under way.
  core::time_point until_{};
  caller* by_ = nullptr;
  on_answer answered_;
  std::function<void()> woken_;
  bool tried_to_listen_ = false;

  std::mutex m_;
  // Protected by m_.
  std::shared_ptr<pause> wait_;  // under way
  bool woken_before_ = false;    // the next wait ends at once
};

}  // namespace holdfast::stores::redis
