// Permits of a semaphore, in the layout of Curator's InterProcessSemaphoreV2.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "stores/zookeeper/claim.hpp"
#include "stores/zookeeper/contender.hpp"

namespace holdfast::stores::zookeeper {

// Each permit that is taken is a node below PATH/leases. Who wants some first gets the mutex of
// PATH/locks, so that permits are taken in order and counted by one at a time, and gives it up with
// the change that takes them. A size that a person has set is the data of PATH/permits, one that
// the users name that of PATH/leases.
class permit_claim final : public claim, public std::enable_shared_from_this<permit_claim> {
 public:
  // Each is a node, which is looked at whenever they are renewed.
  static constexpr std::uint32_t units_at_once_max = 100;

  permit_claim(std::shared_ptr<connection> on, std::string path, std::uint32_t permits,
               const core::owner_id& id, attempt_spec what);
  [[nodiscard]] static std::shared_ptr<permit_claim> made_elsewhere(std::shared_ptr<connection> on,
                                                                    std::string path,
                                                                    const core::owner_id& id,
                                                                    core::duration ttl);

  [[nodiscard]] const core::owner_id& id() const noexcept override { return id_; }
  [[nodiscard]] turn& its_turn() noexcept override { return queued_->its_turn(); }
  void ask(on_answer done) override;
  void leave(on_removal done) override;
  // errc::unsupported: permits stay with the session that took them.
  void replace(as what, fencing_token token, on_renewal done) override;
  [[nodiscard]] holding held() const override;
  [[nodiscard]] bool may_have_node() const override;

 private:
  using children = std::vector<std::string>;
  struct count;

  void go();
  void queued(const result<core::answer>& got);
  void look(const std::shared_ptr<session>& in);
  void counted(const count& seen);
  void take(const count& seen);
  void taken(int rc, core::time_point sent);
  void read_token();
  void meet(const count& seen);
  void find();
  void found(int rc, const children& all);
  void begin_to_leave();
  void remove();
  void removed(const std::vector<int>& each);

  void fail_with(failure why);
  void refuse(failure why);
  void finish(result<core::answer> got);
  void finish(result<removal> got);
  template <class Done, class Got>
  void finish_with(Done permit_claim::*done, Got got);
  [[nodiscard]] std::vector<std::string> new_paths() const;

  const std::shared_ptr<connection> connection_;
  const std::string path_;
  const std::string leases_ = path_ + "/leases";
  const std::uint32_t permits_;
  const core::owner_id id_;
  const attempt_spec spec_;
  // In the queue for the permits. Its node goes with the change that takes them.
  const std::shared_ptr<contender> queued_;

  mutable std::mutex m_;
  // Protected by m_.
  bool under_way_ = false;
  bool leaving_ = false;
  on_answer ask_done_;
  on_removal leave_done_;
  // Changed by what is under way only, with m_ held.
  std::shared_ptr<session> session_;
  std::vector<std::string> paths_;
  fencing_token token_;
  bool may_have_taken_ = false;
  // Of what is under way, and for nothing else.
  bool leaves_ = false;
  int rounds_ = 0;
  bool removal_unanswered_ = false;
};

// A size, as the data of a node has it.
[[nodiscard]] std::string size_data(std::uint32_t permits);
[[nodiscard]] std::optional<std::uint32_t> size_in(std::string_view data);

}  // namespace holdfast::stores::zookeeper
