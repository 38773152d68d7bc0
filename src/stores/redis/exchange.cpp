// One request on its way through the pool: it finds a connection or makes one, and is sent again
// where that is safe.
#include <algorithm>
#include <utility>

#include "runtime/clock.hpp"
#include "stores/redis/connection_pool.hpp"
#include "stores/redis/server_error.hpp"

namespace holdfast::stores::redis {

namespace {

// A request for which its connection had no room waits for another to be over, and for so long at
// most: what is sent without a caller makes room without a word.
constexpr core::duration room_pause = std::chrono::milliseconds{500};

}  // namespace

class connection_pool::exchange : public std::enable_shared_from_this<exchange> {
 public:
  exchange(connection_pool& in, script_call script, core::time_point until, sent_position behind,
           caller& by, on_answer done, bool may_repeat)
      : pool_{in},
        script_{std::move(script)},
        until_{until},
        by_{by},
        may_repeat_{may_repeat},
        done_{std::move(done)},
        behind_{std::move(behind)} {}

  void enter();

 private:
  void send(std::shared_ptr<channel> on, bool alone);
  void answered(result<reply> answer);
  void again(sent_position behind, std::string source);
  void finish(result<reply> answer);

  connection_pool& pool_;
  const script_call script_;
  const core::time_point until_;
  caller& by_;
  bool may_repeat_;
  on_answer done_;

  sent_position behind_;
  sent_position sent_;
  std::string source_;  // empty: the script is sent by its hash
  std::size_t tries_ = 0;
};

void connection_pool::exchange::enter() {
  sent_ = {};
  std::unique_lock held{pool_.m_};
  if (pool_.closed_) {
    held.unlock();
    return finish(fail(errc::stopped, "the client is closed"));
  }
  if (auto on = pool_.pick(behind_)) {
    ++on->users;
    const bool alone = ++pool_.callers_ == 1;
    held.unlock();
    return send(std::move(on), alone);
  }
  if (pool_.connecting_ < pool_.limits_.connections) {
    ++pool_.connecting_;
    held.unlock();
    return pool_.connect(until_, [self = shared_from_this()](auto fresh) {
      if (!fresh) return self->finish(fail(std::move(fresh.error())));
      self->send(std::move(*fresh), false);
    });
  }
  if (runtime::now() >= until_) {
    held.unlock();
    return finish(fail(errc::store_unreachable, "no connection to " + pool_.node() + " in time"));
  }
  // Others are connecting.
  const auto turn = std::make_shared<pause>(until_, [self = shared_from_this()] { self->enter(); });
  pool_.until_connected_.push_back(turn);
  held.unlock();
  by_.wait_for(turn);
}

void connection_pool::exchange::send(std::shared_ptr<channel> on, bool alone) {
  sent_.on = std::move(on);
  static const auto asking = command{1}.arg("ASKING").bytes();
  sent_.on->call(
      source_.empty() ? script_.by_hash() : source_, until_, alone, by_,
      [self = shared_from_this()](auto answer) { self->answered(std::move(answer)); },
      &sent_.position, script_.asks_first() ? std::string_view{asking} : std::string_view{});
}

void connection_pool::exchange::answered(result<reply> answer) {
  pool_.leave(*sent_.on);
  const bool had_room = answer || answer.error().code != errc::overloaded;
  if (had_room) pool_.room_was_made();
  const auto in_time = [&] { return runtime::now() < until_; };
  if (!answer) {
    // A connection that turns out to be closed before anything was sent is no news to the caller:
    // there may be others, or a new one can be made. Bounded by how many there can be.
    const bool was_closed = answer.error().code == errc::store_unreachable && sent_.on->broken();
    if (was_closed && tries_++ <= pool_.limits_.connections && in_time()) return enter();
    if (!had_room && in_time()) {
      const auto later = std::min(until_, core::after(runtime::now(), room_pause));
      const auto turn =
          std::make_shared<pause>(later, [self = shared_from_this()] { self->enter(); });
      pool_.wait_for_room(turn);
      return by_.wait_for(turn);
    }
  } else if ((*answer)->type == reply_kind::error) {
    const auto said = text_of(**answer);
    if (script_.which() != nullptr && source_.empty() && is_noscript(said)) {
      pool_.posted_before_ = nullptr;
      return again(sent_, script_.by_source());
    }
    if (!pool_.limits_.in_cluster || !says_elsewhere(said)) answer = fail(pool_.refused(said));
  }
  const bool unknown = !answer && answer.error().code == errc::outcome_unknown;
  if (unknown && std::exchange(may_repeat_, false) && in_time()) return again({}, {});
  finish(std::move(answer));
}

void connection_pool::exchange::again(sent_position behind, std::string source) {
  behind_ = std::move(behind);
  source_ = std::move(source);
  tries_ = 0;
  enter();
}

void connection_pool::exchange::finish(result<reply> answer) {
  const auto done = std::move(done_);
  done(std::move(answer), sent_);
}

void connection_pool::run(script_call script, core::time_point until, const sent_position& behind,
                          caller& by, on_answer done) {
  std::make_shared<exchange>(*this, std::move(script), until, behind, by, std::move(done), false)
      ->enter();
}

void connection_pool::look(script_call script, core::time_point until, const sent_position& behind,
                           caller& by, on_looked done) {
  std::make_shared<exchange>(
      *this, std::move(script), until, behind, by,
      [done = std::move(done)](auto answer, const auto&) { done(std::move(answer)); }, true)
      ->enter();
}

}  // namespace holdfast::stores::redis
