#include "stores/redlock/round.hpp"

#include <poll.h>

#include <algorithm>

#include "core/quorum_machine.hpp"
#include "runtime/clock.hpp"

namespace holdfast::stores::redlock {

core::duration polling::begin() {
  if (at_most_ == core::duration::zero()) return at_most_;
  const std::lock_guard guard{m_};
  return judge_.worth_it() ? at_most_ : core::duration::zero();
}

void polling::end(bool caught) {
  const std::lock_guard guard{m_};
  judge_.on_polled(caught);
}

round::round(lines to, core::duration node_timeout, std::shared_ptr<polling> how, silent_nodes are)
    : lines_{std::move(to)},
      node_timeout_{node_timeout},
      polling_{std::move(how)},
      silent_{are},
      sent_at_(lines_.size()),
      owner_{runtime::wake_fd::of_this_thread()} {}

void round::send(std::size_t node, const request& what, std::uint64_t tag,
                 std::optional<core::time_point> give_up) {
  sent_at_[node] = runtime::now().time_since_epoch().count();
  auto done = [self = shared_from_this(), node, tag](result<redis::reply> answer) {
    self->arrived(node, tag, std::move(answer));
  };
  if (give_up) {
    lines_[node]->send_for_sure(what, *give_up, std::move(done));
  } else {
    lines_[node]->send(what, std::move(done));
  }
}

void round::arrived(std::size_t node, std::uint64_t tag, result<redis::reply> answer) {
  on_answer(node, tag, std::move(answer));
  if (sleeping_ && decided()) owner_->wake();
}

// A node that is known to be down or silent is asked and not waited for, if the others suffice.
void round::notice_silence(core::time_point now, core::time_point& earliest) {
  if (silent_ == silent_nodes::awaited) return;
  const auto trusted = static_cast<std::size_t>(std::count_if(
      lines_.begin(), lines_.end(), [](const auto& one) { return !one->doubtful(); }));
  const bool others_suffice = trusted >= core::majority_of(lines_.size());
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    if (!waits_for(i)) continue;
    auto& to = *lines_[i];
    if (others_suffice && to.doubtful()) {
      on_silence(i);
      continue;
    }
    const core::time_point due{core::duration{sent_at_[i]} +
                               (to.connecting() ? line::connect_patience : node_timeout_)};
    if (now >= due) {
      to.mark_silent();
      on_silence(i);
    } else {
      earliest = std::min(earliest, due);
    }
  }
}

// Reading without sleeping: a thread that is woken takes longer than most answers.
void round::read_for_a_moment(core::time_point until) {
  const auto spin = polling_ ? polling_->begin() : core::duration::zero();
  if (spin == core::duration::zero()) return;
  const auto end = std::min(core::after(runtime::now(), spin), until);
  do {
    read_all();
  } while (!decided() && runtime::now() < end);
  polling_->end(decided());
}

void round::read_all() {
  for (std::size_t i = 0; i < lines_.size() && !decided(); ++i) {
    if (waits_for(i)) static_cast<void>(lines_[i]->sweep());
  }
}

void round::wait(core::time_point until) {
  if (!decided()) read_for_a_moment(until);
  std::vector<pollfd> watched;
  std::vector<std::shared_ptr<redis::channel>> open;
  std::vector<std::size_t> whose;
  while (!decided()) {
    const auto now = runtime::now();
    if (now >= until) return on_give_up();
    auto earliest = until;
    notice_silence(now, earliest);
    if (decided()) return;
    watched.clear();
    open.clear();
    whose.clear();
    // Woken once, by the last of them, instead of by each.
    const bool one_suffices = waits_for_all();
    for (std::size_t i = lines_.size(); i-- > 0;) {
      if (one_suffices && !waits_for(i)) continue;
      auto on = lines_[i]->current(owner_);
      // Those not waited for are read as well: their answer may still come in time to count. What
      // an idle one has to say is that it was closed, which is found out when it is used.
      if (!on || on->broken() || on->idle()) continue;
      watched.push_back({on->fd(), POLLIN, 0});
      open.push_back(std::move(on));
      whose.push_back(i);
      if (one_suffices) break;
    }
    watched.push_back({owner_->fd(), POLLIN, 0});
    sleeping_ = true;
    if (!decided()) {
      const timespec left = runtime::until(earliest);
      static_cast<void>(::ppoll(watched.data(), watched.size(), &left, nullptr));
    }
    sleeping_ = false;
    if (watched.back().revents != 0) owner_->reset();
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (watched[i].revents != 0) static_cast<void>(lines_[whose[i]]->sweep());
    }
    if (one_suffices) read_all();
  }
}

void question::ask(std::size_t node, const request& what, std::optional<core::time_point> give_up) {
  {
    const std::lock_guard guard{m_};
    places_[node].open = true;
  }
  send(node, what, 0, give_up);
}

question::answers question::gather(core::time_point until, std::size_t enough, quality good) {
  {
    const std::lock_guard guard{m_};
    enough_ = enough;
    good_ = std::move(good);
    for (const auto& one : places_)
      good_ones_ += good_ && one.said && *one.said && good_(***one.said) ? 1 : 0;
  }
  wait(until);
  answers all(places_.size());
  const std::lock_guard guard{m_};
  over_ = true;
  for (std::size_t i = 0; i < places_.size(); ++i)
    all[i] = std::move(places_[i].said);
  return all;
}

void question::on_answer(std::size_t node, std::uint64_t tag, result<redis::reply> answer) {
  static_cast<void>(tag);
  const std::lock_guard guard{m_};
  if (over_) return;
  if (good_ && answer && good_(**answer)) ++good_ones_;
  places_[node].open = false;
  places_[node].said.emplace(std::move(answer));
}

void question::on_silence(std::size_t node) {
  const std::lock_guard guard{m_};
  places_[node].open = false;
}

void question::on_give_up() {
  const std::lock_guard guard{m_};
  over_ = true;
}

bool question::decided() {
  const std::lock_guard guard{m_};
  return over_ || good_ones_ >= enough_ ||
         std::none_of(places_.begin(), places_.end(), [](const place& one) { return one.open; });
}

bool question::waits_for_all() {
  const std::lock_guard guard{m_};
  const auto open = static_cast<std::size_t>(
      std::count_if(places_.begin(), places_.end(), [](const place& one) { return one.open; }));
  return enough_ == SIZE_MAX || good_ones_ + open <= enough_;
}

bool question::waits_for(std::size_t node) {
  const std::lock_guard guard{m_};
  return !over_ && places_[node].open;
}

}  // namespace holdfast::stores::redlock
