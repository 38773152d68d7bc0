// How a client finds the master of a replicated Redis.
#pragma once

#include <string>

#include <holdfast/result.hpp>

#include "core/master_choice.hpp"
#include "core/types.hpp"

namespace holdfast::stores::redis {

class deployment {
 public:
  deployment() = default;
  deployment(const deployment&) = delete;
  deployment& operator=(const deployment&) = delete;
  virtual ~deployment() = default;

  // For messages: "the master of …".
  [[nodiscard]] virtual const std::string& name() const noexcept = 0;

  // Asks who the master is, and blocks. One thread at a time.
  [[nodiscard]] virtual result<core::server_address> find_master(core::time_point until) = 0;

  // On a thread that does nothing else: blocks until the master may be another (true), or until
  // `wake_fd` can be read (false).
  [[nodiscard]] virtual bool await_news(int wake_fd) = 0;
};

}  // namespace holdfast::stores::redis
