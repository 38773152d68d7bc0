// One lock on a Redis server.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "stores/redis/layout.hpp"
#include "stores/redis/server.hpp"
#include "stores/store.hpp"

namespace holdfast::stores::redis {

class redis_lock : public store_lock, public std::enable_shared_from_this<redis_lock> {
 public:
  redis_lock(std::shared_ptr<server> on, std::string key, const core::lock_kind& kind = {});

  std::unique_ptr<attempt> begin(attempt_spec what) override;
  void release(const core::owner_id& id, core::time_point until, caller& by,
               on_removal done) override;
  void release_later(const core::owner_id& id, core::time_point give_up) noexcept override;
  // The same for a grant that was sent to an attempt which is gone: for that grant only, for the
  // attempt may have been granted the lock anew since, and hold it.
  void give_back(const core::owner_id& id, fencing_token token, core::time_point give_up) noexcept;
  void extend(const core::owner_id& id, fencing_token token, core::duration ttl,
              core::time_point until, caller& by, on_renewal done) override;
  void downgrade(const core::owner_id& id, fencing_token token, core::duration ttl,
                 core::time_point until, caller& by, on_renewal done) override;
  result<void> resize(std::uint32_t permits, core::time_point until) override;
  result<fencing_token> count(const core::owner_id& id, std::string_view counter,
                              core::time_point until) override;
  result<lock_status> inspect(core::time_point until) override;
  result<void> break_with(fencing_token token, core::time_point until) override;
  result<core::duration> recall(fencing_token token, core::time_point until) override;

  // For attempts.
  [[nodiscard]] server& on() const noexcept { return *server_; }
  [[nodiscard]] const std::string& key() const noexcept { return keys_.lock; }
  [[nodiscard]] std::array<std::string_view, 4> keys() const noexcept;
  [[nodiscard]] const core::lock_kind& kind() const noexcept { return kind_; }
  // How many units there are, as scripts are told; empty if that is not known.
  [[nodiscard]] const std::string& capacity() const noexcept { return capacity_; }
  // How renew.lua is told whose lease it is.
  [[nodiscard]] std::string renewed_as(const core::owner_id& id) const;
  // `whose`: how the value of the lock begins that is given back: an owner's id, or a grant's.
  // `entry`: the attempt's place in the queue, to be left; empty if it never joined. `spared`: how
  // the value of a lock begins that is to be left alone; empty: none.
  [[nodiscard]] virtual script_call release_script(std::string_view whose, std::string_view entry,
                                                   std::string_view spared) const;
  [[nodiscard]] script_call release_script(std::string_view whose, std::string_view entry) const {
    return release_script(whose, entry, {});
  }
  // Takes what renew.lua takes, and answers as it does.
  [[nodiscard]] virtual const scripts::script& renew_script() const noexcept;
  [[nodiscard]] virtual const std::string& renewed_key() const noexcept { return key(); }
  struct unanswered_releases {
    sent_position last;               // an ask must come after it
    std::vector<core::owner_id> ids;  // whose lock is ours to take away, if an ask meets it
  };
  [[nodiscard]] unanswered_releases pending_releases();
  // What we gave back last went to a waiter elsewhere.
  [[nodiscard]] bool others_wait() const noexcept { return others_wait_.load(); }

 private:
  struct posted_release;
  void post(const std::shared_ptr<posted_release>& what);
  // False: it has to wait its turn, for the connection takes no more now.
  [[nodiscard]] bool send(const std::shared_ptr<posted_release>& what);
  void try_again(const std::shared_ptr<posted_release>& what, bool unanswered);
  void on_release_reply(const std::shared_ptr<posted_release>& what, const result<reply>& answer);
  void release_over(posted_release& what, const failure* why);

  [[nodiscard]] result<void> check_held_with(std::string_view token, reply_elements said) const;
  // Asks again until all waiters that are gone are passed over.
  void downgrade(script_call script, int calls, core::duration ttl, core::time_point until,
                 caller& by, on_renewal done);

  const std::shared_ptr<server> server_;
  const lock_keys keys_;
  const core::lock_kind kind_;
  const std::string capacity_;

  std::mutex m_;
  // Protected by m_.
  sent_position last_release_;             // an ask must not overtake it
  std::vector<core::owner_id> releasing_;  // given back by us, but the store has not said so yet
  std::atomic<bool> others_wait_{false};
};

// What the inspect script says of one lock, in so many elements; shared by inspect() and the
// store's list().
inline constexpr std::size_t status_elements = 4;
[[nodiscard]] result<lock_status> read_status(std::string name, reply_elements said);
// One answer of the renew script.
[[nodiscard]] renewal read_renewal(const reply_value& answer, core::duration ttl,
                                   core::time_point counted_from);

}  // namespace holdfast::stores::redis
