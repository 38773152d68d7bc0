#include "sim/judge.hpp"

#include <algorithm>

namespace holdfast::sim {

void judge::broken(std::string promise, std::string what) {
  if (found_) return;
  if (trace_.wanted()) trace_.line("JUDGE", promise + ": " + what);
  found_ = violation{std::move(promise), std::move(what)};
}

void judge::check_alone(std::size_t lock, const core::owner_id& id, const std::string& how) {
  if (exclusion_rests()) return;
  for (const auto* other : leases_) {
    if (other->lock != lock || other->id == id || !other->held()) continue;
    broken("exclusion", brief(id.text()) + " " + how + " lock" + std::to_string(lock) + " while " +
                            brief(other->id.text()) + " of " + other->holder->name + " holds it");
  }
}

void judge::granted(const lease& fresh, std::uint64_t above, bool at_store) {
  ++acquisitions_;
  const auto id = brief(fresh.id.text());
  if (!fresh.held()) broken("grant expired on arrival", id + " was given a lease that is over");
  if (!at_store && !exclusion_rests()) {
    broken("held, but not at the store", id + " was granted what the store does not have for it");
  }
  check_alone(fresh.lock, fresh.id, "holds");

  auto& history = tokens_[fresh.lock];
  const auto first = fresh.granted.token.value();
  const auto last = first + fresh.granted.block - 1;
  if (!tokens_void_) {
    if (first <= above) {
      broken("token order", id + " began after token " + std::to_string(above) +
                                " had been returned, and got " + std::to_string(first));
    }
    const auto next = history.blocks.upper_bound(last);
    if (next != history.blocks.begin() && std::prev(next)->second >= first) {
      broken("token granted twice", id + " got " + std::to_string(first));
    }
  }
  history.blocks.emplace(first, last);
  if (last > history.returned) {
    history.returned = last;
    history.returned_at = time_.now();
  }
  leases_.push_back(&fresh);
}

void judge::ended(const lease& which) { std::erase(leases_, &which); }

void judge::renewed(const lease& which, instant sent) {
  const auto& history = tokens_[which.lock];
  const auto token = which.granted.token.value();
  if (tokens_void_ || history.returned <= token || history.returned_at >= sent) return;
  if (lenient_ && (lossy_.size() > 1 || !is_held(which.lock, history.returned))) return;
  broken("interrupted, and renewed", brief(which.id.text()) + " with token " +
                                         std::to_string(token) + " was renewed after " +
                                         std::to_string(history.returned) + " had been granted");
}

bool judge::is_held(std::size_t lock, std::uint64_t last_token) const {
  return std::any_of(leases_.begin(), leases_.end(), [&](const auto* one) {
    const auto& got = one->granted;
    return one->lock == lock && got.token.value() + got.block - 1 == last_token && one->held();
  });
}

void judge::refused(const lease& which, loss why) {
  if (exclusion_rests()) return;
  broken("lost while held", brief(which.id.text()) + " was told " + std::string{to_string(why)} +
                                " before its deadline");
}

void judge::store_gave(std::size_t lock, const core::owner_id& id, std::uint64_t last_token) {
  highest_ = std::max(highest_, last_token);
  check_alone(lock, id, "is given");
  if (!data_lost_ && is_over(id)) {
    broken("ghost", "the store gave lock" + std::to_string(lock) + " to " + brief(id.text()) +
                        ", which was over for sure");
  }
}

void judge::over(const core::owner_id& id) { over_.insert(id); }

std::optional<fencing_token> judge::token_of(const core::owner_id& id) const {
  for (const auto* one : leases_) {
    if (one->id == id) return one->granted.token;
  }
  return std::nullopt;
}

bool judge::anybody_holds() const {
  return std::any_of(leases_.begin(), leases_.end(), [](const auto* one) { return one->held(); });
}

}  // namespace holdfast::sim
