// Renews leases and notices losses, as client/lease_keeper does, with the shipped lease machine.
#pragma once

#include <functional>
#include <vector>

#include "sim/client.hpp"
#include "sim/judge.hpp"

namespace holdfast::sim {

// One for each life of a process. Leases outlive it.
class keeper_model {
 public:
  // `too_early`: the store let go before the lease's deadline.
  using on_lost = std::function<void(lease&, loss, bool too_early)>;
  // By what was sent then.
  using on_renewed = std::function<void(const lease&, core::time_point sent)>;

  keeper_model(process& in, client& client, core::duration operation_timeout, on_lost tell,
               on_renewed renewed)
      : in_{in},
        client_{client},
        operation_timeout_{operation_timeout},
        tell_{std::move(tell)},
        renewed_{std::move(renewed)} {}

  // From now until it is lost or ended.
  void watch(lease& which);

 private:
  void look(lease& which);
  void apply(lease& which, loss why, bool too_early = false);
  void renew();

  process& in_;
  client& client_;
  const core::duration operation_timeout_;
  const on_lost tell_;
  const on_renewed renewed_;
  std::vector<lease*> to_renew_;
  bool renewing_ = false;
};

}  // namespace holdfast::sim
