#include "core/release_machine.hpp"

#include <algorithm>

#include "core/passing.hpp"

namespace holdfast::core {

namespace {
constexpr backoff::bounds retry_pause{std::chrono::milliseconds{2}, std::chrono::milliseconds{250}};
}

release_machine::release_machine(time_point give_up, std::uint64_t seed) noexcept
    : give_up_{give_up}, pause_{retry_pause, seed} {}

time_point release_machine::patience(time_point now) const noexcept {
  constexpr duration least = std::chrono::milliseconds{20};
  return std::min(give_up_, after(now, std::max(least, (give_up_ - now) * 3 / 4)));
}

removal release_machine::on_answer(removal said) const noexcept {
  return unanswered_ && said != removal::released ? removal::unsure : said;
}

std::optional<time_point> release_machine::on_failure(errc code, time_point now) noexcept {
  if (code == errc::outcome_unknown) unanswered_ = true;
  if (!is_passing_for_release(code)) return std::nullopt;
  const auto again = after(now, pause_.next());
  if (again >= give_up_) return std::nullopt;
  return again;
}

}  // namespace holdfast::core
