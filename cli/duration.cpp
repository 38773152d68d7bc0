#include "duration.hpp"

#include <charconv>
#include <cstdint>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <holdfast/options.hpp>
#include <holdfast/status.hpp>

#include "say.hpp"

namespace holdfast::cli {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr hours duration_max{24 * 365};

[[noreturn]] void reject(const std::string& option, std::string_view text, std::string_view why) {
  throw CLI::ValidationError{option, fmt::format("{} {}", in_quotes(without_urls(text)), why)};
}

}  // namespace

milliseconds parse_duration(const std::string& option, std::string_view text) {
  constexpr std::string_view shape = "is not a duration: write 500ms, 30s, 5m or 2h";
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, number);
  if (problem == std::errc::invalid_argument || number < 0) reject(option, text, shape);

  const std::string_view unit{rest, static_cast<std::size_t>(end - rest)};
  milliseconds one{};
  if (unit == "ms") {
    one = milliseconds{1};
  } else if (unit.empty() || unit == "s") {
    one = seconds{1};
  } else if (unit == "m") {
    one = minutes{1};
  } else if (unit == "h") {
    one = hours{1};
  } else {
    reject(option, text, shape);
  }
  if (problem == std::errc::result_out_of_range || number > milliseconds{duration_max} / one) {
    reject(option, text, "is longer than a year");
  }
  return number * one;
}

std::chrono::nanoseconds parse_wait(const std::string& option, std::string_view text) {
  if (text == "forever") return forever;
  return parse_duration(option, text);
}

std::string show_duration(std::chrono::nanoseconds duration) {
  const auto ms = std::chrono::duration_cast<milliseconds>(duration);
  if (ms < seconds{1}) return fmt::format("{}ms", ms.count());
  const auto whole = std::chrono::duration_cast<seconds>(ms);
  if (whole < minutes{1}) return fmt::format("{}s", whole.count());
  if (whole < hours{1}) return fmt::format("{}m{}s", whole.count() / 60, whole.count() % 60);
  return fmt::format("{}h{}m", whole.count() / 3600, whole.count() / 60 % 60);
}

}  // namespace holdfast::cli
