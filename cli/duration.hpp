// Durations as people type them and read them.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace holdfast::cli {

// `500ms`, `1.5s`, `30s`, `5m`, `1h30m`, `2d`; a bare number is seconds. At most a year, so that
// sums of durations stay far from overflow. Throws CLI::ValidationError that names `option`.
[[nodiscard]] std::chrono::milliseconds parse_duration(const std::string& option,
                                                       std::string_view text);

// As above, and `forever`.
[[nodiscard]] std::chrono::nanoseconds parse_wait(const std::string& option, std::string_view text);

// `850ms`, `21s`, `3m2s`, `2h5m`: two units at most.
[[nodiscard]] std::string show_duration(std::chrono::nanoseconds duration);

}  // namespace holdfast::cli
