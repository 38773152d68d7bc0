// A real redis-server behind a network that misbehaves on command.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "scripts.hpp"
#include "support/fault_proxy.hpp"
#include "support/open_client.hpp"
#include "support/redis_server.hpp"
#include "support/watch.hpp"

namespace holdfast::test {

// What the requests of each kind contain, once the server knows the scripts.
inline const std::string asks{stores::redis::scripts::acquire.sha1};
inline const std::string releases{stores::redis::scripts::release.sha1};
inline const std::string renews{stores::redis::scripts::renew.sha1};
// The same of a lock that several may hold.
inline const std::string share_asks{stores::redis::scripts::share_acquire.sha1};
inline const std::string share_releases{stores::redis::scripts::share_release.sha1};

// So that every request is an EVALSHA, and none is asked twice for want of the script.
inline void load_scripts(const redis_server& server) {
  namespace scripts = stores::redis::scripts;
  for (const auto* script :
       {&scripts::acquire, &scripts::release, &scripts::renew, &scripts::inspect, &scripts::break_,
        &scripts::share_acquire, &scripts::share_release, &scripts::share_downgrade,
        &scripts::share_resize}) {
    ASSERT_EQ(server.command({"SCRIPT", "LOAD", std::string{script->source}}), script->sha1);
  }
}

class proxied_redis : public testing::Test {
 protected:
  void SetUp() override { load_scripts(server); }

  [[nodiscard]] client direct(client_options options = {}) const {
    return client{server.url(), std::move(options)};
  }
  // Warmed up, so that its requests are the ones a test expects: connected, and sure that the
  // server knows the scripts, with and without somebody waiting for the answer.
  [[nodiscard]] client through_proxy(client_options options = {}) {
    client c{proxy.url(), std::move(options)};
    { const lease warm = c.mutex("warm").acquire(); }
    EXPECT_TRUE(c.mutex("warm").acquire().release());
    proxy.forget();
    return c;
  }
  [[nodiscard]] bool exists(const std::string& key) const {
    return server.command({"EXISTS", key}) == "1";
  }
  [[nodiscard]] std::chrono::milliseconds pttl(const std::string& key) const {
    return std::chrono::milliseconds{std::stoll(server.command({"PTTL", key}))};
  }

  // How often the server has run a script, by whatever name.
  [[nodiscard]] std::uint64_t scripts_run() const {
    return server.calls_of("evalsha") + server.calls_of("eval");
  }

  redis_server server;
  fault_proxy proxy{server.where()};
};

}  // namespace holdfast::test
