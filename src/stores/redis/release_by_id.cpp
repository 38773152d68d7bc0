#include "stores/redis/release_by_id.hpp"

#include <utility>

#include "core/release_machine.hpp"
#include "runtime/clock.hpp"
#include "runtime/random.hpp"
#include "stores/pause.hpp"
#include "stores/redis/script_replies.hpp"
#include "stores/redis/server.hpp"

namespace holdfast::stores::redis {

namespace {

class releasing : public std::enable_shared_from_this<releasing> {
 public:
  releasing(server& on, script_call script, core::time_point until, bool unanswered_before,
            caller& by, attempt::on_removal done)
      : on_{on},
        script_{std::move(script)},
        by_{by},
        done_{std::move(done)},
        machine_{until, runtime::random_bits()} {
    if (unanswered_before) static_cast<void>(machine_.on_failure(errc::outcome_unknown, until));
  }

  void ask() {
    on_.calls.run(script_, machine_.patience(runtime::now()), {}, by_,
                  [self = shared_from_this()](auto answer, const auto&) {
                    if (!answer) return self->failed(std::move(answer.error()));
                    self->answered(release_reply{(*answer)->integer});
                  });
  }

 private:
  void answered(release_reply said) {
    was_ours_ = was_ours_ || said > release_reply::gone;
    if (is_unfinished(said) && ++calls_ < hand_over_calls_max) return ask();
    const bool nobodys = said == release_reply::gone || said == release_reply::gone_unfinished;
    finish(machine_.on_answer(was_ours_ ? removal::released
                              : nobodys ? removal::gone
                                        : removal::taken));
  }

  void failed(failure why) {
    const auto again = machine_.on_failure(why.code, runtime::now());
    if (!again) {
      if (machine_.went_unanswered()) why.code = errc::outcome_unknown;
      return finish(fail(std::move(why)));
    }
    by_.wait_for(std::make_shared<pause>(*again, [self = shared_from_this()] { self->ask(); }));
  }

  void finish(result<removal> how) {
    const auto done = std::move(done_);
    done(std::move(how));
  }

  server& on_;
  const script_call script_;
  caller& by_;
  attempt::on_removal done_;
  core::release_machine machine_;
  bool was_ours_ = false;
  int calls_ = 0;
};

}  // namespace

void release_by_id(server& on, script_call script, core::time_point until, bool unanswered_before,
                   caller& by, attempt::on_removal done) {
  std::make_shared<releasing>(on, std::move(script), until, unanswered_before, by, std::move(done))
      ->ask();
}

}  // namespace holdfast::stores::redis
