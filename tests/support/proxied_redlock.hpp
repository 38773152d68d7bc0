// A set of real redis-servers, each behind a network that misbehaves on command.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "support/fault_proxy.hpp"
#include "support/redlock_nodes.hpp"

namespace holdfast::test {

class proxied_redlock {
 public:
  explicit proxied_redlock(std::size_t count, std::string query = "node_timeout=1000")
      : servers{count, {.init = false}}, query_{std::move(query)} {
    for (std::size_t i = 0; i < count; ++i) {
      proxies_.push_back(
          std::make_unique<fault_proxy>(servers[i].where(), fault_proxy::listen_on::tcp));
    }
    servers.begin(url());
  }

  [[nodiscard]] fault_proxy& operator[](std::size_t i) { return *proxies_[i]; }
  [[nodiscard]] endpoint where(std::size_t i) const {
    const auto text = proxies_[i]->url();
    return {{}, static_cast<std::uint16_t>(std::stoul(text.substr(text.rfind(':') + 1)))};
  }
  [[nodiscard]] std::vector<endpoint> where() const {
    std::vector<endpoint> all;
    for (std::size_t i = 0; i < proxies_.size(); ++i)
      all.push_back(where(i));
    return all;
  }
  [[nodiscard]] std::string url() const {
    std::string text = "redlock://";
    for (std::size_t i = 0; i < proxies_.size(); ++i)
      text += (i == 0 ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(where(i).port);
    return text + "?" + query_;
  }
  // Connected to every node, so that its requests are the ones a test expects.
  [[nodiscard]] client warm_client(client_options options = {}) {
    client c{url(), std::move(options)};
    EXPECT_TRUE(eventually([&] {
      { const lease warm = c.mutex("warm").acquire(); }
      std::size_t connected = 0;
      for (const auto& one : proxies_)
        connected += one->seen("\r\nwarm\r\n") > 0 ? 1 : 0;
      return connected == proxies_.size();
    }));
    EXPECT_TRUE(eventually([&] { return servers.holding("warm") == 0; }));
    return c;
  }

  redlock_nodes servers;

 private:
  const std::string query_;
  std::vector<std::unique_ptr<fault_proxy>> proxies_;
};

}  // namespace holdfast::test
