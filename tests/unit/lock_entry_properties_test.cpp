// A lock inside a process against a plain model: random lives of holders and waiters, of each kind.
#include <algorithm>
#include <map>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "stores/memory/lock_entry.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using stores::memory::lock_entry;

core::owner_id id_of(int who) {
  return core::owner_id::from_bits(0, static_cast<std::uint64_t>(who));
}

class life {
 public:
  explicit life(const core::lock_kind& kind) : kind_{kind}, capacity_{core::capacity_of(kind)} {}

  void step() {
    now_ += *rc::gen::element(0ms, 1ms, 200ms, 900ms);
    entry_.expire(now_);
    std::erase_if(holds_, [&](const auto& one) { return one.second.expires <= now_; });
    const int who = *rc::gen::inRange(1, 7);
    const int what = *rc::gen::inRange(0, 10);
    if (what < 5) {
      ask(who);
    } else if (what < 8) {
      leave(who);
    } else if (kind_.what == core::lock_kind::form::shared) {
      downgrade(who);
    } else if (kind_.what == core::lock_kind::form::permits) {
      resize();
    }
    check();
  }

 private:
  struct hold {
    std::uint32_t units;
    core::time_point expires;
  };
  struct place {
    int who;
    std::uint32_t units;
    std::shared_ptr<stores::pause> wait;
  };

  [[nodiscard]] std::uint32_t wanted(int who) const {
    if (!core::is_shared(kind_)) return core::whole;
    if (kind_.what == core::lock_kind::form::shared) return who % 3 == 0 ? core::whole : 1;
    return static_cast<std::uint32_t>(1 + who % 3);
  }
  [[nodiscard]] std::uint64_t used() const {
    std::uint64_t sum = 0;
    for (const auto& [who, one] : holds_)
      sum += one.units;
    return sum;
  }
  [[nodiscard]] auto place_of(int who) {
    return std::find_if(queue_.begin(), queue_.end(),
                        [&](const auto& one) { return one.who == who; });
  }

  void ask(int who) {
    RC_ASSERT(entry_.become(kind_).has_value());
    if (holds_.contains(who)) {
      RC_ASSERT(entry_.held_by(id_of(who)) != nullptr);
      return;
    }
    const auto units = entry_.units_of(wanted(who));
    RC_ASSERT(units.has_value() == (wanted(who) == core::whole || wanted(who) <= capacity_));
    if (!units) return;
    auto taken = used();
    for (auto at = queue_.begin(); at != place_of(who); ++at)
      taken += at->units;
    const bool may = taken + *units <= capacity_;
    RC_ASSERT(entry_.may_have(id_of(who), *units) == may);
    if (may) {
      holder as;
      as.units = *units;
      as.token = fencing_token{++token_};
      const auto until = now_ + *rc::gen::element(100ms, 1000ms);
      entry_.grant({id_of(who), until, as});
      holds_[who] = {*units, until};
      std::erase_if(queue_, [&](const auto& one) { return one.who == who; });
    } else if (place_of(who) == queue_.end()) {
      const auto wait = std::make_shared<stores::pause>(core::never, [] {});
      entry_.join({id_of(who), *units, {}, wait});
      queue_.push_back({who, *units, wait});
    }
  }
  void leave(int who) {
    entry_.leave(id_of(who));
    std::erase_if(queue_, [&](const auto& one) { return one.who == who; });
    RC_ASSERT(entry_.release(id_of(who)) == (holds_.erase(who) > 0));
  }
  void downgrade(int who) {
    auto* mine = entry_.held_by(id_of(who));
    RC_ASSERT((mine != nullptr) == holds_.contains(who));
    if (mine == nullptr) return;
    entry_.downgrade(*mine);
    holds_.at(who).units = 1;
  }
  void resize() {
    if (!entry_.become(kind_)) return;
    capacity_ = *rc::gen::inRange<std::uint32_t>(1, 5);
    entry_.resize(capacity_);
  }

  void check() {
    const auto seen = entry_.status("lock", now_);
    RC_ASSERT(seen.holding == holds_.size());
    RC_ASSERT(seen.units_in_use == used());
    RC_ASSERT(seen.waiting == queue_.size());
    if (kind_.what != core::lock_kind::form::permits) RC_ASSERT(used() <= capacity_);
  }

  const core::lock_kind kind_;
  std::uint32_t capacity_;
  core::time_point now_{1h};
  lock_entry entry_;
  std::map<int, hold> holds_;
  std::vector<place> queue_;
  std::uint64_t token_ = 0;
};

void live(const core::lock_kind& kind) {
  life one{kind};
  const int steps = *rc::gen::inRange(1, 60);
  for (int i = 0; i < steps; ++i)
    one.step();
}

}  // namespace

RC_GTEST_PROP(LockEntry, MutexIsAsTheModelSays, ()) { live({}); }

RC_GTEST_PROP(LockEntry, ReadersAndWritersAreAsTheModelSays, ()) {
  live({core::lock_kind::form::shared});
}

RC_GTEST_PROP(LockEntry, PermitsAreAsTheModelSays, ()) {
  live({core::lock_kind::form::permits, 3});
}

}  // namespace holdfast::test
