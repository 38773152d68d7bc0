// One or several channels of a server, on a connection of its own.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/result.hpp>

#include "core/types.hpp"
#include "runtime/stream.hpp"
#include "stores/redis/dialer.hpp"
#include "stores/redis/message_reader.hpp"
#include "stores/redis/resp.hpp"
#include "stores/waiting.hpp"

namespace holdfast::stores::redis {

// Not thread-safe: one thread at a time reads. It polls fd() and calls receive(), or, where the
// stream tells by itself, it is told.
class subscription final : public message_source,
                           public std::enable_shared_from_this<subscription> {
 public:
  using on_open = std::function<void(result<std::shared_ptr<subscription>>)>;

  // Connects, subscribes, and waits until the server has confirmed that: what is published before
  // is lost for sure. What came right behind the answer was read with it, so look at next().
  static void open(dialer& to, const std::vector<std::string>& channels, core::time_point until,
                   caller& by, on_open done);
  static void open(dialer& to, const std::string& channel, core::time_point until, caller& by,
                   on_open done) {
    open(to, std::vector<std::string>{channel}, until, by, std::move(done));
  }

  bool receive() override;
  // The next message of what was received.
  [[nodiscard]] std::optional<std::string> next();
  // Nothing more will come: the connection has ended, or what it says cannot be read.
  [[nodiscard]] bool over() const noexcept { return why_over_.has_value(); }

  [[nodiscard]] int fd() const noexcept override { return stream_->fd(); }
  [[nodiscard]] bool has_buffered() const noexcept override { return stream_->has_buffered(); }
  // Called when there is something to receive, if the stream tells.
  void on_readable(std::function<void()> readable) { readable_ = std::move(readable); }

 private:
  class confirmation;

  subscription(std::unique_ptr<runtime::stream> over, std::string node)
      : stream_{std::move(over)}, node_{std::move(node)} {}
  void read(const reply_value& what);
  void end(failure why);

  const std::unique_ptr<runtime::stream> stream_;
  const std::string node_;
  reply_reader reader_;
  std::function<void()> readable_;
  bool confirmed_ = false;
  std::deque<std::string> messages_;
  std::optional<failure> why_over_;
};

}  // namespace holdfast::stores::redis
