// One mutex in etcd, or one lock that readers share.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "stores/etcd/layout.hpp"
#include "stores/etcd/removal.hpp"
#include "stores/etcd/services.hpp"
#include "stores/pause.hpp"
#include "stores/store.hpp"

namespace holdfast::stores::etcd {

class etcd_lock final : public store_lock, public std::enable_shared_from_this<etcd_lock> {
 public:
  etcd_lock(std::shared_ptr<services> of, std::string name, bool is_shared = false)
      : of_{std::move(of)},
        name_{std::move(name)},
        folder_{folder_of(of_->prefix, name_)},
        is_shared_{is_shared} {}

  [[nodiscard]] std::unique_ptr<attempt> begin(attempt_spec what) override;
  void release(const core::owner_id& id, core::time_point until, caller& by,
               on_removal done) override;
  void release_later(const core::owner_id& id, core::time_point give_up) noexcept override;
  void extend(const core::owner_id& id, fencing_token token, core::duration ttl,
              core::time_point until, caller& by, on_renewal done) override;
  void downgrade(const core::owner_id& id, fencing_token token, core::duration ttl,
                 core::time_point until, caller& by, on_renewal done) override;
  void forget(const core::owner_id& id) noexcept override;
  [[nodiscard]] result<lock_status> inspect(core::time_point until) override;
  [[nodiscard]] result<void> break_with(fencing_token token, core::time_point until) override;

  // Calls `done` when no release that nobody waits for is under way here, or at `until` with
  // store_unreachable.
  void after_releases(core::time_point until, caller& by, std::function<void(result<void>)> done);

  [[nodiscard]] bool is_shared() const noexcept { return is_shared_; }
  [[nodiscard]] services& of() const noexcept { return *of_; }
  [[nodiscard]] const std::shared_ptr<services>& shared() const noexcept { return of_; }
  [[nodiscard]] const std::string& folder() const noexcept { return folder_; }
  [[nodiscard]] std::string key_of(const core::owner_id& id) const {
    return folder_ + std::string{id.text()};
  }
  // All keys of the lock, and of those further down, oldest first.
  [[nodiscard]] read all_keys() const;

 private:
  // What is to be removed for an attempt, which is held no more from now on.
  [[nodiscard]] removing removing_of(const core::owner_id& id);
  void release_over(const result<core::removal>& how);
  // `value`: what the key holds from now on; empty: what it does.
  void extend_in(const session& in, const core::owner_id& id, fencing_token token,
                 const std::string& value, core::time_point until, caller& by,
                 const on_renewal& done);
  // The keys of this lock, oldest first.
  [[nodiscard]] result<std::vector<key_value>> keys_here(core::time_point until);

  const std::shared_ptr<services> of_;
  const std::string name_;
  const std::string folder_;
  const bool is_shared_;
  std::mutex m_;
  // Protected by m_.
  std::size_t releases_ = 0;
  std::vector<std::shared_ptr<pause>> until_released_;
};

}  // namespace holdfast::stores::etcd
