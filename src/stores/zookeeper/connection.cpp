#include "stores/zookeeper/connection.hpp"

#include <utility>

#include "core/fail.hpp"

namespace holdfast::stores::zookeeper {

connection::connection(handle::config where, core::duration touch_lag,
                       std::shared_ptr<runtime::background> background)
    : where_{std::move(where)}, touch_lag_{touch_lag}, background_{std::move(background)} {}

failure connection::unreachable() const {
  return {errc::store_unreachable,
          "no ZooKeeper server of " + escape(where_.servers) +
              " answers: check that a majority of them runs and can be reached",
          {}};
}

void connection::use(core::duration ttl, on_session done) {
  std::shared_ptr<session> ready;
  {
    const std::lock_guard guard{m_};
    if (!closed_ && current_ && current_->connected()) {
      ready = current_;
    } else if (!closed_) {
      waiting_.push_back(std::move(done));
      // Looking up names blocks, and so does closing what went before.
      if (!current_ && !std::exchange(opening_, true))
        background_->run_always([self = shared_from_this(), ttl] { self->open(ttl); });
      return;
    }
  }
  if (!ready) return done(fail(errc::store_unreachable, "the client is being destroyed"));
  done(std::move(ready));
}

// In the background.
void connection::open(core::duration ttl) {
  const auto next = std::make_shared<session>(touch_lag_);
  std::vector<std::shared_ptr<session>> old;
  {
    const std::lock_guard guard{m_};
    old.swap(retired_);
    current_ = next;
  }
  for (const auto& one : old)
    one->close();
  auto config = where_;
  config.timeout = ttl + touch_lag_;
  const std::weak_ptr<session> weak = next;
  handle::events tell;
  tell.on_state = [self = weak_from_this(), weak](link_state state) {
    const auto alive = self.lock();
    const auto of = weak.lock();
    if (alive && of) alive->on_state(of, state);
  };
  tell.on_node = [weak](const std::string& path) {
    if (const auto of = weak.lock()) of->on_node(path);
  };
  const auto opened = next->open(config, std::move(tell));
  bool too_late = false;
  bool again = false;
  std::vector<on_session> refused;
  {
    const std::lock_guard guard{m_};
    too_late = closed_;
    if (!opened) {
      current_ = nullptr;
      refused.swap(waiting_);
    }
    // It may have ended before it was here.
    again = !closed_ && !current_ && !waiting_.empty();
    opening_ = again;
  }
  if (again) background_->run_always([self = shared_from_this(), ttl] { self->open(ttl); });
  if (!opened) serve(refused, fail(opened.error()));
  if (too_late) next->close();
}

void connection::on_state(const std::shared_ptr<session>& of, link_state state) {
  switch (state) {
    case link_state::suspended:
      return of->on_suspended();
    case link_state::expired:
      return end(of, nullptr);
    case link_state::refused: {
      const failure why{errc::not_authenticated,
                        "ZooKeeper refuses the user name or password in the store URL",
                        {}};
      return end(of, &why);
    }
    case link_state::connected:
      break;
  }
  const bool first = of->id() == 0;
  if (of->connected()) return;  // it is told of the same state more than once
  if (!of->on_connected()) return end(of, nullptr);
  std::vector<on_session> waiting;
  {
    const std::lock_guard guard{m_};
    waiting.swap(waiting_);
  }
  serve(waiting, of);
  if (!first && tell_.reconnected) tell_.reconnected();
}

void connection::end(const std::shared_ptr<session>& of, const failure* why) {
  if (of->ended()) return;
  of->on_ended();
  std::vector<on_session> waiting;
  core::duration ttl{};
  bool again = false;
  {
    const std::lock_guard guard{m_};
    if (current_ == of) current_ = nullptr;
    retired_.push_back(of);
    if (why != nullptr) {
      waiting.swap(waiting_);
    } else if (!closed_ && !waiting_.empty() && !std::exchange(opening_, true)) {
      again = true;
      ttl = of->ttl();
    }
  }
  if (again) background_->run_always([self = shared_from_this(), ttl] { self->open(ttl); });
  if (why != nullptr) serve(waiting, fail(*why));
  if (tell_.ended) tell_.ended(of);
}

void connection::serve(const std::vector<on_session>& waiting,
                       const result<std::shared_ptr<session>>& with) {
  for (const auto& one : waiting)
    one(with);
}

void connection::close() {
  std::vector<std::shared_ptr<session>> all;
  std::vector<on_session> waiting;
  {
    const std::lock_guard guard{m_};
    closed_ = true;
    all.swap(retired_);
    if (current_) all.push_back(std::exchange(current_, nullptr));
    waiting.swap(waiting_);
  }
  for (const auto& one : all)
    one->close();
  serve(waiting, fail(errc::store_unreachable, "the client is being destroyed"));
}

}  // namespace holdfast::stores::zookeeper
