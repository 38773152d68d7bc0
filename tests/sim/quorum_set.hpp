// The nodes of a simulated quorum, as all its clients know them.
#pragma once

#include <string>
#include <vector>

#include "sim/node.hpp"

namespace holdfast::sim {

struct quorum_set {
  std::vector<node*> nodes;
  core::duration node_timeout;
  core::duration max_ttl;
  // An acquire that is not answered in time is sent once more. The shipped client does not do that,
  // but the protocol allows for it.
  bool resends;

  std::string config = "set";  // a hash, and the same for all nodes here
  std::string described = "n0,n1,…";
};

}  // namespace holdfast::sim
