// A lock's queue on a real Redis, and ways to look into it and to spoil it.
#pragma once

#include <cstdio>
#include <future>

#include "stores/redis/inbox.hpp"
#include "stores/redis/layout.hpp"
#include "support/proxied_redis.hpp"

namespace holdfast::test {

class Queue : public proxied_redis {
 protected:
  [[nodiscard]] std::size_t waiting() const {
    return std::stoul(server.command({"LLEN", keys.queue}));
  }
  [[nodiscard]] bool nothing_left() const {
    return !exists("orders") && !exists(keys.queue) && !exists(keys.waiters);
  }
  // A waiter's entry as its process wrote it, before that was killed: nobody hears its inbox.
  void add_dead_waiter(int number, const std::string& inbox = inbox_called('d'),
                       std::chrono::milliseconds claim = std::chrono::seconds{5}) const {
    char id[33];
    std::snprintf(id, sizeof id, "%032x", number);
    const auto seen = server.command({"TIME"});
    const auto ms = seen.substr(0, seen.find('\n')) + "999";
    stores::redis::queue_entry entry;
    entry.id = *core::owner_id::parse(id);
    entry.claim = claim;
    entry.inbox = inbox;
    entry.holder = "host=dead;pid=1;label=";
    static_cast<void>(server.command({"HSET", keys.waiters, id, ms}));
    static_cast<void>(server.command({"RPUSH", keys.queue, entry.text()}));
  }
  [[nodiscard]] static std::string inbox_called(char digit) {
    return std::string{stores::redis::inbox_prefix} + std::string(32, digit);
  }
  [[nodiscard]] std::future<std::optional<lease>> wait_for(client& c) const {
    return std::async(std::launch::async, [&c] { return c.mutex("orders").try_acquire(patience); });
  }

  const stores::redis::lock_keys keys{"orders"};
};

}  // namespace holdfast::test
