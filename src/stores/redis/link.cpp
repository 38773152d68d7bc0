#include "stores/redis/link.hpp"

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

bool is_error(const reply_value& r) { return r.type == reply_kind::error; }

}  // namespace

script_call::script_call(const scripts::script& which, std::span<const std::string_view> keys,
                         std::span<const std::string_view> args, std::size_t to_come)
    : which_{&which}, arguments_{3 + keys.size() + args.size() + to_come} {
  command text{arguments_};
  text.arg("EVALSHA").arg(which.sha1);
  tail_at_ = text.bytes().size();
  text.arg(static_cast<long long>(keys.size()));
  for (const auto key : keys)
    text.arg(key);
  for (const auto arg : args)
    text.arg(arg);
  by_hash_ = std::move(text).bytes();
}

std::string script_call::by_source() const {
  command text{arguments_};
  text.arg("EVAL").arg(which_->source);
  return text.bytes() + by_hash_.substr(tail_at_);
}

// A caller's place on a connection, given back when it is done.
class link::use {
 public:
  use(link& owner, std::shared_ptr<channel> on) : owner_{owner}, on_{std::move(on)} {}
  use(const use&) = delete;
  use& operator=(const use&) = delete;
  ~use() {
    {
      const std::lock_guard guard{owner_.m_};
      --on_->users;
      --owner_.callers_;
      if (on_->broken() || on_->suspect()) owner_.drop_unfit();
      if (!on_->broken() || owner_.closed_) return;
    }
    if (owner_.tell_.doubtful) owner_.tell_.doubtful();
  }

 private:
  link& owner_;
  std::shared_ptr<channel> on_;
};

link::link(std::shared_ptr<dialer> to, link_limits limits, hooks tell)
    : dialer_{std::move(to)},
      limits_{limits},
      tell_{std::move(tell)},
      pace_{connect_pace, runtime::random_bits()} {}

link::~link() { close(); }

void link::close() {
  std::vector<std::shared_ptr<channel>> closing;
  {
    const std::lock_guard guard{m_};
    closed_ = true;
    connected_.notify_all();
    closing.swap(channels_);
    for (auto& one : retired_)
      closing.push_back(std::move(one.on));
    retired_.clear();
  }
  for (const auto& one : closing)
    one->break_off("the client is closed");
}

