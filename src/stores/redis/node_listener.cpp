#include "stores/redis/node_listener.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "runtime/clock.hpp"
#include "stores/redis/redisson/layout.hpp"
#include "stores/redis/server_error.hpp"

namespace holdfast::stores::redis {

namespace {

// A server that cannot be reached is tried again no sooner: every try is a connection.
constexpr core::duration open_pause = std::chrono::milliseconds{250};
constexpr std::size_t read_chunk_bytes = 8 * 1024;

}  // namespace

class node_listener::connection final : public message_source {
 public:
  explicit connection(std::unique_ptr<runtime::stream> made) : over_{std::move(made)} {}

  [[nodiscard]] runtime::stream& over() const noexcept { return *over_; }
  int fd() const noexcept override { return over_->fd(); }
  bool has_buffered() const noexcept override { return over_->has_buffered(); }
  bool receive() override {
    std::array<char, read_chunk_bytes> chunk;
    const auto got = over_->receive_some(chunk.data(), chunk.size());
    if (got.bytes > 0) reader_.feed({chunk.data(), got.bytes});
    broken_ = broken_ || got.error != 0;
    return got.bytes > 0;
  }
  // By the thread that received.
  [[nodiscard]] reply next() { return reader_.next(); }
  [[nodiscard]] bool is_over() const { return broken_ || !reader_.trouble().empty(); }

 private:
  const std::unique_ptr<runtime::stream> over_;
  reply_reader reader_;
  bool broken_ = false;
};

class node_listener::place {
 public:
  explicit place(std::string channel) : of{std::move(channel)} {}
  const std::string of;
  // Protected by the listener's mutex.
  bool live = true;  // its connection is there
  bool told = false;
  failure refusal;              // why it is not live, if the server said so
  std::shared_ptr<pause> wait;  // for the answer to SUBSCRIBE, or for a message

  void end_wait() const {
    if (wait) wait->end();
  }
};

node_listener::node_listener(std::shared_ptr<server_node> at,
                             std::shared_ptr<runtime::background> background)
    : node_{std::move(at)},
      background_{std::move(background)},
      reader_{{.open = [this] { return open_now(); },
               .received = [this](const message_source& from) { received(from); }}} {}

// ---- opening and closing -----------------------------------------------------------------------

void node_listener::join(std::string name, bool sharded, core::time_point until, caller& by,
                         on_joined done) {
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
    const auto turn = std::make_shared<pause>(
        until, [this, name = std::move(name), sharded, until, &by, done = std::move(done)] {
          join(name, sharded, until, by, done);
        });
    until_open_.push_back(turn);
    held.unlock();
    return by.wait_for(turn);
  }
  if (!connection_) {
    opening_ = true;
    held.unlock();
    return node_->calls.dial().dial(
        until, [self = shared_from_this(), name = std::move(name), sharded, until, &by,
                done = std::move(done)](auto made) {
          self->opened(std::move(made));
          self->join(name, sharded, until, by, done);
        });
  }
  if (!channels_.contains(name)) {
    if (channels_.size() >= channels_max) {
      return refuse({errc::overloaded, "too many channels are listened to", {}});
    }
    channels_.try_emplace(name).first->second.sharded = sharded;
    if (!send("SUBSCRIBE", sharded, name)) {
      disconnect();
      return refuse({errc::store_unreachable, "cannot subscribe", {}});
    }
  }
  auto& at = channels_.find(name)->second;
  at.used = true;
  const auto mine = std::make_shared<place>(std::move(name));
  at.places.push_back(mine);
  if (at.confirmed) {
    held.unlock();
    return done(mine);
  }
  auto confirmation = reader_.wait(until, [this, mine, until, done = std::move(done)] {
    failure why{errc::store_unreachable, "no answer to a subscription in time", {}};
    bool confirmed = false;
    {
      const lock again{m_};
      mine->wait = nullptr;
      confirmed = is_confirmed(*mine);
      if (!mine->refusal.message.empty()) why = mine->refusal;
      // Nothing is heard on it any more, or not for long: the next to join gets another.
      if (!confirmed && mine->live && runtime::now() >= until) disconnect();
    }
    if (confirmed) return done(mine);
    leave(mine, false);
    done(fail(std::move(why)));
  });
  mine->wait = confirmation;
  held.unlock();
  by.wait_for(std::move(confirmation));
}

// Under m_.
bool node_listener::is_confirmed(const place& one) const {
  const auto found = channels_.find(one.of);
  return one.live && found != channels_.end() && found->second.confirmed;
}

void node_listener::opened(result<std::unique_ptr<runtime::stream>> made) {
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
      const bool told = connection_->over().tells([weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->reader_.read_now();
      });
      static_cast<void>(told);  // otherwise the threads that wait poll
    }
  }
  for (const auto& one : others)
    one->end();
}

