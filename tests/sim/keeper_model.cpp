#include "sim/keeper_model.hpp"

#include <algorithm>

namespace holdfast::sim {

void keeper_model::watch(lease& which) {
  const auto when = which.machine.next_event();
  in_.at(when, [this, &which, when] {
    // A renewal may have moved it since; then another timer stands for it.
    if (which.machine.next_event() == when) look(which);
  });
}

void keeper_model::look(lease& which) {
  const auto now = in_.now();
  const auto why = which.machine.tick(now);
  const auto due_by = now + core::renewal_slack(which.machine.rule().ttl);
  if (which.machine.take_renewal(due_by, now)) to_renew_.push_back(&which);
  apply(which, why);
  renew();
}

void keeper_model::apply(lease& which, loss why, bool too_early) {
  watch(which);
  if (why != loss::none) tell_(which, why, too_early);
}

// One request at a time, as the one thread that renews.
void keeper_model::renew() {
  if (renewing_) return;
  std::vector<lease*> asked;
  std::vector<stores::held> held;
  auto earliest = core::never;
  for (auto* one : std::exchange(to_renew_, {})) {
    const auto deadline = one->machine.next_event();
    if (deadline == core::never) continue;  // released while it waited here
    earliest = std::min(earliest, deadline);
    asked.push_back(one);
    held.push_back(
        {&client_.lock(one->lock), one->id, one->machine.rule().ttl, one->granted.token});
  }
  if (held.empty()) return;
  renewing_ = true;
  const auto sent = in_.now();
  const auto patience = core::renewal_patience(earliest, sent, operation_timeout_);
  client_.store().renew(std::move(held), core::after(sent, patience), in_.events,
                        [this, asked, sent](const auto& answers) {
                          renewing_ = false;
                          const auto now = in_.now();
                          for (std::size_t i = 0; i < asked.size(); ++i) {
                            auto& machine = asked[i]->machine;
                            if (!answers) {
                              apply(*asked[i], machine.renewal_failed(now));
                            } else if (const auto& one = (*answers)[i]; one.renewed) {
                              apply(*asked[i], machine.renewed(one.ttl, one.counted_from, now));
                              if (asked[i]->held()) renewed_(*asked[i], sent);
                            } else if (one.why == loss::none) {
                              apply(*asked[i], machine.renewal_failed(now));
                            } else {
                              const bool too_early = asked[i]->held();
                              apply(*asked[i], machine.refused(one.why), too_early);
                            }
                          }
                          renew();
                        });
}

}  // namespace holdfast::sim
