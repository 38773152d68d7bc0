#include "sim/round_model.hpp"

#include <algorithm>

#include "core/quorum_machine.hpp"
#include "stores/redlock/line.hpp"

namespace holdfast::sim {

using stores::redlock::line;

void round_model::send(std::size_t node, call what, std::uint64_t tag,
                       std::optional<core::time_point> give_up) {
  const auto now = in_.now();
  sent_at_[node] = now;
  look_at(core::after(now, node_timeout_));
  if (lines_[node]->connecting()) look_at(core::after(now, line::connect_patience));
  auto heard = [self = shared_from_this(), node, tag](result<reply> answer) {
    self->on_answer(node, tag, std::move(answer));
    self->progress();
  };
  if (give_up) {
    lines_[node]->send_for_sure(std::move(what), *give_up, std::move(heard));
  } else {
    lines_[node]->send(std::move(what), std::move(heard));
  }
}

// All that is sent at one moment is due at one moment.
void round_model::look_at(core::time_point when) {
  if (std::find(looks_.begin(), looks_.end(), when) != looks_.end()) return;
  looks_.push_back(when);
  in_.at(when, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->progress();
  });
}

// A node that is known to be down or silent is asked and not waited for, if the others suffice.
void round_model::notice_silence() {
  if (silent_ == stores::redlock::silent_nodes::awaited) return;
  const auto trusted = static_cast<std::size_t>(std::count_if(
      lines_.begin(), lines_.end(), [](const auto& one) { return !one->doubtful(); }));
  const bool others_suffice = trusted >= core::majority_of(lines_.size());
  const auto now = in_.now();
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    if (!waits_for(i)) continue;
    auto& to = *lines_[i];
    if (others_suffice && to.doubtful()) {
      on_silence(i);
    } else if (now >= sent_at_[i] + (to.connecting() ? line::connect_patience : node_timeout_)) {
      to.mark_silent();
      on_silence(i);
    }
  }
}

void round_model::progress() {
  if (!done_) return;
  if (!decided()) notice_silence();
  if (!done_ || !decided()) return;
  std::exchange(done_, nullptr)();
}

void round_model::wait(core::time_point until, std::function<void()> done) {
  done_ = std::move(done);
  in_.at(until, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self || !self->done_) return;
    if (!self->decided()) self->on_give_up();
    if (self->done_) std::exchange(self->done_, nullptr)();
  });
  progress();
}

void question_model::ask(std::size_t node, call what, std::optional<core::time_point> give_up) {
  places_[node].open = true;
  send(node, std::move(what), 0, give_up);
}

void question_model::gather(core::time_point until, std::function<void(answers)> done,
                            std::size_t enough, quality good) {
  enough_ = enough;
  good_ = std::move(good);
  for (const auto& one : places_)
    good_ones_ += good_ && one.said && *one.said && good_(**one.said) ? 1 : 0;
  // Kept alive by those whose answer is awaited; without any, this is called at once.
  wait(until, [this, done = std::move(done)] {
    over_ = true;
    answers all(places_.size());
    for (std::size_t i = 0; i < places_.size(); ++i)
      all[i] = std::move(places_[i].said);
    done(std::move(all));
  });
}

void question_model::on_answer(std::size_t node, std::uint64_t, result<reply> answer) {
  if (over_) return;
  if (good_ && answer && good_(*answer)) ++good_ones_;
  places_[node].open = false;
  places_[node].said.emplace(std::move(answer));
}

bool question_model::decided() {
  return over_ || good_ones_ >= enough_ ||
         std::none_of(places_.begin(), places_.end(), [](const place& one) { return one.open; });
}

}  // namespace holdfast::sim
