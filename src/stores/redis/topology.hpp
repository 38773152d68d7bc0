// The servers behind a URL, and which of them has a key.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include <holdfast/result.hpp>

#include "core/types.hpp"
#include "stores/redis/request_carrier.hpp"
#include "stores/redis/server_node.hpp"

namespace holdfast::stores::redis {

// Thread-safe.
class topology {
 public:
  using nodes_list = std::vector<std::shared_ptr<server_node>>;

  topology() = default;
  topology(const topology&) = delete;
  topology& operator=(const topology&) = delete;
  virtual ~topology() = default;

  [[nodiscard]] virtual request_carrier& calls() noexcept = 0;
  [[nodiscard]] virtual request_carrier& renewals() noexcept = 0;
  // Who has this key now; null: not known.
  [[nodiscard]] virtual std::shared_ptr<server_node> node_of(std::string_view key) = 0;
  // Keys that may travel in one request have the same number.
  [[nodiscard]] virtual unsigned group_of(std::string_view key) const noexcept = 0;
  // All that are in use now.
  [[nodiscard]] virtual nodes_list nodes() = 0;
  // All that have keys, for a walk through them; finds out first if that is not known. Blocks.
  [[nodiscard]] virtual result<nodes_list> nodes_with_keys(core::time_point until) = 0;

  // Messages of Redisson's are sent by SPUBLISH there, and a plain PUBLISH is not heard.
  [[nodiscard]] virtual bool has_sharded_channels() const noexcept = 0;

  // Leases may stand there for so long: they must hear of a master that was replaced.
  virtual void needed_for(core::duration ttl) = 0;
  // A connection has ended: its node may have been replaced.
  virtual void on_doubt() = 0;
  // Everything that is under way ends.
  virtual void close() noexcept = 0;
};

// There is one server. Costs nothing on the way to it.
class single_server final : public topology {
 public:
  explicit single_server(std::shared_ptr<server_node> only) : only_{std::move(only)} {}

  request_carrier& calls() noexcept override { return only_->calls; }
  request_carrier& renewals() noexcept override { return only_->renewals; }
  std::shared_ptr<server_node> node_of(std::string_view) override { return only_; }
  unsigned group_of(std::string_view) const noexcept override { return 0; }
  nodes_list nodes() override { return {only_}; }
  result<nodes_list> nodes_with_keys(core::time_point) override { return nodes(); }
  bool has_sharded_channels() const noexcept override { return false; }
  void needed_for(core::duration) override {}
  void on_doubt() override {}
  void close() noexcept override { only_->close(); }

 private:
  const std::shared_ptr<server_node> only_;
};

}  // namespace holdfast::stores::redis
