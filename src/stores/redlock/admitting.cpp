// How a node_set looks at its nodes, and lets them vote again: runs stores/redlock/rejoining.hpp.
#include "runtime/clock.hpp"
#include "stores/redlock/node_set.hpp"

namespace holdfast::stores::redlock {

void node_set::look_after_nodes() {
  if (as_ == role::visitor || looking_.exchange(true)) return;
  lets_in(true);
  const bool queued = background_->run([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->let_nodes_rejoin();
  });
  if (queued) return;
  lets_in(false);
  looking_ = false;
}

void node_set::lets_in(bool now) {
  const std::lock_guard guard{m_};
  lets_in_ = now;
  let_in_.notify_all();
}

void node_set::let_nodes_rejoin() {
  using verb = rejoining::step::verb;
  auto next = rejoining_->start(runtime::now(), runtime::wall_ms());
  while (next.what == verb::ask) {
    const auto answers = run_on_records(next.asks, next.until);
    rejoining::answers said;
    for (const auto& one : answers)
      said.push_back(one && *one ? (*one)->get() : nullptr);
    next = rejoining_->on_answers(said, runtime::now(), runtime::wall_ms());
  }
  const bool again =
      next.what == verb::pause && background_->run_at(next.until, [weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->let_nodes_rejoin();
      });
  lets_in(again && next.lets_in);
  if (!again) looking_ = false;
}

question::answers node_set::run_on_records(const record_scripts& scripts,
                                           core::time_point until) const {
  const auto words = [&](std::size_t node) -> std::optional<request> {
    if (!scripts[node]) return std::nullopt;
    return as_request(*scripts[node]);
  };
  return ask_every(words, until, silent_nodes::awaited);
}

std::vector<node_standing> node_set::survey(core::time_point until, with_counters counters) const {
  record_scripts looks;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    looks.emplace_back(look_script(identity_, i, runtime::wall_ms(), counters));
  const auto answers = run_on_records(looks, until);
  std::vector<node_standing> all(nodes_.size());
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!answers[i]) continue;
    if (*answers[i]) {
      all[i] = read_standing(***answers[i], config.epoch);
    } else {
      all[i].said = answers[i]->error().message;
    }
  }
  return all;
}

}  // namespace holdfast::stores::redlock
