#include "stores/redis/redisson/channel_listener.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <utility>

#include "runtime/clock.hpp"
#include "runtime/socket.hpp"
#include "stores/redis/redisson/layout.hpp"
#include "stores/redis/server_error.hpp"

namespace holdfast::stores::redis::redisson {

namespace {

// A server that cannot be reached is tried again no sooner: every try is a connection.
constexpr core::duration open_pause = std::chrono::milliseconds{250};
constexpr std::size_t read_chunk_bytes = 8 * 1024;

}  // namespace

class channel_listener::place {
 public:
  explicit place(std::string channel) : of{std::move(channel)} {}
  const std::string of;
  // Protected by the listener's mutex.
  bool live = true;  // its connection is there
  bool told = false;
  failure refusal;  // why it is not live, if the server said so
  std::shared_ptr<listening> listens;
};

// One wait of one waiter: for the confirmation of its subscription, or for a message.
class channel_listener::listening final : public interruptible,
                                          public std::enable_shared_from_this<listening> {
 public:
  enum class what { confirmation, message };

  listening(channel_listener& in, std::shared_ptr<place> mine, what awaited, core::time_point until,
            std::function<void()> done)
      : in_{in}, mine_{std::move(mine)}, awaited_{awaited}, until_{until}, done_{std::move(done)} {}

  void wait() override {
    {
      lock held{in_.m_};
      mine_->listens = shared_from_this();
      while (!is_over()) {
        const auto now = runtime::now();
        if (now >= until_) break;
        if (!in_.someone_reads_) {
          static_cast<void>(in_.read_once(held, until_, true));
        } else {
          woken_.wait_for(held, std::min<core::duration>(until_ - now, std::chrono::hours{1}));
        }
      }
    }
    finish();
  }

  void watch(timers& by) override {
    bool over = false;
    {
      const lock held{in_.m_};
      by_ = &by;
      mine_->listens = shared_from_this();
      over = is_over();
    }
    by.at(over ? runtime::now() : until_, [self = shared_from_this()] { self->finish(); });
  }

  void end() override {
    const lock held{in_.m_};
    ended_ = true;
    tell();
    if (reads_by_itself()) in_.wake_.wake();
  }

  // Under the listener's mutex.
  void tell() {
    if (by_ != nullptr) {
      by_->at(runtime::now(), [self = shared_from_this()] { self->finish(); });
    } else {
      woken_.notify_all();
    }
  }
  [[nodiscard]] bool is_over() const {
    if (ended_ || !mine_->live) return true;
    if (awaited_ == what::message) return mine_->told;
    const auto at = in_.channels_.find(mine_->of);
    return at == in_.channels_.end() || at->second.confirmed;
  }
  [[nodiscard]] bool reads_by_itself() const noexcept { return by_ == nullptr; }

 private:
  void finish() {
    const auto done = std::exchange(done_, nullptr);
    if (!done) return;
    {
      const lock held{in_.m_};
      if (mine_->listens.get() == this) mine_->listens = nullptr;
      if (reads_by_itself() && !in_.someone_reads_) in_.wake_another();
    }
    done();
  }

  channel_listener& in_;
  const std::shared_ptr<place> mine_;
  const what awaited_;
  const core::time_point until_;
  std::function<void()> done_;  // the caller's; empty: it was called

  // Protected by the listener's mutex.
  std::condition_variable woken_;
  timers* by_ = nullptr;
  bool ended_ = false;
};

channel_listener::channel_listener(std::shared_ptr<server> at,
                                   std::shared_ptr<runtime::background> background)
    : server_{std::move(at)}, background_{std::move(background)} {}

// ---- opening and closing -----------------------------------------------------------------------

void channel_listener::join(std::string name, core::time_point until, caller& by, on_joined done) {
  lock held{m_};
  const auto refuse = [&](failure why) {
    held.unlock();
    done(fail(std::move(why)));
  };
  const auto now = runtime::now();
  if (closed_) return refuse({errc::stopped, "the client is closed", {}});
  if (!connection_ && now < not_before_) return refuse(last_failure_);
  if (!connection_ && now >= until) {
    return refuse({errc::store_unreachable, "no subscription in time", {}});
  }
  if (!connection_ && opening_) {
    const auto turn =
        std::make_shared<pause>(until, [this, name = std::move(name), until, &by,
                                        done = std::move(done)] { join(name, until, by, done); });
    until_open_.push_back(turn);
    held.unlock();
    return by.wait_for(turn);
  }
  if (!connection_) {
    opening_ = true;
    held.unlock();
    return server_->calls.dial().dial(until, [self = shared_from_this(), name = std::move(name),
                                              until, &by, done = std::move(done)](auto made) {
      self->opened(std::move(made));
      self->join(name, until, by, done);
    });
  }
  if (!channels_.contains(name)) {
    if (channels_.size() >= channels_max) {
      return refuse({errc::overloaded, "too many channels are listened to", {}});
    }
    channels_.try_emplace(name);
    if (!send(subscribe_command, name)) {
      disconnect();
      return refuse({errc::store_unreachable, "cannot subscribe", {}});
    }
  }
  auto& at = channels_.find(name)->second;
  at.used = true;
  const auto mine = std::make_shared<place>(std::move(name));
  at.places.push_back(mine);
  const bool confirmed = at.confirmed;
  held.unlock();
  if (confirmed) return done(mine);
  by.wait_for(std::make_shared<listening>(
      *this, mine, listening::what::confirmation, until, [this, mine, done = std::move(done)] {
        failure why{errc::store_unreachable, "no answer to a subscription in time", {}};
        {
          const lock again{m_};
          const auto found = channels_.find(mine->of);
          if (mine->live && found != channels_.end() && found->second.confirmed) why.code = {};
          if (!mine->live && !mine->refusal.message.empty()) why = mine->refusal;
        }
        if (why.code == errc{}) return done(mine);
        leave(mine, false);
        done(fail(std::move(why)));
      }));
}

void channel_listener::opened(result<std::unique_ptr<runtime::stream>> made) {
  std::vector<std::shared_ptr<pause>> others;
  {
    const lock held{m_};
    opening_ = false;
    others.swap(until_open_);
    if (!made) {
      not_before_ = core::after(runtime::now(), open_pause);
      last_failure_ = std::move(made.error());
    } else if (!closed_) {
      connection_ = std::make_shared<connection>(std::move(*made));
      const bool told = connection_->over->tells([weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->read_what_came();
      });
      static_cast<void>(told);  // otherwise the threads that wait poll
    }
  }
  for (const auto& one : others)
    one->end();
}

// Waiters ask again, and join anew.
void channel_listener::disconnect() {
  connection_.reset();
  unanswered_.clear();
  auto all = std::exchange(channels_, {});
  for (auto& [name, one] : all)
    drop_places(one);
  wake_.wake();
}

void channel_listener::drop_places(channel& of) {
  for (const auto& one : of.places) {
    one->live = false;
    if (const auto at = std::exchange(one->listens, nullptr)) at->tell();
  }
  of.places.clear();
}

void channel_listener::close() {
  const lock held{m_};
  closed_ = true;
  disconnect();
}

void channel_listener::plan_rest() {
  if (rest_planned_.exchange(true)) return;
  const auto when = core::after(runtime::now(), rest_after);
  const bool planned = background_->run_at(when, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->rest_planned_ = false;
    if (!self->rest()) self->plan_rest();
  });
  if (!planned) rest_planned_ = false;
}

