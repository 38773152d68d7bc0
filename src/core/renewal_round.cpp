#include "core/renewal_round.hpp"

#include <algorithm>

namespace holdfast::core {

void renewal_round::on_extended(std::size_t node, fencing_token token) {
  places_.at(node) = {state::extended, token};
}

void renewal_round::on_answer(std::size_t node, said what) {
  switch (what) {
    case said::gone:
      places_.at(node).is = state::gone;
      break;
    case said::taken:
      places_.at(node).is = state::taken;
      break;
    case said::failed:
      places_.at(node).is = state::failed;
      break;
  }
}

void renewal_round::on_silence(std::size_t node) {
  if (places_.at(node).is == state::open) places_[node].is = state::silent;
}

fencing_token renewal_round::lease_token() const noexcept {
  if (token_ != fencing_token{}) return token_;
  fencing_token usual{};
  std::ptrdiff_t most = 0;
  for (const auto& one : places_) {
    if (one.is != state::extended) continue;
    const auto alike = std::count_if(places_.begin(), places_.end(), [&](const place& p) {
      return p.is == state::extended && p.token == one.token;
    });
    if (alike < most || (alike == most && usual <= one.token)) continue;
    most = alike;
    usual = one.token;
  }
  return usual;
}

renewal_round::state renewal_round::judged(const place& one, fencing_token token) const noexcept {
  const bool counts = token_ != fencing_token{} ? one.token <= token : one.token == token;
  return one.is == state::extended && !counts ? state::gone : one.is;
}

std::size_t renewal_round::count(state which) const noexcept {
  const auto token = lease_token();
  return static_cast<std::size_t>(
      std::count_if(places_.begin(), places_.end(),
                    [&](const place& one) { return judged(one, token) == which; }));
}

renewal_round::outcome renewal_round::result() const noexcept {
  const auto majority = majority_of(places_.size());
  const auto lost = count(state::gone) + count(state::taken);
  if (count(state::extended) >= majority) return outcome::renewed;
  if (places_.size() - lost < majority) return outcome::lost;
  return count(state::extended) + count(state::open) < majority ? outcome::failed
                                                                : outcome::undecided;
}

loss renewal_round::why() const noexcept {
  if (result() != outcome::lost) return loss::none;
  return count(state::taken) > count(state::gone) ? loss::taken : loss::deleted;
}

std::optional<std::size_t> renewal_round::best() const noexcept {
  const auto token = lease_token();
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (judged(places_[i], token) != state::extended) continue;
    if (!found || places_[i].token > places_[*found].token) found = i;
  }
  return found;
}

std::vector<std::size_t> renewal_round::to_repair() const {
  std::vector<std::size_t> all;
  if (result() != outcome::renewed) return all;
  const auto token = lease_token();
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (judged(places_[i], token) == state::gone) all.push_back(i);
  }
  return all;
}

}  // namespace holdfast::core
