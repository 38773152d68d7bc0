// The client side of the native lock on one Redis: the rules of stores/redis/{redis_lock,inbox,
// server}.cpp, told by events. What those decide by core, this does by the same code of core.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/answered_grants.hpp"
#include "core/queue_place.hpp"
#include "core/release_machine.hpp"
#include "sim/client_model.hpp"
#include "sim/link_model.hpp"
#include "sim/lock_script.hpp"

namespace holdfast::sim {

class redis_model final : public client_model {
 public:
  redis_model(network& net, process& in, node& to, const lock_scripts& scripts,
              const left_out& without, std::uint64_t seed);

  void ask(std::size_t lock, stores::blocking::attempt& who, core::time_point until,
           on_answer done) override;
  void wait(std::size_t lock, stores::blocking::attempt& who, core::time_point until,
            on_woken done) override;
  void wake(stores::blocking::attempt& who) override;
  void withdraw(std::size_t lock, stores::blocking::attempt& who, core::time_point until,
                on_removal done) override;
  void release(std::size_t lock, const core::owner_id& id, core::time_point until,
               on_removal done) override;
  void release_later(std::size_t lock, const core::owner_id& id, core::time_point give_up) override;
  void renew(const std::vector<renewing>& leases, core::time_point until,
             on_renewals done) override;
  [[nodiscard]] bool may_arrive_late(const stores::blocking::attempt& who) const override;
  [[nodiscard]] bool withdrawn_for_good(const stores::blocking::attempt&) const override {
    return true;
  }
  [[nodiscard]] bool has_at_store(std::size_t lock, const core::owner_id& id) override;
  // Not followed up: on one node, whoever asks next finds out.
  [[nodiscard]] bool gave_back(std::size_t, const core::owner_id&) const override { return false; }
  [[nodiscard]] bool left_line(std::string_view) const override { return false; }

 private:
  using call = std::shared_ptr<const script_request>;

  // What an attempt has to remember, as in redis_lock.cpp.
  struct waiting {
    std::vector<trace_model> unanswered;
    std::string entry;
    core::queue_place place;
  };
  struct per_lock {
    trace_model last_release;
    std::vector<core::owner_id> releasing;
  };
  struct message {
    fencing_token token;
    core::duration claim{};
    std::uint64_t block = 1;
  };
  struct inbox_place {
    std::optional<message> granted;
    on_woken wake;  // set while it waits
  };
  struct asking {
    std::size_t lock;
    stores::blocking::attempt* who;
    core::time_point until;
    on_answer done;
    bool joining;
    int calls = 0;
  };
  struct releasing_by_id {
    call script;
    core::time_point until;
    core::release_machine machine;
    on_removal done;
    bool was_ours = false;
    int calls = 0;
  };

  [[nodiscard]] static waiting& memory_of(stores::blocking::attempt& who);
  [[nodiscard]] call release_script(std::size_t lock, std::string_view value_begins,
                                    std::string_view entry, std::string_view spared = {}) const;
  std::size_t follow_unanswered(std::size_t lock, stores::blocking::attempt& who,
                                std::string_view spared);
  [[nodiscard]] std::optional<core::grant> take_delivered(stores::blocking::attempt& who);
  void ask_once(const std::shared_ptr<asking>& what);
  void read_answer(const std::shared_ptr<asking>& what, const reply& said,
                   core::time_point counted_from, const std::vector<core::owner_id>& releasing);
  void by_id(call script, core::time_point until, bool unanswered_before, on_removal done);
  void by_id_again(const std::shared_ptr<releasing_by_id>& what);

  void open_inbox(core::time_point until, std::function<void(bool)> done);
  void inbox_broke();
  void read_inbox();
  void wake_waiter(const core::owner_id& id);

  process& in_;
  node& to_;
  const lock_scripts& scripts_;
  const left_out without_;
  random_stream random_;
  link_model calls_;
  link_model renewals_;
  std::vector<per_lock> locks_;
  const std::string inbox_name_;
  connection* inbox_ = nullptr;
  std::vector<std::function<void(bool)>> opening_;  // who waits for it to be open
  std::map<core::owner_id, inbox_place> waiters_;
  std::map<core::owner_id, inbox_place> sleepers_;  // who waits without a place in the queue
  core::answered_grants settled_;
  std::vector<std::string> unread_;  // nobody reads unless somebody waits
};

}  // namespace holdfast::sim
