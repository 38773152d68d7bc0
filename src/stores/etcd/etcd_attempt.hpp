// One acquisition of a mutex in etcd, or of a share of a lock that readers share.
#pragma once

#include <mutex>
#include <string>

#include "stores/etcd/etcd_lock.hpp"

namespace holdfast::stores::etcd {

// Puts its key, unless that is there, and looks who was first, in one transaction. While another
// was, it watches the key next before its own. One that reads watches all writers before it, and
// one that writes all before it.
class etcd_attempt final : public attempt {
 public:
  etcd_attempt(etcd_lock& at, attempt_spec what);
  ~etcd_attempt() override;

  [[nodiscard]] core::owner_id id() const override { return id_; }
  void ask(core::time_point until, caller& by, on_answer done) override;
  void wait(core::time_point until, caller& by, on_woken done) override;
  void wake() override;
  void withdraw(core::time_point until, caller& by, on_removal done) override;

 private:
  [[nodiscard]] bool only_asks() const noexcept { return !spec_.may_wait && !is_queued_; }
  [[nodiscard]] transaction asking(lease_id lease) const;
  void ask_in(const session& in, bool again, core::time_point until, caller& by,
              const on_answer& done);
  void told(const session& in, const transaction_answer& said, core::time_point until, caller& by,
            const on_answer& done);
  void told_shared(const session& in, const transaction_answer& said, core::time_point until,
                   caller& by, const on_answer& done);
  // Whether its key is where it should be; if not, that is mended before it is looked at again.
  [[nodiscard]] bool is_in_place(const session& in, const key_value* own, core::time_point until,
                                 caller& by, const on_answer& done);
  // When one transaction does not tell who is next before it.
  void look(const session& in, core::time_point until, caller& by, const on_answer& done);
  void move_to(const session& in, core::time_point until, caller& by, const on_answer& done);
  void settle(const session& in, const standing& place, core::time_point until, caller& by,
              const on_answer& done);
  void settle(const session& in, bool is_granted, const std::optional<key_value>& first,
              const on_answer& done);
  void refuse(core::time_point until, caller& by, const on_answer& done);

  etcd_lock& lock_;
  services& of_;
  const attempt_spec spec_;
  const core::owner_id id_;
  const std::string key_;
  const part part_;
  const std::string value_;
  bool is_queued_ = false;          // its key may be there
  bool is_unanswered_ = false;      // an ask of it may be done much later
  revision created_ = 0;            // of its key; 0: not known
  lease_id lease_ = 0;              // that its key is under
  std::vector<std::string> ahead_;  // the keys that are in its way
  revision seen_at_ = 0;            // of the store, when those were seen

  std::mutex m_;
  // Protected by m_.
  std::shared_ptr<pause> waiting_;
  bool is_woken_ = false;  // every wait ends at once
};

}  // namespace holdfast::stores::etcd