// Under m_: nothing new goes to a connection that is broken, or on which a reply failed to come.
void link::drop_unfit() {
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

std::shared_ptr<channel> link::pick(const trace& behind) {
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

std::shared_ptr<channel> link::pick_or_wait(std::unique_lock<std::mutex>& held, const trace& behind,
                                            core::time_point until) {
  for (;;) {
    auto on = pick(behind);
    if (on || connecting_ < limits_.connections) return on;
    const auto now = runtime::now();
    if (now >= until) return nullptr;
    connected_.wait_for(held, until - now);
    if (closed_) return nullptr;
  }
}

// A connection that turns out to be closed before anything was sent is no news to the caller:
// there may be others, or a new one can be made. Bounded by how many there can be.
result<reply> link::exchange(std::string_view bytes, core::time_point until, const trace& behind,
                             trace* used) {
  for (std::size_t tries = 0;; ++tries) {
    trace on;
    auto answer = exchange_once(bytes, until, behind, &on);
    if (used != nullptr) *used = on;
    const bool was_closed =
        !answer && answer.error().code == errc::store_unreachable && on.on && on.on->broken();
    if (!was_closed || tries > limits_.connections || runtime::now() >= until) return answer;
  }
}

result<reply> link::exchange_once(std::string_view bytes, core::time_point until,
                                  const trace& behind, trace* used) {
  std::shared_ptr<channel> on;
  bool alone = false;
  {
    std::unique_lock held{m_};
    if (closed_) return fail(errc::stopped, "the client is closed");
    on = pick_or_wait(held, behind, until);
    if (closed_) return fail(errc::stopped, "the client is closed");
    if (on) {
      ++on->users;
      alone = ++callers_ == 1;
    } else if (connecting_ >= limits_.connections) {
      return fail(errc::store_unreachable, "no connection to " + node() + " in time");
    } else {
      ++connecting_;
    }
  }
  if (!on) {
    auto fresh = connect(until);
    if (!fresh) return fail(std::move(fresh.error()));
    on = std::move(*fresh);
  }
  const use place{*this, on};
  std::uint64_t position = 0;
  auto answer = on->call(bytes, until, alone, &position);
  *used = {on, position};
  return answer;
}

result<reply> link::run(const script_call& script, core::time_point until, const trace& behind,
                        trace* used) {
  auto answer = exchange(script.by_hash(), until, behind, used);
  if (answer && is_error(**answer) && is_noscript(text_of(**answer))) {
    posted_before_ = nullptr;
    answer = exchange(script.by_source(), until, used != nullptr ? *used : behind, used);
  }
  if (answer && is_error(**answer)) return fail(refused(text_of(**answer)));
  return answer;
}

failure link::refused(std::string_view said) {
  if (says_demoted(said) && tell_.demoted) tell_.demoted();
  return translate_error(said, node());
}

std::vector<std::shared_ptr<channel>> link::connections() {
  const std::lock_guard guard{m_};
  drop_unfit();
  return channels_;
}

void link::dismiss(channel& ended) {
  // Replies that came before the end are still to be read, by whoever waits for them.
  if (ended.idle()) {
    ended.break_off("the server closed it");
  } else {
    ended.doubt();
  }
  const std::lock_guard guard{m_};
  drop_unfit();
}

void link::renounce() {
  const std::lock_guard guard{m_};
  for (const auto& one : channels_)
    one->doubt();
  drop_unfit();
  posted_before_ = nullptr;
}

namespace {

// For what may be asked twice: `ask` is told whether this is the first time.
template <class Ask>
result<reply> again_if_unknown(core::time_point until, Ask ask) {
  auto answer = ask(true);
  const bool unknown = !answer && answer.error().code == errc::outcome_unknown;
  return unknown && runtime::now() < until ? ask(false) : std::move(answer);
}

}  // namespace

result<reply> link::look(const script_call& script, core::time_point until, const trace& behind) {
  return again_if_unknown(until,
                          [&](bool first) { return run(script, until, first ? behind : trace{}); });
}

result<reply> link::look(std::string_view bytes, core::time_point until) {
  auto answer = again_if_unknown(until, [&](bool) { return exchange(bytes, until, {}, nullptr); });
  if (answer && is_error(**answer)) return fail(refused(text_of(**answer)));
  return answer;
}

trace link::post(const script_call& script, const trace& behind, channel::on_reply done,
                 std::string_view before) {
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
  const bool known = posted_before_.load() == which;
  const auto position =
      on->post(known ? script.by_hash() : script.by_source(), std::move(done), before);
  if (position == 0) return on->broken() ? trace{} : trace{on, 0};
  posted_before_ = which;
  return {on, position};
}

result<std::shared_ptr<channel>> link::connect(core::time_point until) {
  bool again = false;
  {
    const std::lock_guard guard{m_};
    if (runtime::now() < not_before_) {
      --connecting_;
      connected_.notify_all();
      return fail(last_failure_);
    }
    again = was_connected_;
  }
  auto fresh = dial_now(*dialer_, until).map([&](auto over) {
    return std::make_shared<channel>(std::move(over), node(), limits_.spin);
  });
  bool came_back = false;
  {
    const std::lock_guard guard{m_};
    --connecting_;
    connected_.notify_all();
    if (fresh) {
      if (closed_) return fail(errc::stopped, "the client is closed");
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
  }
  if (came_back && tell_.reconnected) tell_.reconnected();
  if (came_back && tell_.doubtful) tell_.doubtful();
  return fresh;
}

void link::flush(core::time_point until) {
  std::vector<std::shared_ptr<channel>> all;
  {
    const std::lock_guard guard{m_};
    all = channels_;
  }
  command ping{1};
  ping.arg("PING");
  for (const auto& one : all) {
    // Replies come in order: with this one, all before it have been read.
    if (!one->idle()) static_cast<void>(one->call(ping.bytes(), until, false));
  }
}

bool link::sweep(core::time_point now) {
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
