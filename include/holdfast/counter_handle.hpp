// What handles on numbers have in common: those of latch.hpp and redisson/counters.hpp.
#pragma once

#include <memory>
#include <string>

#include <holdfast/export.hpp>

namespace holdfast::detail {

class counter_state;

// Thread-safe. Cheap to copy. Keeps its client alive; in a forked child it does nothing.
class HOLDFAST_API counter_handle {
 public:
  explicit counter_handle(std::shared_ptr<const counter_state> state) noexcept;
  counter_handle(const counter_handle&) noexcept;
  counter_handle& operator=(const counter_handle&) noexcept;
  counter_handle(counter_handle&&) noexcept;
  counter_handle& operator=(counter_handle&&) noexcept;
  ~counter_handle();

  // Empty if it was moved from.
  [[nodiscard]] const std::string& name() const noexcept;
  // Null if it was moved from.
  [[nodiscard]] const std::shared_ptr<const counter_state>& state() const noexcept {
    return state_;
  }

 private:
  std::shared_ptr<const counter_state> state_;
};

}  // namespace holdfast::detail
