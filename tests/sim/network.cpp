#include "sim/network.hpp"

#include <algorithm>

namespace holdfast::sim {

namespace {
constexpr std::size_t index(direction which) { return which == direction::to_node ? 0 : 1; }
}  // namespace

connection::connection(network& net, process& from, node& to)
    : net_{net}, from_{from}, to_{to}, process_life_{from.life()}, node_life_{to.life()} {}

// Arrives in order, after a delay, and not before what stands in the way is gone.
void connection::carry(direction which, action what) {
  const auto way = index(which);
  auto when = std::max(net_.time_.now(), stalled_until_[way]);
  when = std::max(when, net_.blocked_until(*this, which)) + net_.delay();
  last_[way] = std::max(when, last_[way] + 1);
  net_.time_.at(last_[way], std::move(what));
}

template <class What>
void connection::at_node(What what) {
  carry(direction::to_node, [this, what = std::move(what)]() mutable {
    if (cut_ || !open_there_ || !to_.up() || to_.life() != node_life_) return;
    if (!net_.holds(*this)) return what();
    net_.held_back_.push_back([this, what = std::move(what)]() mutable {
      if (!cut_ && to_.up() && to_.life() == node_life_) what();
    });
  });
}

template <class What>
void connection::at_process(What what) {
  carry(direction::to_process, [this, what = std::move(what)]() mutable {
    if (cut_) return;
    from_.reach(process_life_, [this, what = std::move(what)]() mutable {
      if (open_here_) what();
    });
  });
}

void connection::send(std::vector<std::string> words) {
  if (words[0] == "SUBSCRIBE" || words[0] == "UNSUBSCRIBE") {
    return listen(words[0] == "SUBSCRIBE", words.at(1));
  }
  const auto what = std::make_shared<const command>(net_.scripts_.read(std::move(words)));
  const auto ask = shipped_scripts::ask_in(*what);
  if (ask) from_.traffic.sent(*ask);
  unanswered_.push_back(ask);
  carry_out(what, ask);
}

void connection::carry_out(const std::shared_ptr<const command>& what,
                           const std::optional<sent_ask>& ask) {
  at_node([this, what, ask] {
    if (!what->words.empty() && what->script) {
      return reply_with(to_.learn(what->script->loaded), ask);
    }
    auto answer = to_.answer(*what);
    net_.repeats_ = false;
    const bool was_run = what->script && !answer.text.starts_with("NOSCRIPT");
    if (was_run) net_.observe(to_, from_, *what->script, answer);
    if (net_.repeats_) return carry_out(what, ask);
    reply_with(std::move(answer), ask);
  });
}

void connection::reply_with(reply answer, const std::optional<sent_ask>& ask) {
  at_process([this, answer = std::move(answer), ask]() mutable {
    if (ask) from_.traffic.answered(*ask);
    unanswered_.pop_front();
    tell.answered(std::move(answer));
  });
}

void connection::listen(bool begins, const std::string& channel) {
  unanswered_.push_back(std::nullopt);
  at_node([this, begins, channel] {
    if (begins) {
      to_.subscribe(channel, *this);
    } else {
      to_.unsubscribe(channel, *this);
    }
    const std::string said = begins ? "subscribe" : "unsubscribe";
    reply_with(reply::list({reply::of(said), reply::of(channel), reply::of(1)}), std::nullopt);
  });
}

void connection::push(std::string channel, std::string message) {
  at_process([this, channel = std::move(channel), message = std::move(message)]() mutable {
    tell.pushed(std::move(channel), std::move(message));
  });
}

// What was sent before still arrives.
void connection::close() {
  if (!open_here_) return;
  end_here();
  at_node([this] {
    open_there_ = false;
    to_.unsubscribe(*this);
  });
}

void connection::break_here() {
  if (!open_here_) return;
  end_here();
  if (tell.broken) tell.broken();
}

// What was asked and not answered may still arrive, or have arrived.
void connection::end_here() {
  open_here_ = false;
  for (const auto& one : std::exchange(unanswered_, {})) {
    if (one) from_.traffic.cut_off(*one);
  }
}

void connection::stall(direction which, instant until) {
  auto& mine = stalled_until_[index(which)];
  mine = std::max(mine, until);
}

void connection::cut(bool tell_node, bool tell_process) {
  if (cut_) return;
  cut_ = true;
  if (tell_node) {
    net_.time_.at(net_.time_.now() + net_.delay(), [this] {
      open_there_ = false;
      to_.unsubscribe(*this);
    });
  }
  if (tell_process) {
    net_.time_.at(net_.time_.now() + net_.delay(),
                  [this] { from_.reach(process_life_, [this] { break_here(); }); });
  }
}

instant network::delay() {
  if (manners_.slow_per_mille > 0 && random_.chance(manners_.slow_per_mille)) {
    return random_.spread(manners_.delay_most, manners_.slow_most);
  }
  return random_.between(manners_.delay_least, manners_.delay_most);
}

instant network::blocked_until(const connection& on, direction which) const {
  const auto found = blocked_.find({on.from_.name, on.to_.name});
  return found == blocked_.end() ? 0 : found->second[index(which)];
}

void network::block(const process& from, const node& to, direction which, instant until) {
  auto& mine = blocked_[{from.name, to.name}][index(which)];
  mine = std::max(mine, until);
}

void network::connect(process& from, node& to, std::function<void(connection*)> done) {
  all_.push_back(std::make_unique<connection>(*this, from, to));
  auto* fresh = all_.back().get();
  open_.push_back(fresh);
  const auto refuse = [fresh, done] {
    fresh->carry(direction::to_process, [fresh, done] {
      fresh->from_.reach(fresh->process_life_, [done] { done(nullptr); });
    });
  };
  fresh->carry(direction::to_node, [fresh, done, refuse] {
    if (fresh->cut_) return;
    if (!fresh->to_.up() || fresh->to_.life() != fresh->node_life_) return refuse();
    fresh->open_there_ = true;
    fresh->opened_ = true;
    fresh->carry(direction::to_process, [fresh, done] {
      if (fresh->cut_) return;
      fresh->from_.reach(fresh->process_life_, [fresh, done] {
        fresh->open_here_ = true;
        done(fresh);
      });
    });
  });
}

void network::calm_down() {
  manners_.slow_per_mille = 0;
  // Whoever hears of it opens another.
  std::vector<connection*> dead;
  for (const auto& one : all_) {
    if (one->cut_) dead.push_back(one.get());
  }
  for (auto* one : dead)
    one->from_.reach(one->process_life_, [one] { one->break_here(); });
}

const std::vector<connection*>& network::open() {
  std::erase_if(open_, [](const auto* one) {
    return one->cut_ || (one->opened_ && !one->open_here_ && !one->open_there_);
  });
  return open_;
}

void network::hold(const process& from, std::vector<node*> to) {
  let_go();
  held_from_ = &from;
  held_to_ = std::move(to);
}

bool network::holds(const connection& on) const {
  return held_from_ == &on.from_ &&
         std::find(held_to_.begin(), held_to_.end(), &on.to_) != held_to_.end();
}

void network::let_go() {
  held_from_ = nullptr;
  for (auto& one : std::exchange(held_back_, {}))
    time_.at(time_.now(), std::move(one));
}

void network::cut_all(const process& from, const node& to) {
  for (auto* one : open()) {
    if (&one->from_ == &from && &one->to_ == &to) one->cut(true, true);
  }
}

void network::process_died(const process& who, bool host_died) {
  for (auto* one : open_) {
    if (&one->from_ != &who || one->process_life_ == who.life()) continue;
    one->open_here_ = false;
    // Its kernel says goodbye for it, after what it had sent.
    if (!host_died) {
      one->at_node([one] {
        one->open_there_ = false;
        one->to_.unsubscribe(*one);
      });
    }
  }
}

void network::node_died(const node& who, bool host_died) {
  for (auto* one : open_) {
    if (&one->to_ != &who || one->node_life_ == who.life()) continue;
    one->open_there_ = false;
    if (host_died) {
      one->cut_ = true;  // nobody says anything
    } else {
      one->carry(direction::to_process,
                 [one] { one->from_.reach(one->process_life_, [one] { one->break_here(); }); });
    }
  }
}

}  // namespace holdfast::sim
