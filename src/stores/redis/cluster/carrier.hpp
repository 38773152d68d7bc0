// Requests on their way through a cluster; for cluster/*.cpp only.
#pragma once

#include "stores/redis/cluster/cluster.hpp"

namespace holdfast::stores::redis {

// Of each node it uses these connections: those for calls, or the one for renewals.
class cluster::carrier final : public request_carrier {
 public:
  carrier(cluster& in, connection_pool server_node::*which) : in_{in}, which_{which} {}

  void run(script_call script, core::time_point until, const sent_position& behind, caller& by,
           on_answer done) override;
  void look(script_call script, core::time_point until, const sent_position& behind, caller& by,
            on_looked done) override;
  sent_position post(const script_call& script, const sent_position& behind, channel::on_reply done,
                     std::string_view before) override;
  const std::string& node() const noexcept override { return in_.name_; }

 private:
  cluster& in_;
  connection_pool server_node::*const which_;
};

}  // namespace holdfast::stores::redis
