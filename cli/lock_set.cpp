#include "lock_set.hpp"

#include <algorithm>
#include <utility>

#include <holdfast/acquire_all.hpp>

#include "say.hpp"

namespace holdfast::cli {

lock_set::lock_set(client& store, const std::vector<std::string>& names, const lock_choice& choice,
                   const lock_options& how) {
  for (const auto& name : names)
    locks_.emplace_back(store, name, choice, how);
}

std::string lock_set::names_in_quotes() const {
  std::string all;
  for (const auto& one : locks_)
    all += (all.empty() ? "" : ", ") + in_quotes(one.name());
  return all;
}

std::vector<lease> lock_set::try_acquire(std::chrono::nanoseconds wait,
                                         const std::stop_token& stop) {
  std::vector<lease> all;
  if (locks_.size() == 1) {
    if (auto one = locks_.front().try_acquire(wait, stop)) all.push_back(std::move(*one));
    return all;
  }
  std::vector<mutex> wanted;
  for (const auto& one : locks_)
    wanted.push_back(one.as_mutex());
  if (auto got = try_acquire_all(std::move(wanted), wait, stop)) all = std::move(*got);
  return all;
}

const lease* lost_one(const std::vector<lease>& held) noexcept {
  const auto lost =
      std::find_if(held.begin(), held.end(), [](const lease& one) { return !one.held(); });
  return lost == held.end() ? nullptr : &*lost;
}

std::chrono::nanoseconds remaining(const std::vector<lease>& held) noexcept {
  auto least = std::chrono::nanoseconds::max();
  for (const auto& one : held)
    least = std::min(least, one.remaining());
  return least;
}

}  // namespace holdfast::cli
