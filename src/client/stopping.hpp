// What ends a wait before its time: its user, or the client that is stopped.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <utility>

namespace holdfast::detail {

// Not thread-safe, but for what is called when either stops.
class stopping {
 public:
  stopping(std::stop_token user, std::stop_token client)
      : user_{std::move(user)}, client_{std::move(client)} {}
  stopping(const stopping&) = delete;
  stopping& operator=(const stopping&) = delete;

  [[nodiscard]] bool requested() const {
    return user_.stop_requested() || client_.stop_requested();
  }
  // Until calls_no_more(): `end` is called when either stops, on any thread.
  void calls(const std::function<void()>& end) {
    if (user_.stop_possible()) on_user_stop_.emplace(user_, end);
    on_client_stop_.emplace(client_, end);
  }
  void calls_no_more() {
    on_user_stop_.reset();
    on_client_stop_.reset();
  }

 private:
  using stop_callback = std::stop_callback<std::function<void()>>;
  const std::stop_token user_;
  const std::stop_token client_;
  std::optional<stop_callback> on_user_stop_;
  std::optional<stop_callback> on_client_stop_;
};

}  // namespace holdfast::detail