// Waiters ask again, and join anew.
void node_listener::disconnect() {
  connection_.reset();
  unanswered_.clear();
  auto all = std::exchange(channels_, {});
  for (auto& [name, one] : all)
    drop_places(one);
}

void node_listener::drop_places(channel& of) {
  for (const auto& one : of.places) {
    one->live = false;
    one->end_wait();
  }
  of.places.clear();
}

void node_listener::close() {
  const lock held{m_};
  closed_ = true;
  disconnect();
}

void node_listener::plan_rest() {
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
bool node_listener::rest() {
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
    const bool sent = send("UNSUBSCRIBE", one.sharded, name);
    at = channels_.erase(at);
    if (!sent) {
      disconnect();
      return true;
    }
  }
  if (!channels_.empty()) return !more;
  disconnect();
  return true;
}

// ---- waiters -----------------------------------------------------------------------------------

bool node_listener::hears(const place& mine) {
  const lock held{m_};
  return mine.live;
}

std::shared_ptr<pause> node_listener::wait(const std::shared_ptr<place>& mine,
                                           core::time_point until, std::function<void()> done) {
  auto made = reader_.wait(until, [this, mine, done = std::move(done)] {
    {
      const lock held{m_};
      mine->wait = nullptr;
    }
    done();
  });
  const lock held{m_};
  mine->wait = made;
  if (!mine->live || mine->told) made->end();
  return made;
}

void node_listener::ask_begins(place& mine) {
  const lock held{m_};
  mine.told = false;
}

void node_listener::leave(const std::shared_ptr<place>& mine, bool pass_on) {
  bool last = false;
  {
    const lock held{m_};
    const auto at = channels_.find(mine->of);
    if (!mine->live || at == channels_.end()) return;
    mine->live = false;
    std::erase(at->second.places, mine);
    if (pass_on && mine->told) deliver(at->second, false);
    at->second.used = true;
    last = at->second.places.empty();
  }
  if (last) plan_rest();
}

// ---- messages ----------------------------------------------------------------------------------

bool node_listener::send(std::string_view verb, bool sharded, const std::string& name) {
  command text{2};
  text.arg((sharded ? "S" : "") + std::string{verb}).arg(name);
  // Room for a few bytes is missing only if the server does not read any more.
  if (connection_->over().send_some(text.bytes()).bytes != text.bytes().size()) return false;
  unanswered_.push_back(name);
  return true;
}

message_reader::sources node_listener::open_now() {
  const lock held{m_};
  if (!connection_) return {};
  return {connection_};
}

void node_listener::received(const message_source& from) {
  const lock held{m_};
  const auto on = connection_;
  if (on.get() != &from) return;
  while (const auto one = on->next())
    read(*one);
  if (on->is_over()) disconnect();
}

void node_listener::read(const reply_value& what) {
  if (what.type == reply_kind::error) return refused(text_of(what));
  const auto fields = elements_of(what);
  if (fields.size() != 3) return;
  auto kind = text_of(*fields[0]);
  const bool sharded = kind == "smessage" || kind == "ssubscribe" || kind == "sunsubscribe";
  if (sharded) kind.remove_prefix(1);
  const auto at = channels_.find(text_of(*fields[1]));
  if (kind == "message") {
    if (at != channels_.end())
      deliver(at->second, redisson::is_for_all(at->first, text_of(*fields[2])));
    return;
  }
  if (kind != "subscribe" && kind != "unsubscribe") return;
  if (kind == "unsubscribe" && at != channels_.end() && at->second.confirmed) {
    // Nobody asked for it: the channel's slot has another node. Its waiters join again there.
    drop_places(at->second);
    channels_.erase(at);
    return;
  }
  if (!unanswered_.empty()) unanswered_.pop_front();
  if (kind != "subscribe" || at == channels_.end()) return;
  at->second.confirmed = true;
  for (const auto& one : at->second.places) {
    one->end_wait();
  }
}

// Answers come in the order of the commands: this one is to the oldest.
void node_listener::refused(std::string_view why) {
  if (unanswered_.empty()) return;
  const auto at = channels_.find(unanswered_.front());
  unanswered_.pop_front();
  if (at == channels_.end()) return;
  for (const auto& one : at->second.places)
    one->refusal = translate_error(why, node_->calls.node());
  drop_places(at->second);
  channels_.erase(at);
}

void node_listener::deliver(channel& to, bool all) {
  for (const auto& one : to.places) {
    if (std::exchange(one->told, true)) continue;
    one->end_wait();
    if (!all) return;
  }
}

}  // namespace holdfast::stores::redis
