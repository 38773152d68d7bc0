// What this library's own types may do with a client beside its public members.
#pragma once

#include <memory>
#include <utility>

#include <holdfast/client.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/recursive_mutex.hpp>

#include "client/client_state.hpp"
#include "client/mutex_state.hpp"

namespace holdfast::detail {

class client_access {
 public:
  [[nodiscard]] static client make(std::shared_ptr<client_state> state) {
    return client{std::move(state)};
  }
  // Null: it was moved from.
  [[nodiscard]] static const std::shared_ptr<client_state>& state_of(const client& of) noexcept {
    return of.state_;
  }
  // A lock of any kind with the members of a mutex.
  [[nodiscard]] static mutex make_mutex(std::shared_ptr<mutex_state> state) noexcept {
    return mutex{std::move(state)};
  }
  [[nodiscard]] static recursive_mutex make_recursive(mutex once) noexcept {
    return recursive_mutex{std::move(once)};
  }
  [[nodiscard]] static const std::shared_ptr<mutex_state>& state_of(const mutex& of) noexcept {
    return of.state_;
  }
};

}  // namespace holdfast::detail
