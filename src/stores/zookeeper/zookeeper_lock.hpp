// A lock of a ZooKeeper store, and attempts at it.
#pragma once

#include <memory>
#include <string>

#include "stores/store.hpp"
#include "stores/zookeeper/shared.hpp"

namespace holdfast::stores::zookeeper {

class zookeeper_lock final : public store_lock {
 public:
  zookeeper_lock(std::shared_ptr<shared> in, std::string name, std::string path,
                 core::lock_kind kind)
      : in_{std::move(in)}, name_{std::move(name)}, path_{std::move(path)}, kind_{kind} {}

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

 private:
  [[nodiscard]] contender::place place_for(std::uint32_t units) const;
  [[nodiscard]] std::shared_ptr<contender> leaving(const core::owner_id& id);
  void replace(const core::owner_id& id, contender::as what, fencing_token token,
               core::duration ttl, core::time_point until, caller& by, on_renewal done);

  const std::shared_ptr<shared> in_;
  const std::string name_;
  const std::string path_;
  const core::lock_kind kind_;
};

}  // namespace holdfast::stores::zookeeper