// False: not all that can be given up could be, so it is to be called again.
bool channel_listener::rest() {
  const lock held{m_};
  if (!connection_) return true;
  bool more = false;
  for (auto at = channels_.begin(); at != channels_.end();) {
    auto& [name, one] = *at;
    const bool kept = std::exchange(one.used, false) || !one.places.empty() || !one.confirmed;
    if (kept) {
      more = more || one.places.empty();
      ++at;
      continue;
    }
    const bool sent = send(unsubscribe_command, name);
    at = channels_.erase(at);
    if (!sent) {
      disconnect();
      return true;
    }
  }
  if (!channels_.empty()) return !more;
  if (someone_reads_) return false;
  disconnect();
  return true;
}

// ---- waiters -----------------------------------------------------------------------------------

bool channel_listener::hears(const place& mine) {
  const lock held{m_};
  return mine.live;
}

std::shared_ptr<interruptible> channel_listener::wait(std::shared_ptr<place> mine,
                                                      core::time_point until,
                                                      std::function<void()> done) {
  return std::make_shared<listening>(*this, std::move(mine), listening::what::message, until,
                                     std::move(done));
}

void channel_listener::ask_begins(place& mine) {
  const lock held{m_};
  mine.told = false;
}

void channel_listener::leave(const std::shared_ptr<place>& mine, bool pass_on) {
  bool last = false;
  {
    const lock held{m_};
    const auto at = channels_.find(mine->of);
    if (!mine->live || at == channels_.end()) return;
    mine->live = false;
    mine->listens = nullptr;
    std::erase(at->second.places, mine);
    if (pass_on && mine->told) {
      deliver(at->second, false);
      wake_.wake();  // it may be for the thread that reads
    }
    at->second.used = true;
    last = at->second.places.empty();
  }
  if (last) plan_rest();
}

