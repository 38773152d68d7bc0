#include "stores/memory/memory_counter.hpp"

#include <mutex>
#include <utility>

#include "runtime/clock.hpp"
#include "runtime/random.hpp"

namespace holdfast::stores::memory {

namespace {

using verb = core::counter_request::verb;

// Nothing gets lost between threads; this is only so that no wait is endless.
constexpr core::duration quiet_max = std::chrono::seconds{1};

struct latch {
  std::shared_ptr<space> in;
  std::string name;
  core::counter_kind kind;
};

class latch_attempt final : public counter_attempt {
 public:
  latch_attempt(latch at, core::counter_request what)
      : at_{std::move(at)},
        what_{std::move(what)},
        id_{runtime::fresh_owner().text()},
        entry_{entry_of(at_)} {}

  void ask(core::time_point, caller&, on_answer done) override { done(ask_now()); }

  void wait(core::time_point until, caller& by, std::function<void()> done) override {
    auto turn = std::make_shared<pause>(until, [this, done = std::move(done)] {
      {
        const std::lock_guard guard{at_.in->m};
        entry_.remove(std::exchange(wait_, nullptr));
      }
      done();
    });
    {
      const std::lock_guard guard{at_.in->m};
      wait_ = turn;
      entry_.add(turn);
      // It may have opened since it was asked.
      auto round = round_;
      const auto seen = entry_.look(at_.kind, round, true, runtime::now());
      const bool changed = !seen || seen->done || seen->run_is_gone;
      if (std::exchange(woken_before_, false) || changed) turn->end();
    }
    by.wait_for(std::move(turn));
  }

  void wake() override {
    const std::lock_guard guard{at_.in->m};
    if (wait_) {
      wait_->end();
    } else {
      woken_before_ = true;
    }
  }

 private:
  static latch_entry& entry_of(const latch& at) {
    const std::lock_guard guard{at.in->m};
    return at.in->latches[at.name];
  }

  [[nodiscard]] result<core::counter_answer> ask_now() {
    const std::lock_guard guard{at_.in->m};
    const auto now = runtime::now();
    entry_.expire(now);
    if (auto ok = no_lock_has_the_name(now); !ok) return fail(std::move(ok.error()));
    if (what_.what == verb::subtract) {
      const auto left = entry_.count(at_.kind, what_.part.empty() ? id_ : "=" + what_.part,
                                     what_.amount, id_, now);
      if (!left) return fail(left.error());
      return core::counter_answer{true, *left, {}, false};
    }
    if (what_.what == verb::start_anew) {
      return core::counter_answer{true, entry_.start_anew(at_.kind, id_, now), {}, false};
    }
    auto seen = entry_.look(at_.kind, round_, what_.what == verb::watch, now);
    if (seen && !seen->done) seen->ask_within = core::ask_within(at_.kind, quiet_max);
    return seen;
  }

  [[nodiscard]] result<void> no_lock_has_the_name(core::time_point now) const {
    const auto found = at_.in->locks.find(at_.name);
    if (found == at_.in->locks.end()) return {};
    found->second.expire(now);
    return found->second.check_unused();
  }

  const latch at_;
  const core::counter_request what_;
  const std::string id_;  // one for all asks, so that they are counted once
  latch_entry& entry_;
  // Protected by the space's mutex.
  std::string round_;
  std::shared_ptr<pause> wait_;
  bool woken_before_ = false;  // the next wait ends at once
};

class memory_latch final : public store_counter {
 public:
  explicit memory_latch(latch is) : is_{std::move(is)} {}

  std::unique_ptr<counter_attempt> begin(core::counter_request what, bool) override {
    return std::make_unique<latch_attempt>(is_, std::move(what));
  }

 private:
  const latch is_;
};

}  // namespace

std::shared_ptr<store_counter> make_latch(std::shared_ptr<space> in, std::string name,
                                          const core::counter_kind& kind) {
  return std::make_shared<memory_latch>(latch{std::move(in), std::move(name), kind});
}

}  // namespace holdfast::stores::memory
