#include <holdfast/latch.hpp>

#include "client/counting.hpp"
#include "client/value_or_throw.hpp"

namespace holdfast {

namespace {

using detail::value_or_throw;
using verb = core::counter_request::verb;

result<std::uint32_t> as_count(const result<core::counter_answer>& said) {
  if (!said) return detail::fail(said.error());
  return static_cast<std::uint32_t>(said->value);
}

}  // namespace

std::uint32_t latch::count_down(std::string_view part) {
  return value_or_throw(count_down_result(part));
}
result<std::uint32_t> latch::count_down_result(std::string_view part) {
  if (auto ok = core::check_part(part); !ok) return detail::fail(std::move(ok.error()));
  return as_count(detail::request(handle_.state(), {verb::subtract, 1, std::string{part}}));
}

std::uint32_t latch::count_down(std::uint32_t n) { return value_or_throw(count_down_result(n)); }
result<std::uint32_t> latch::count_down_result(std::uint32_t n) {
  if (n == 0)
    return detail::fail(errc::invalid_argument, "a latch is counted down by one at least");
  return as_count(detail::request(handle_.state(), {verb::subtract, n, {}}));
}

std::uint32_t latch::value() {
  return value_or_throw(as_count(detail::request(handle_.state(), {verb::look, 0, {}})));
}

void latch::wait(const std::stop_token& stop) { value_or_throw(wait_result(stop)); }
bool latch::wait(any_nanoseconds wait, const std::stop_token& stop) {
  return value_or_throw(detail::wait_for(handle_.state(), {verb::watch, 0, {}}, wait, stop));
}
result<void> latch::wait_result(const std::stop_token& stop) {
  return detail::wait_out(handle_.state(), {verb::watch, 0, {}}, {}, stop);
}
result<void> latch::wait_result(any_nanoseconds wait, const std::stop_token& stop) {
  return detail::wait_out(handle_.state(), {verb::watch, 0, {}}, wait, stop);
}

void latch::reset() { value_or_throw(reset_result()); }
result<void> latch::reset_result() {
  auto said = detail::request(handle_.state(), {verb::start_anew, 0, {}});
  if (!said) return detail::fail(std::move(said.error()));
  return {};
}

}  // namespace holdfast