// ---- messages ----------------------------------------------------------------------------------

bool channel_listener::send(std::string_view verb, const std::string& name) {
  command text{2};
  text.arg(verb).arg(name);
  // Room for a few bytes is missing only if the server does not read any more.
  if (connection_->over->send_some(text.bytes()).bytes != text.bytes().size()) return false;
  unanswered_.push_back(name);
  return true;
}

// A thread has to read for those that still wait.
void channel_listener::wake_another() {
  for (auto& [name, one] : channels_) {
    for (const auto& mine : one.places) {
      const auto& at = mine->listens;
      if (at && at->reads_by_itself() && !at->is_over()) return at->tell();
    }
  }
}

// The stream told.
void channel_listener::read_what_came() {
  lock held{m_};
  while (connection_ && !someone_reads_ && read_once(held, core::time_point{}, false)) {
  }
}

bool channel_listener::read_once(lock& held, core::time_point until, bool may_wait) {
  const auto from = connection_;
  someone_reads_ = true;
  held.unlock();
  auto ready = runtime::readiness::ready;
  if (may_wait) ready = runtime::wait_ready(from->over->fd(), POLLIN, until, wake_.fd());
  if (ready == runtime::readiness::woken) wake_.reset();
  std::array<char, read_chunk_bytes> chunk;
  runtime::io_outcome got;
  if (ready == runtime::readiness::ready) {
    got = from->over->receive_some(chunk.data(), chunk.size());
    if (got.bytes > 0) from->reader.feed({chunk.data(), got.bytes});
  }
  held.lock();
  someone_reads_ = false;
  if (from != connection_) return false;
  while (const auto one = from->reader.next()) {
    read(*one);
  }
  if (connection_ && (got.error != 0 || !from->reader.trouble().empty())) disconnect();
  return got.bytes > 0;
}

void channel_listener::read(const reply_value& what) {
  if (what.type == reply_kind::error) return refused(text_of(what));
  const auto fields = elements_of(what);
  if (fields.size() != 3) return;
  const auto kind = text_of(*fields[0]);
  const auto at = channels_.find(text_of(*fields[1]));
  if (kind == "message") {
    if (at != channels_.end()) deliver(at->second, text_of(*fields[2]) != wakes_one);
    return;
  }
  if (kind != "subscribe" && kind != "unsubscribe") return;
  if (!unanswered_.empty()) unanswered_.pop_front();
  if (kind != "subscribe" || at == channels_.end()) return;
  at->second.confirmed = true;
  for (const auto& one : at->second.places) {
    if (one->listens) one->listens->tell();
  }
}

// Answers come in the order of the commands: this one is to the oldest.
void channel_listener::refused(std::string_view why) {
  if (unanswered_.empty()) return;
  const auto at = channels_.find(unanswered_.front());
  unanswered_.pop_front();
  if (at == channels_.end()) return;
  for (const auto& one : at->second.places)
    one->refusal = translate_error(why, server_->calls.node());
  drop_places(at->second);
  channels_.erase(at);
}

void channel_listener::deliver(channel& to, bool all) {
  for (const auto& one : to.places) {
    if (std::exchange(one->told, true)) continue;
    if (one->listens) one->listens->tell();
    if (!all) return;
  }
}

}  // namespace holdfast::stores::redis::redisson
