// What users hold, against plain models: a mutex that its owner takes again, and several locks
// together. Random lives on the store inside the process, so that nothing but the decisions is
// seen.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <holdfast/holdfast.hpp>

namespace holdfast::test {

namespace {

// A store of its own for each life.
std::string fresh_store() {
  static int made = 0;
  return "memory:family properties " + std::to_string(++made);
}

class recursive_life {
 public:
  void step() {
    const auto who = *rc::gen::inRange<std::size_t>(0, owners_.size());
    switch (*rc::gen::inRange(0, 5)) {
      case 0:
      case 1:
        take(who);
        break;
      case 2:
      case 3:
        if (owner_ == who) leave();
        break;
      default:
        RC_ASSERT(other_.mutex("orders").try_acquire().has_value() == !owner_.has_value());
    }
    check();
  }

 private:
  recursive_mutex of(std::size_t who) { return orders_.owned_by(owners_[who]); }

  void take(std::size_t who) {
    const bool free = !owner_ || *owner_ == who;
    RC_ASSERT(of(who).try_lock() == free);
    if (!free) return;
    owner_ = who;
    if (++depth_ > 1) return;
    const auto token = of(who).current()->token();
    RC_ASSERT(token > last_);
    last_ = token;
  }

  void leave() {
    of(*owner_).unlock();
    if (--depth_ == 0) owner_.reset();
  }

  void check() {
    for (std::size_t who = 0; who < owners_.size(); ++who) {
      const bool holds = owner_ == who;
      RC_ASSERT(of(who).depth() == (holds ? depth_ : 0));
      RC_ASSERT((of(who).current() != nullptr) == holds);
      if (holds) RC_ASSERT(of(who).current()->token() == last_);
    }
  }

  const std::string store_ = fresh_store();
  client ours_{store_};
  client other_{store_};
  recursive_mutex orders_ = ours_.recursive_mutex("orders");
  const std::array<lock_owner, 3> owners_{};
  std::optional<std::size_t> owner_;
  std::size_t depth_ = 0;
  fencing_token last_{};
};

class together_life {
 public:
  void step() {
    if (!held_.empty() && *rc::gen::inRange(0, 3) == 0) {
      give_back(*rc::gen::inRange<std::size_t>(0, held_.size()));
    } else {
      take(*rc::gen::inRange<std::size_t>(0, clients_.size()));
    }
    for (const auto& name : names) {
      const auto holder = clients_.front().status(name).holder;
      RC_ASSERT(holder.has_value() == holders_.contains(name));
      if (holder) RC_ASSERT(holder->token == holders_.at(name));
    }
  }

 private:
  static constexpr std::array<const char*, 4> names{"a", "b", "c", "d"};

  // Some of the names, in any order.
  [[nodiscard]] static std::vector<std::string> wanted() {
    std::vector<std::string> some;
    for (const char* name : names) {
      if (*rc::gen::arbitrary<bool>()) some.insert(some.begin() + index_in(some), name);
    }
    if (some.empty()) some.emplace_back(names.front());
    return some;
  }
  [[nodiscard]] static std::ptrdiff_t index_in(const std::vector<std::string>& some) {
    return *rc::gen::inRange<std::ptrdiff_t>(0, static_cast<std::ptrdiff_t>(some.size()) + 1);
  }

  void take(std::size_t who) {
    const auto some = wanted();
    std::vector<mutex> locks;
    for (const auto& name : some)
      locks.push_back(clients_[who].mutex(name));
    const bool free = std::none_of(some.begin(), some.end(),
                                   [this](const auto& name) { return holders_.contains(name); });
    auto got = try_acquire_all(std::move(locks));
    RC_ASSERT(got.has_value() == free);
    if (!got) return;
    RC_ASSERT(got->size() == some.size());
    for (std::size_t i = 0; i < some.size(); ++i) {
      const auto& one = (*got)[i];
      RC_ASSERT(one.name() == some[i]);
      RC_ASSERT(one.token() > last_[some[i]]);
      last_[some[i]] = holders_[some[i]] = one.token();
    }
    held_.push_back(std::move(*got));
  }

  void give_back(std::size_t which) {
    for (auto& one : held_[which]) {
      RC_ASSERT(one.release().has_value());
      holders_.erase(one.name());
    }
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  const std::string store_ = fresh_store();
  std::vector<client> clients_ = [this] {
    std::vector<client> some;
    for (int i = 0; i < 3; ++i)
      some.emplace_back(store_);
    return some;
  }();
  std::vector<std::vector<lease>> held_;
  std::map<std::string, fencing_token> holders_;  // of what is held
  std::map<std::string, fencing_token> last_;
};

template <class Life>
void live() {
  Life life;
  const int steps = *rc::gen::inRange(1, 40);
  for (int i = 0; i < steps; ++i)
    life.step();
}

}  // namespace

RC_GTEST_PROP(Family, RecursiveMutexIsAsTheModelSays, ()) { live<recursive_life>(); }

RC_GTEST_PROP(Family, LocksTakenTogetherAreAsTheModelSays, ()) { live<together_life>(); }

}  // namespace holdfast::test
