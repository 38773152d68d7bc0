#include "sim/judge.hpp"

#include <algorithm>

namespace holdfast::sim {

void judge::broken(std::string promise, std::string what) {
  if (found_) return;
  if (trace_.wanted()) trace_.line("JUDGE", promise + ": " + what);
  found_ = violation{std::move(promise), std::move(what)};
}

// That there is room beside those who hold.
void judge::check_room(std::size_t lock, const core::owner_id& id, std::uint32_t units,
                       const std::string& how) {
  if (exclusion_rests()) return;
  for (const auto* other : leases_) {
    if (other->lock != lock || other->id() == id || !other->held()) continue;
    units += other->units;
    if (units <= capacity_) continue;
    broken("exclusion", brief(id.text()) + " " + how + " lock" + std::to_string(lock) + " while " +
                            brief(other->id().text()) + " of " + other->holder->name + " holds it");
  }
}

void judge::granted(const lease& fresh, std::uint64_t above, bool at_store) {
  ++acquisitions_;
  const auto id = brief(fresh.id().text());
  if (!fresh.held()) broken("grant expired on arrival", id + " was given a lease that is over");
  if (!at_store && !exclusion_rests()) {
    broken("held, but not at the store", id + " was granted what the store does not have for it");
  }
  if (held_by(fresh.id()) != nullptr) broken("exclusion", id + " was handed on while it is held");
  check_room(fresh.lock, fresh.id(), fresh.units, "holds");

  auto& history = tokens_[fresh.lock];
  const auto token = fresh.token();
  const bool is_new = history.granted.insert(token).second;
  // What a process hands on to itself has the store's word from before: where the store has granted
  // the lock since, to another, its tokens are below that one's.
  const bool handed_on = !granted_to_.insert(fresh.id()).second;
  if (!tokens_void_) {
    if (token <= above && !(handed_on && exclusion_rests())) {
      broken("token order", id + " began after token " + std::to_string(above) +
                                " had been returned, and got " + std::to_string(token));
    }
    if (!is_new) broken("token granted twice", id + " got " + std::to_string(token));
  }
  if (token > history.returned) {
    history.returned = token;
    history.returned_at = time_.now();
  }
  leases_.push_back(&fresh);
}

void judge::ended(const lease& which) { std::erase(leases_, &which); }

const lease* judge::held_by(const core::owner_id& id) const {
  const auto found = std::find_if(leases_.begin(), leases_.end(),
                                  [&](const auto* one) { return one->id() == id && one->held(); });
  return found == leases_.end() ? nullptr : *found;
}

void judge::renewed(const core::owner_id& id, instant sent) {
  const auto* which = held_by(id);
  if (which == nullptr) return;
  const auto& history = tokens_[which->lock];
  const auto token = which->token();
  if (tokens_void_ || history.returned <= token || history.returned_at >= sent) return;
  if (lenient_ && (lossy_.size() > 1 || !is_held(which->lock, history.returned))) return;
  broken("interrupted, and renewed", brief(id.text()) + " with token " + std::to_string(token) +
                                         " was renewed after " + std::to_string(history.returned) +
                                         " had been granted");
}

bool judge::is_held(std::size_t lock, std::uint64_t token) const {
  return std::any_of(leases_.begin(), leases_.end(), [&](const auto* one) {
    return one->lock == lock && one->token() == token && one->held();
  });
}

void judge::refused(const core::owner_id& id, loss why) {
  if (exclusion_rests() || held_by(id) == nullptr) return;
  broken("lost while held",
         brief(id.text()) + " was told " + std::string{to_string(why)} + " before its deadline");
}

void judge::store_gave(std::size_t lock, const core::owner_id& id, std::uint64_t last_token,
                       std::uint32_t units) {
  highest_ = std::max(highest_, last_token);
  check_room(lock, id, units, "is given");
  if (!data_lost_ && is_over(id)) {
    broken("ghost", "the store gave lock" + std::to_string(lock) + " to " + brief(id.text()) +
                        ", which was over for sure");
  }
}

void judge::over(const core::owner_id& id) { over_.insert(id); }

std::optional<fencing_token> judge::token_of(const core::owner_id& id) const {
  for (const auto* one : leases_) {
    if (one->id() == id) return one->state->token;
  }
  return std::nullopt;
}

}  // namespace holdfast::sim
