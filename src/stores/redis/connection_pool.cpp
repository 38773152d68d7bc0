#include "stores/redis/connection_pool.hpp"

#include <algorithm>
#include <utility>

#include "runtime/clock.hpp"
#include "runtime/random.hpp"
#include "stores/redis/server_error.hpp"

namespace holdfast::stores::redis {

namespace {

using std::chrono::milliseconds;

// Between attempts to connect to a server that is not there, for all callers together.
constexpr core::backoff::bounds connect_pace{milliseconds{5}, milliseconds{500}};
// A connection that has not caught up by then never will.
constexpr core::duration retired_age_max = std::chrono::seconds{30};

// A crowd is one for this many requests more: between two batches of replies nobody seems to call.
constexpr int crowd_memory = 64;

}  // namespace

connection_pool::connection_pool(std::shared_ptr<dialer> to, pool_limits limits, hooks tell)
    : dialer_{std::move(to)},
      limits_{limits},
      tell_{std::move(tell)},
      pace_{connect_pace, runtime::random_bits()} {}

connection_pool::~connection_pool() { close(); }

void connection_pool::close() {
  std::vector<std::shared_ptr<channel>> closing;
  std::vector<std::shared_ptr<pause>> waiting;
  {
    const std::lock_guard guard{m_};
    closed_ = true;
    waiting.swap(until_connected_);
    waiting.insert(waiting.end(), until_room_.begin(), until_room_.end());
    until_room_.clear();
    closing.swap(channels_);
    for (auto& one : retired_)
      closing.push_back(std::move(one.on));
    retired_.clear();
  }
  for (const auto& one : waiting)
    one->end();
  for (const auto& one : closing)
    one->break_off("the client is closed");
}

// Under m_: nothing new goes to a connection that is broken, or on which a reply failed to come.
void connection_pool::drop_unfit() {
  const bool doubtful = std::any_of(channels_.begin(), channels_.end(),
                                    [](const auto& one) { return one->suspect(); });
  std::erase_if(channels_, [&](const auto& one) {
    if (doubtful && !one->suspect() && one->users == 0 && one->idle()) return true;
    if (one->broken()) {
      posted_before_ = nullptr;  // perhaps the server was started anew
      return true;
    }
    if (!one->suspect()) return false;
    retired_.push_back({one, runtime::now()});
    if (tell_.retired) tell_.retired();
    return true;
  });
}

std::shared_ptr<channel> connection_pool::pick(const sent_position& behind) {
  drop_unfit();
  const bool can_follow = behind.on && !behind.on->broken() && !behind.on->suspect();
  if (can_follow && !behind.answered()) return behind.on;
  crowd_ = std::max(crowd_ - 1, callers_ * crowd_memory);
  if (static_cast<std::size_t>(crowd_ / crowd_memory) < limits_.connections) {
    for (const auto& one : channels_) {
      if (one->users == 0) return one;
    }
    if (channels_.size() + connecting_ < limits_.connections) return nullptr;  // open another
  }
  return channels_.empty() ? nullptr : channels_.front();
}

// A request gives back its place on a connection.
void connection_pool::leave(channel& on) {
  {
    const std::lock_guard guard{m_};
    --on.users;
    --callers_;
    if (on.broken() || on.suspect()) drop_unfit();
    if (!on.broken() || closed_) return;
  }
  if (tell_.doubtful) tell_.doubtful();
}

void connection_pool::wait_for_room(std::shared_ptr<pause> turn) {
  const std::lock_guard guard{m_};
  // All wait for as long: those whose time is up are the first.
  while (!until_room_.empty() && until_room_.front()->is_over())
    until_room_.pop_front();
  until_room_.push_back(std::move(turn));
}

void connection_pool::room_was_made() {
  std::shared_ptr<pause> next;
  {
    const std::lock_guard guard{m_};
    while (!until_room_.empty() && (!next || next->is_over())) {
      next = std::move(until_room_.front());
      until_room_.pop_front();
    }
  }
  if (next) next->end();
}

failure connection_pool::refused(std::string_view said) {
  if (says_demoted(said) && tell_.demoted) tell_.demoted();
  return translate_error(said, node());
}

std::vector<std::shared_ptr<channel>> connection_pool::connections() {
  const std::lock_guard guard{m_};
  drop_unfit();
  return channels_;
}

void connection_pool::dismiss(channel& ended) {
  // Replies that came before the end are still to be read, by the callers that wait for them.
  if (ended.idle()) {
    ended.break_off("the server closed it");
  } else {
    ended.doubt();
  }
  const std::lock_guard guard{m_};
  drop_unfit();
}

bool connection_pool::carries(const channel& one) {
  const std::lock_guard guard{m_};
  return std::any_of(channels_.begin(), channels_.end(),
                     [&](const auto& mine) { return mine.get() == &one; });
}

void connection_pool::renounce() {
  const std::lock_guard guard{m_};
  for (const auto& one : channels_)
    one->doubt();
  drop_unfit();
  posted_before_ = nullptr;
}

sent_position connection_pool::post(const script_call& script, const sent_position& behind,
                                    channel::on_reply done, std::string_view before) {
  std::shared_ptr<channel> on;
  {
    const std::lock_guard guard{m_};
    if (closed_ || channels_.empty()) return {};
    on = pick(behind);
    // Picking drops connections that are broken, perhaps all.
    if (!on && !channels_.empty()) on = channels_.front();
    if (!on) return {};
  }
  const auto* which = script.which();
  const bool known = which == nullptr || posted_before_.load() == which;
  const auto position =
      on->post(known ? script.by_hash() : script.by_source(), std::move(done), before);
  if (position == 0) return on->broken() ? sent_position{} : sent_position{on, 0};
  if (which != nullptr) posted_before_ = which;
  return {on, position};
}

void connection_pool::connect(core::time_point until, on_connected done) {
  bool again = false;
  {
    std::unique_lock held{m_};
    if (runtime::now() < not_before_) {
      auto why = last_failure_;
      end_connecting(held);
      return done(fail(std::move(why)));
    }
    again = was_connected_;
  }
  dialer_->dial(until, [this, again, done = std::move(done)](auto over) {
    auto fresh = std::move(over).map([this](auto bytes) {
      auto on = std::make_shared<channel>(std::move(bytes), node(), limits_.spin);
      if (limits_.keeps_changes) on->keep_changes();
      on->read_when_told(on);
      return on;
    });
    connected(again, std::move(fresh), done);
  });
}

void connection_pool::connected(bool again, result<std::shared_ptr<channel>> fresh,
                                const on_connected& done) {
  bool came_back = false;
  std::unique_lock held{m_};
  if (fresh && closed_) {
    fresh = fail(errc::stopped, "the client is closed");
  } else if (fresh) {
    came_back = again && channels_.empty();
    pace_.reset();
    not_before_ = {};
    was_connected_ = true;
    channels_.push_back(*fresh);
    ++(*fresh)->users;
    ++callers_;
  } else {
    auto& why = fresh.error();
    // Nothing of ours was sent yet, whatever became of the greeting.
    if (why.code == errc::outcome_unknown) why.code = errc::store_unreachable;
    if (why.nodes.empty()) why.nodes.push_back({node(), why.message});
    if (why.code == errc::store_unreachable) {
      why.message = "cannot reach " + node() + ": " + why.message;
    }
    not_before_ = core::after(runtime::now(), pace_.next());
    last_failure_ = why;
  }
  end_connecting(held);
  if (came_back && tell_.reconnected) tell_.reconnected();
  if (came_back && tell_.doubtful) tell_.doubtful();
  done(std::move(fresh));
}

// Callers that waited meanwhile look again. Unlocks.
void connection_pool::end_connecting(std::unique_lock<std::mutex>& held) {
  --connecting_;
  const auto waiting = std::exchange(until_connected_, {});
  held.unlock();
  for (const auto& one : waiting)
    one->end();
}

void connection_pool::flush(core::time_point until) {
  std::vector<std::shared_ptr<channel>> all;
  {
    const std::lock_guard guard{m_};
    all = channels_;
  }
  command ping{1};
  ping.arg("PING");
  for (const auto& one : all) {
    if (one->fd() < 0) continue;  // it reads by itself
    // Replies come in order: with this one, all before it have been read.
    if (!one->idle()) static_cast<void>(one->call(ping.bytes(), until, false));
  }
}

bool connection_pool::sweep(core::time_point now) {
  std::vector<std::shared_ptr<channel>> all;
  {
    const std::lock_guard guard{m_};
    all = channels_;
    for (const auto& one : retired_)
      all.push_back(one.on);
  }
  bool more = false;
  for (const auto& one : all) {
    if (!one->idle()) one->sweep();
    more = more || !one->idle();
  }
  std::vector<std::shared_ptr<channel>> closing;
  {
    const std::lock_guard guard{m_};
    std::erase_if(retired_, [&](const retired& one) {
      const bool over = one.on->idle() || one.on->broken() || now - one.since > retired_age_max;
      if (over) closing.push_back(one.on);
      return over;
    });
    while (retired_.size() > retired_max) {
      closing.push_back(std::move(retired_.front().on));
      retired_.erase(retired_.begin());
    }
    more = more || !retired_.empty();
  }
  for (const auto& one : closing)
    one->break_off("no reply came");
  return more;
}

}  // namespace holdfast::stores::redis
