// A handle on a lock, with the terms it acquires on.
#pragma once

#include <memory>

#include "client/client_state.hpp"

namespace holdfast::detail {

class mutex_state {
 public:
  mutex_state(std::shared_ptr<client_state> owner, std::shared_ptr<lock_state> on, lock_terms how)
      : client{std::move(owner)}, lock{std::move(on)}, terms{std::move(how)} {}

  const std::shared_ptr<client_state> client;
  const std::shared_ptr<lock_state> lock;
  const lock_terms terms;
};

}  // namespace holdfast::detail
