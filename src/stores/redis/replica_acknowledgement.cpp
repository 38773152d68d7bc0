#include "stores/redis/replica_acknowledgement.hpp"

#include <array>
#include <utility>

#include "runtime/clock.hpp"
#include "stores/redis/release_by_id.hpp"
#include "stores/redis/script_values.hpp"
#include "stores/redis/server_error.hpp"

namespace holdfast::stores::redis {

namespace {

// For so long it is tried to give back a grant that too few replicas have.
constexpr core::duration give_back_max = std::chrono::seconds{1};
// How much longer than its own limit the server may take to answer WAIT.
constexpr core::duration answer_slack = std::chrono::milliseconds{500};

class acknowledgement : public std::enable_shared_from_this<acknowledgement> {
 public:
  acknowledgement(redis_lock& of, written_grant what, core::time_point until, caller& by,
                  std::function<void(result<core::grant>)> done)
      : lock_{of},
        on_{of.on()},
        what_{std::move(what)},
        until_{until},
        by_{by},
        done_{std::move(done)} {}

  void begin() {
    if (what_.on) return wait();
    const auto ttl = milliseconds_text(what_.ttl);
    const auto token = to_string(what_.granted.token);
    const auto whose = lock_.renewed_as(what_.id);
    const std::array<std::string_view, 1> key{lock_.renewed_key()};
    const std::array<std::string_view, 3> args{whose, ttl, token};
    const auto sent_at = runtime::now();
    on_.calls.run({lock_.renew_script(), key, args}, until_, {}, by_,
                  [self = shared_from_this(), sent_at](result<reply> answer, const auto& sent) {
                    self->written(std::move(answer), sent, sent_at);
                  });
  }

 private:
  void written(result<reply> answer, const sent_position& sent, core::time_point sent_at) {
    if (!answer) return give_back(std::move(answer.error()));
    const auto fields = elements_of(**answer);
    if (fields.size() < 3) return give_back(strange_answer(on_.calls.node()));
    const auto got = read_renewal(*fields[2], what_.ttl, sent_at);
    if (!got.renewed) {
      return give_back({errc::store_unreachable, "the lock was lost before replicas had it", {}});
    }
    what_.granted.ttl = got.ttl;
    what_.granted.counted_from = got.counted_from;
    what_.on = sent.on;
    wait();
  }

  void wait() {
    const auto& rule = on_.replicas;
    command text{3};
    text.arg("WAIT")
        .arg(static_cast<long long>(rule.count))
        .arg(std::chrono::ceil<std::chrono::milliseconds>(rule.timeout).count());
    // Its own limit, and not the caller's, which may be over: the answer decides.
    const auto until = core::after(runtime::now(), rule.timeout + answer_slack);
    what_.on->call(text.bytes(), until, false, by_,
                   [self = shared_from_this()](auto answer) { self->counted(std::move(answer)); });
  }

  void counted(result<reply> answer) {
    const auto& rule = on_.replicas;
    const auto& node = on_.calls.node();
    if (!answer) return give_back(std::move(answer.error()));
    if ((*answer)->type == reply_kind::error) {
      const auto said = text_of(**answer);
      auto why = translate_error(said, node);
      if (said.starts_with("ERR unknown command")) {
        why.message = node +
                      " has no command WAIT, which replicas= in the store URL needs: leave " +
                      "the option out";
      }
      return give_back(std::move(why));
    }
    const auto have = (*answer)->integer;
    if (have >= static_cast<long long>(rule.count)) return finish(what_.granted);
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(rule.timeout);
    give_back({errc::read_only,
               std::to_string(have) + " of the " + std::to_string(rule.count) +
                   " replicas that replicas= in the store URL asks for had the lock after " +
                   std::to_string(ms.count()) + " ms (" + node +
                   "), so it was given back: look at INFO replication there",
               {}});
  }

  void give_back(failure why) {
    release_by_id(on_, lock_.release_script(what_.id.text(), {}),
                  core::after(runtime::now(), give_back_max), false, by_,
                  [self = shared_from_this(), why = std::move(why)](const auto& said) mutable {
                    // Whatever was not answered, nothing is held once it was given back.
                    if (why.code == errc::outcome_unknown) why.code = errc::store_unreachable;
                    if (!said) why.code = errc::outcome_unknown;
                    self->finish(fail(std::move(why)));
                  });
  }

  void finish(result<core::grant> how) {
    const auto done = std::move(done_);
    done(std::move(how));
  }

  redis_lock& lock_;
  server& on_;
  written_grant what_;
  const core::time_point until_;
  caller& by_;
  std::function<void(result<core::grant>)> done_;
};

}  // namespace

void await_replicas(redis_lock& of, written_grant what, core::time_point until, caller& by,
                    std::function<void(result<core::grant>)> done) {
  std::make_shared<acknowledgement>(of, std::move(what), until, by, std::move(done))->begin();
}

}  // namespace holdfast::stores::redis
