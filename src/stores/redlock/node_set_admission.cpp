// How a node_set looks at its nodes, and lets them vote again: runs stores/redlock/rejoining.hpp.
#include "runtime/clock.hpp"
#include "stores/background_caller.hpp"
#include "stores/redlock/node_set.hpp"

namespace holdfast::stores::redlock {

void node_set::look_after_nodes() {
  if (as_ == role::visitor || looking_.exchange(true)) return;
  lets_in(true);
  look_again();
}

void node_set::look_again() {
  begin_in_background(*background_, [weak = weak_from_this()](caller& by) {
    if (const auto self = weak.lock()) {
      self->let_nodes_rejoin(self->rejoining_.start(runtime::now(), runtime::wall_ms()), by);
    }
  });
}

void node_set::lets_in(bool now) {
  const std::lock_guard guard{m_};
  lets_in_ = now;
  let_in_.notify_all();
}

void node_set::let_nodes_rejoin(const rejoining::step& next, caller& by) {
  using verb = rejoining::step::verb;
  if (next.what == verb::ask) {
    return run_on_records(
        next.asks, next.until, by, [self = shared_from_this(), &by](const auto& answers) {
          rejoining::answers said;
          for (const auto& one : answers)
            said.push_back(one && *one ? (*one)->get() : nullptr);
          self->let_nodes_rejoin(
              self->rejoining_.on_answers(said, runtime::now(), runtime::wall_ms()), by);
        });
  }
  const bool again =
      next.what == verb::pause && background_->run_at(next.until, [weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->look_again();
      });
  lets_in(again && next.lets_in);
  if (!again) looking_ = false;
}

void node_set::run_on_records(const record_scripts& scripts, core::time_point until, caller& by,
                              on_answers done) const {
  const auto words = [&](std::size_t node) -> std::optional<request> {
    if (!scripts[node]) return std::nullopt;
    return as_request(*scripts[node]);
  };
  ask_every(words, until, by, std::move(done), silent_nodes::awaited);
}

gather::answers node_set::run_on_records(const record_scripts& scripts,
                                         core::time_point until) const {
  return wait_here<gather::answers>(
      [&](caller& by, auto done) { run_on_records(scripts, until, by, std::move(done)); });
}

std::vector<node_standing> node_set::survey(core::time_point until, with_counters counters) const {
  record_scripts looks;
  for (std::size_t i = 0; i < size(); ++i)
    looks.emplace_back(standing_script(identity_, i, runtime::wall_ms(), {}, counters));
  const auto answers = run_on_records(looks, until);
  std::vector<node_standing> all(size());
  for (std::size_t i = 0; i < size(); ++i) {
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
