// One request on its way through a cluster.
#include <algorithm>
#include <utility>

#include "runtime/clock.hpp"
#include "runtime/random.hpp"
#include "stores/redis/cluster/carrier.hpp"
#include "stores/redis/cluster/route.hpp"
#include "stores/redis/layout.hpp"
#include "stores/redis/server_error.hpp"

namespace holdfast::stores::redis {

class cluster::journey : public std::enable_shared_from_this<journey> {
 public:
  journey(cluster& in, connection_pool server_node::*which, script_call script,
          core::time_point until, sent_position behind, caller& by, request_carrier::on_answer done,
          bool may_repeat)
      : in_{in},
        which_{which},
        slot_{hash_slot(script.key())},
        script_{std::move(script)},
        until_{until},
        behind_{std::move(behind)},
        by_{by},
        done_{std::move(done)},
        may_repeat_{may_repeat},
        route_{until, runtime::random_bits()} {}

  void start() {
    in_.used();
    at_ = in_.node_of_slot(slot_);
    if (!at_) return look_anew({});
    send(false);
  }

 private:
  // What was sent before, to a node that had the slot until now, is answered first.
  void send(bool asking) {
    const auto behind = std::exchange(behind_, {});
    auto& there = *at_.*which_;
    if (behind.answered() || there.carries(*behind.on)) return send_behind(behind, asking);
    const auto soon = core::after(runtime::now(), channel::posted_reply_max);
    behind.on->await(behind.position, std::min(until_, soon), by_,
                     [self = shared_from_this(), asking] { self->send_behind({}, asking); });
  }

  void send_behind(const sent_position& behind, bool asking) {
    script_.ask_first(asking);
    auto& there = *at_.*which_;
    auto told = [self = shared_from_this()](result<reply> answer, const sent_position& sent) {
      self->answered(std::move(answer), sent);
    };
    if (!may_repeat_) return there.run(script_, until_, behind, by_, std::move(told));
    there.look(script_, until_, behind, by_,
               [told = std::move(told)](auto answer) { told(std::move(answer), {}); });
  }

  void answered(result<reply> answer, const sent_position& sent) {
    if (!answer) return failed(std::move(answer.error()), sent);
    if ((*answer)->type != reply_kind::error) return finish(std::move(answer), sent);
    const auto said = text_of(**answer);
    const auto elsewhere = read_redirection(said, at_->host);
    auto why = translate_error(said, (*at_.*which_).node());
    if (!elsewhere) return finish(fail(std::move(why)), sent);
    if (elsewhere->what == redirection::kind::moved) in_.moved(elsewhere->slot, elsewhere->to);
    if (elsewhere->what == redirection::kind::not_now) in_.look_soon();
    go(route_.on_redirection(*elsewhere, runtime::now()), std::move(why), sent);
  }

  void failed(failure why, const sent_position& sent) {
    const bool unreachable = why.code == errc::store_unreachable || why.code == errc::stopped;
    const bool unknown = why.code == errc::outcome_unknown;
    if (unreachable || unknown) in_.look_soon();
    // A node that is none any more was closed; a client that is gives up when it looks.
    if (unreachable || (unknown && may_repeat_)) {
      return go(route_.on_unreachable(runtime::now()), std::move(why), sent);
    }
    finish(fail(std::move(why)), sent);
  }

  void go(const route::step& next, failure why, const sent_position& sent) {
    switch (next.what) {
      case route::step::verb::send:
      case route::step::verb::send_asking:
        at_ = in_.node_at(next.to);
        if (!at_) return finish(fail(errc::stopped, "the client is closed"), sent);
        return send(next.what == route::step::verb::send_asking);
      case route::step::verb::pause:
        return by_.wait_for(
            std::make_shared<pause>(next.until, [self = shared_from_this()] { self->start(); }));
      case route::step::verb::look_anew:
        return look_anew(std::move(why));
      case route::step::verb::give_up:
        break;
    }
    finish(fail(std::move(why)), sent);
  }

  // `why`: what was wrong with the node that is known; empty: none is.
  void look_anew(failure why) {
    in_.look_anew(until_, by_,
                  [self = shared_from_this(), why = std::move(why)](result<void> looked) mutable {
                    self->looked(std::move(looked), std::move(why));
                  });
  }

  void looked(result<void> how, failure why) {
    const auto before = std::exchange(at_, in_.node_of_slot(slot_));
    if (at_ && at_ != before) return send(false);
    if (before) return finish(fail(std::move(why)), {});
    if (!how) return finish(fail(std::move(how.error())), {});
    finish(fail(errc::store_unreachable,
                in_.name_ + " has no node for hash slot " + std::to_string(slot_)),
           {});
  }

  void finish(result<reply> answer, const sent_position& sent) {
    const auto done = std::move(done_);
    done(std::move(answer), sent);
  }

  cluster& in_;
  connection_pool server_node::*const which_;
  const unsigned slot_;
  script_call script_;
  const core::time_point until_;
  sent_position behind_;
  caller& by_;
  request_carrier::on_answer done_;
  const bool may_repeat_;
  route route_;
  std::shared_ptr<server_node> at_;
};

void cluster::carrier::run(script_call script, core::time_point until, const sent_position& behind,
                           caller& by, on_answer done) {
  std::make_shared<journey>(in_, which_, std::move(script), until, behind, by, std::move(done),
                            false)
      ->start();
}

void cluster::carrier::look(script_call script, core::time_point until, const sent_position& behind,
                            caller& by, on_looked done) {
  std::make_shared<journey>(
      in_, which_, std::move(script), until, behind, by,
      [done = std::move(done)](auto answer, const auto&) { done(std::move(answer)); }, true)
      ->start();
}

// Whoever posts tries again by run() what was not done.
sent_position cluster::carrier::post(const script_call& script, const sent_position& behind,
                                     channel::on_reply done, std::string_view before) {
  in_.used();
  const auto at = in_.node_of(script.key());
  if (!at) return {};
  auto& there = *at.*which_;
  const bool follows = behind.on && there.carries(*behind.on);
  auto told = [&in = in_, host = at->host, done = std::move(done)](result<reply> answer) {
    const bool refused = answer && (*answer)->type == reply_kind::error;
    const auto elsewhere = refused ? read_redirection(text_of(**answer), host) : std::nullopt;
    if (elsewhere && elsewhere->what == redirection::kind::moved) {
      in.moved(elsewhere->slot, elsewhere->to);
    }
    if (done) done(std::move(answer));
  };
  return there.post(script, follows ? behind : sent_position{}, std::move(told), before);
}

}  // namespace holdfast::stores::redis
