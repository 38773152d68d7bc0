#include "stores/redlock/fan_out.hpp"

#include <poll.h>

#include <algorithm>
#include <utility>

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

fan_out::fan_out(connections to, core::duration node_timeout, std::shared_ptr<polling> how,
                 silent_nodes are)
    : connections_{std::move(to)},
      node_timeout_{node_timeout},
      polling_{std::move(how)},
      silent_{are},
      sent_at_(connections_.size()),
      owner_{runtime::wake_fd::of_this_thread()} {}

void fan_out::send(std::size_t node, const request& what, std::uint64_t tag,
                   std::optional<core::time_point> give_up, std::function<bool()> wanted) {
  sent_at_[node] = runtime::now().time_since_epoch().count();
  auto done = [self = shared_from_this(), node, tag](result<redis::reply> answer) {
    self->arrived(node, tag, std::move(answer));
  };
  if (give_up) {
    connections_[node]->send_for_sure(what, *give_up, std::move(done));
  } else {
    connections_[node]->send(what, std::move(done), std::move(wanted));
  }
}

void fan_out::arrived(std::size_t node, std::uint64_t tag, result<redis::reply> answer) {
  on_answer(node, tag, std::move(answer));
  if (sleeping_ && decided()) owner_->wake();
  if (timers_ != nullptr) look_at_the_time();
}

void fan_out::when_decided(core::time_point until, caller& by, std::function<void()> done) {
  until_ = until;
  done_ = std::move(done);
  by.wait_for(shared_from_this());
}

// A node that is known to be down or silent is asked and not waited for, if the others suffice.
// Gives the time at which the next of those waited for will have been silent for too long.
core::time_point fan_out::notice_silence(core::time_point now) {
  auto earliest = until_;
  if (silent_ == silent_nodes::awaited) return earliest;
  const auto trusted = static_cast<std::size_t>(std::count_if(
      connections_.begin(), connections_.end(), [](const auto& one) { return !one->doubtful(); }));
  const bool others_suffice = trusted >= core::majority_of(connections_.size());
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    if (!waits_for(i)) continue;
    auto& to = *connections_[i];
    if (others_suffice && to.doubtful()) {
      on_silence(i);
      continue;
    }
    const core::time_point due{
        core::duration{sent_at_[i]} +
        (to.connecting() ? node_connection::connect_patience : node_timeout_)};
    if (now >= due) {
      to.mark_silent();
      on_silence(i);
    } else {
      earliest = std::min(earliest, due);
    }
  }
  return earliest;
}

// ---- on a thread -------------------------------------------------------------------------------

// Reading without sleeping: a thread that is woken takes longer than most answers.
void fan_out::read_for_a_moment() {
  const auto spin = polling_ ? polling_->begin() : core::duration::zero();
  if (spin == core::duration::zero()) return;
  const auto end = std::min(core::after(runtime::now(), spin), until_);
  do {
    read_all();
  } while (!decided() && runtime::now() < end);
  polling_->end(decided());
}

void fan_out::read_all() {
  for (std::size_t i = 0; i < connections_.size() && !decided(); ++i) {
    if (waits_for(i)) static_cast<void>(connections_[i]->sweep());
  }
}

void fan_out::wait() {
  if (!decided()) read_for_a_moment();
  while (!decided()) {
    const auto now = runtime::now();
    if (now >= until_) {
      on_give_up();
      break;
    }
    const auto due = notice_silence(now);
    if (!decided()) sleep_until_one_answers(due);
  }
  std::exchange(done_, nullptr)();
}

