// One lock inside a process: who has how much of it, and who waits.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/result.hpp>
#include <holdfast/status.hpp>

#include "core/lock_kind.hpp"
#include "core/types.hpp"
#include "stores/pause.hpp"

namespace holdfast::stores::memory {

// errc::wrong_type: the name stands for `what`.
[[nodiscard]] tl::unexpected<failure> name_in_use(std::string_view what);

// A mutex is a lock of one unit. Decides only: reads no clock, and gives no tokens. Not
// thread-safe.
class lock_entry {
 public:
  struct hold {
    core::owner_id id;
    core::time_point expires{};
    holder who;  // its units, too
    bool recalled = false;
  };
  struct place {
    core::owner_id id;
    std::uint32_t units = 1;
    waiter who;
    std::shared_ptr<pause> wait{};  // null: the attempt does not wait now
  };

  // The rest sees the lock as it is at `now`.
  void expire(core::time_point now);

  // What the name stands for, from now on if it is not in use. errc::wrong_type if it is, for
  // another kind; errc::invalid_argument if it is with another number of permits.
  [[nodiscard]] result<void> become(const core::lock_kind& kind);
  // errc::wrong_type if the name stands for a lock now, of whatever kind.
  [[nodiscard]] result<void> check_unused() const;
  // How much that is of this lock. errc::invalid_argument: more than there is.
  [[nodiscard]] result<std::uint32_t> units_of(std::uint32_t wanted) const;
  // False: not free, or others come first.
  [[nodiscard]] bool may_have(const core::owner_id& id, std::uint32_t units);
  hold& grant(hold what);

  // Null if there is none.
  [[nodiscard]] hold* held_by(const core::owner_id& id) noexcept;
  [[nodiscard]] hold* held_with(fencing_token token) noexcept;
  [[nodiscard]] place* place_of(const core::owner_id& id) noexcept;
  void join(place at) { queue_.push_back(std::move(at)); }
  void leave(const core::owner_id& id);
  // False: it holds nothing.
  bool release(const core::owner_id& id);
  void downgrade(hold& writer);
  void resize(std::uint32_t permits);
  // Ends the waits of those whose turn it is.
  void tell();

  [[nodiscard]] const core::lock_kind& kind() const noexcept { return kind_; }
  [[nodiscard]] bool is_held() const noexcept { return !holds_.empty(); }
  // Zero if nobody holds it.
  [[nodiscard]] core::time_point next_expiry() const noexcept;
  // Who holds it, or held it last.
  [[nodiscard]] const holder& shown() const noexcept;
  [[nodiscard]] lock_status status(std::string name, core::time_point now) const;

 private:
  [[nodiscard]] std::uint32_t used() const noexcept;
  [[nodiscard]] bool in_use() const noexcept { return is_held() || !queue_.empty() || kept_; }

  core::lock_kind kind_;
  std::uint32_t capacity_ = 1;
  bool kept_ = false;        // the capacity was set by a person
  std::vector<hold> holds_;  // in the order of their grants
  std::deque<place> queue_;  // first come first served
  holder last_;
};

}  // namespace holdfast::stores::memory
