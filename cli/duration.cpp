#include "duration.hpp"

#include <charconv>
#include <cmath>
#include <optional>

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

namespace {

std::optional<milliseconds> unit_of(std::string_view name) {
  if (name == "ms") return milliseconds{1};
  if (name == "s") return seconds{1};
  if (name == "m") return minutes{1};
  if (name == "h") return hours{1};
  if (name == "d") return hours{24};
  return std::nullopt;
}

}  // namespace

milliseconds parse_duration(const std::string& option, std::string_view text) {
  constexpr std::string_view shape = "is not a duration: write 500ms, 1.5s, 30s, 5m, 1h30m or 2d";
  constexpr std::string_view digits = "0123456789.";
  std::string_view rest = text;
  if (rest.empty()) reject(option, text, shape);
  double sum_ms = 0;
  while (!rest.empty()) {
    const auto number = rest.substr(0, rest.find_first_not_of(digits));
    rest.remove_prefix(number.size());
    const auto name = rest.substr(0, rest.find_first_of(digits));
    rest.remove_prefix(name.size());
    const bool bare = name.empty() && number.size() == text.size();
    const auto unit = bare ? std::optional<milliseconds>{seconds{1}} : unit_of(name);
    double value = 0;
    const char* const end = number.data() + number.size();
    const auto read = std::from_chars(number.data(), end, value, std::chars_format::fixed);
    if (!unit || number.ends_with('.') || number.starts_with('.') || read.ptr != end ||
        read.ec == std::errc::invalid_argument) {
      reject(option, text, shape);
    }
    if (read.ec == std::errc::result_out_of_range) reject(option, text, "is longer than a year");
    sum_ms += value * static_cast<double>(unit->count());
    if (sum_ms > static_cast<double>(milliseconds{duration_max}.count())) {
      reject(option, text, "is longer than a year");
    }
  }
  return milliseconds{std::llround(sum_ms)};
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
