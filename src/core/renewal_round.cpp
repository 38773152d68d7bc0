#include "core/renewal_round.hpp"

#include <algorithm>

namespace holdfast::core {

void renewal_round::on_answer(std::size_t node, said what) {
  switch (what) {
    case said::extended:
      places_.at(node) = place::extended;
      break;
    case said::gone:
      places_.at(node) = place::gone;
      break;
    case said::taken:
      places_.at(node) = place::taken;
      break;
    case said::failed:
      places_.at(node) = place::failed;
      break;
  }
}

void renewal_round::on_silence(std::size_t node) {
  if (places_.at(node) == place::open) places_[node] = place::silent;
}

std::size_t renewal_round::count(place which) const noexcept {
  return static_cast<std::size_t>(std::count(places_.begin(), places_.end(), which));
}

renewal_round::outcome renewal_round::result() const noexcept {
  const auto majority = majority_of(places_.size());
  const auto lost = count(place::gone) + count(place::taken);
  if (count(place::extended) >= majority) return outcome::renewed;
  if (places_.size() - lost < majority) return outcome::lost;
  return count(place::extended) + count(place::open) < majority ? outcome::failed
                                                                : outcome::undecided;
}

loss renewal_round::why() const noexcept {
  if (result() != outcome::lost) return loss::none;
  return count(place::taken) > count(place::gone) ? loss::taken : loss::deleted;
}

std::vector<std::size_t> renewal_round::to_repair() const {
  std::vector<std::size_t> all;
  if (result() != outcome::renewed) return all;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (places_[i] == place::gone) all.push_back(i);
  }
  return all;
}

}  // namespace holdfast::core
