// A simulated connection as shipped code sees it: a stream of bytes, and who makes it.
#pragma once

#include <memory>

#include "sim/network.hpp"
#include "stores/redis/dialer.hpp"

namespace holdfast::sim {

// Connects over the simulated network, from one process to one node.
class sim_dialer final : public stores::redis::dialer {
 public:
  sim_dialer(network& net, process& from, sim::node& to)
      : dialer{to.name}, net_{net}, from_{from}, to_{to} {}
  void dial(core::time_point until, on_connected done) override;

 private:
  network& net_;
  process& from_;
  sim::node& to_;
};

}  // namespace holdfast::sim