void fan_out::sleep_until_one_answers(core::time_point due) {
  std::vector<pollfd> watched;
  std::vector<std::shared_ptr<redis::channel>> open;
  std::vector<std::size_t> whose;
  // Woken once, by the last of them, instead of by each.
  const bool one_suffices = waits_for_all();
  bool buffered = false;
  for (std::size_t i = connections_.size(); i-- > 0;) {
    if (one_suffices && !waits_for(i)) continue;
    auto on = connections_[i]->current(owner_);
    // Those not waited for are read as well: their answer may still come in time to count. What
    // an idle one has to say is that it was closed, which is found out when it is used.
    if (!on || on->broken() || on->idle()) continue;
    watched.push_back({on->fd(), POLLIN, 0});
    buffered = buffered || on->has_buffered();
    open.push_back(std::move(on));
    whose.push_back(i);
    if (one_suffices) break;
  }
  watched.push_back({owner_->fd(), POLLIN, 0});
  sleeping_ = true;
  if (!decided()) {
    const timespec left = buffered ? timespec{} : runtime::until(due);
    static_cast<void>(::ppoll(watched.data(), watched.size(), &left, nullptr));
  }
  sleeping_ = false;
  if (watched.back().revents != 0) owner_->reset();
  for (std::size_t i = 0; i < open.size(); ++i) {
    const bool has_some = watched[i].revents != 0 || open[i]->has_buffered();
    if (has_some) static_cast<void>(connections_[whose[i]]->sweep());
  }
  if (one_suffices) read_all();
}

// ---- by events ---------------------------------------------------------------------------------

void fan_out::watch(timers& by) {
  timers_ = &by;
  look_at_the_time();
}

void fan_out::look_at_the_time() {
  const auto self = shared_from_this();
  const auto now = runtime::now();
  if (!decided() && now >= until_) on_give_up();
  const auto due = decided() ? now : notice_silence(now);
  // Noticing one silence may have failed requests, and so have led here and ended it.
  if (timers_ == nullptr) return;
  if (decided()) {
    timers_ = nullptr;
    return std::exchange(done_, nullptr)();
  }
  if (looks_at_ && *looks_at_ <= due) return;
  looks_at_ = due;
  timers_->at(due, [weak = weak_from_this(), due] {
    const auto still = weak.lock();
    if (!still || still->timers_ == nullptr) return;
    if (still->looks_at_ == due) still->looks_at_.reset();
    still->look_at_the_time();
  });
}

// ---- the same question to all ------------------------------------------------------------------

void gather::ask(std::size_t node, const request& what, std::optional<core::time_point> give_up) {
  {
    const std::lock_guard guard{m_};
    places_[node].open = true;
  }
  send(node, what, 0, give_up);
}

void gather::collect(core::time_point until, caller& by, std::function<void(answers)> done,
                     std::size_t enough, quality good) {
  {
    const std::lock_guard guard{m_};
    enough_ = enough;
    good_ = std::move(good);
    for (const auto& one : places_)
      good_ones_ += good_ && one.said && *one.said && good_(***one.said) ? 1 : 0;
  }
  when_decided(until, by, [this, done = std::move(done)] { done(take()); });
}

gather::answers gather::collect(core::time_point until) {
  return wait_here<answers>([&](auto& by, auto done) { collect(until, by, std::move(done)); });
}

gather::answers gather::take() {
  answers all(places_.size());
  const std::lock_guard guard{m_};
  over_ = true;
  for (std::size_t i = 0; i < places_.size(); ++i)
    all[i] = std::move(places_[i].said);
  return all;
}

void gather::on_answer(std::size_t node, std::uint64_t tag, result<redis::reply> answer) {
  static_cast<void>(tag);
  const std::lock_guard guard{m_};
  if (over_) return;
  if (good_ && answer && good_(**answer)) ++good_ones_;
  places_[node].open = false;
  places_[node].said.emplace(std::move(answer));
}

void gather::on_silence(std::size_t node) {
  const std::lock_guard guard{m_};
  places_[node].open = false;
}

void gather::on_give_up() {
  const std::lock_guard guard{m_};
  over_ = true;
}

bool gather::decided() {
  const std::lock_guard guard{m_};
  return over_ || good_ones_ >= enough_ ||
         std::none_of(places_.begin(), places_.end(), [](const place& one) { return one.open; });
}

bool gather::waits_for_all() {
  const std::lock_guard guard{m_};
  const auto open = static_cast<std::size_t>(
      std::count_if(places_.begin(), places_.end(), [](const place& one) { return one.open; }));
  return enough_ == SIZE_MAX || good_ones_ + open <= enough_;
}

bool gather::waits_for(std::size_t node) {
  const std::lock_guard guard{m_};
  return !over_ && places_[node].open;
}

}  // namespace holdfast::stores::redlock
