// How a request reaches the server that has its keys.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <holdfast/result.hpp>

#include "core/types.hpp"
#include "stores/redis/channel.hpp"
#include "stores/redis/script_call.hpp"
#include "stores/waiting.hpp"

namespace holdfast::stores::redis {

// Which connection carried a request, so that a later one can be sent behind it.
struct sent_position {
  std::shared_ptr<channel> on;
  std::uint64_t position = 0;

  [[nodiscard]] bool answered() const noexcept { return !on || on->answered(position); }
};

// Thread-safe; must outlive what it was asked for. Of one server that is a connection_pool, of a
// cluster what finds the node.
class request_carrier {
 public:
  using on_answer = std::function<void(result<reply>, const sent_position& sent)>;
  using on_looked = std::function<void(result<reply>)>;

  request_carrier() = default;
  request_carrier(const request_carrier&) = delete;
  request_carrier& operator=(const request_carrier&) = delete;
  virtual ~request_carrier() = default;

  // `behind`: use that connection if it still works, so that this comes after what it carries.
  // `done` is also told where the request was sent.
  virtual void run(script_call script, core::time_point until, const sent_position& behind,
                   caller& by, on_answer done) = 0;
  // For what changes nothing: asked again if the connection breaks under it.
  virtual void look(script_call script, core::time_point until, const sent_position& behind,
                    caller& by, on_looked done) = 0;
  // Sends without waiting, if a connection is open; nothing otherwise. Position 0: there are too
  // many requests under way, and it was not sent. `done` and `before` as channel::post().
  [[nodiscard]] virtual sent_position post(const script_call& script, const sent_position& behind,
                                           channel::on_reply done, std::string_view before) = 0;
  // For messages.
  [[nodiscard]] virtual const std::string& node() const noexcept = 0;
};

}  // namespace holdfast::stores::redis
