// Handles on locks that several may hold: what they acquire, by how much.
#pragma once

#include <memory>
#include <utility>

#include "client/mutex_state.hpp"

namespace holdfast::detail {

class shared_mutex_state {
 public:
  shared_mutex_state(const std::shared_ptr<client_state>& owner,
                     const std::shared_ptr<lock_state>& on, lock_terms how)
      : client{owner}, lock{on} {
    how.units = core::whole;
    writing = std::make_shared<const mutex_state>(owner, on, how);
    how.units = 1;
    reading = std::make_shared<const mutex_state>(owner, on, std::move(how));
  }

  const std::shared_ptr<client_state> client;
  const std::shared_ptr<lock_state> lock;
  std::shared_ptr<const mutex_state> writing;
  std::shared_ptr<const mutex_state> reading;
};

class semaphore_state {
 public:
  semaphore_state(const std::shared_ptr<client_state>& owner, const std::shared_ptr<lock_state>& on,
                  lock_terms how)
      : client{owner}, lock{on} {
    how.units = 1;
    one = std::make_shared<const mutex_state>(owner, on, std::move(how));
  }

  [[nodiscard]] std::shared_ptr<const mutex_state> of(std::uint32_t permits) const {
    if (permits == 1) return one;
    auto how = one->terms;
    how.units = permits;
    return std::make_shared<const mutex_state>(client, lock, std::move(how));
  }

  const std::shared_ptr<client_state> client;
  const std::shared_ptr<lock_state> lock;
  std::shared_ptr<const mutex_state> one;
};

}  // namespace holdfast::detail
