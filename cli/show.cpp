#include "show.hpp"

#include <algorithm>
#include <array>
#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "duration.hpp"

namespace holdfast::cli {
namespace {

constexpr std::size_t columns = 8;
using row = std::array<std::string, columns>;

// Holders write the time themselves: one that fmt cannot show must not stop us.
std::string show_time(std::chrono::system_clock::time_point when) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(when);
  std::tm utc{};
  if (::gmtime_r(&seconds, &utc) == nullptr) return "?";
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", utc);
}

std::string show_remaining(const lock_status& status) {
  return status.remaining ? show_duration(*status.remaining) : "never expires";
}

row cells(const lock_status& status) {
  const std::string waiting = std::to_string(status.waiting);
  if (!status.holder) return {escape(status.name), "free", "", "", "", "", waiting, ""};
  const holder& who = *status.holder;
  if (who.foreign) {
    return {escape(status.name), "(not Holdfast)", "-", "-", "-", show_remaining(status), waiting,
            escape(who.value)};
  }
  return {escape(status.name),
          escape(who.host),
          std::to_string(who.pid),
          show_time(who.since),
          to_string(who.token),
          show_remaining(status),
          waiting,
          escape(who.label)};
}

// Its clock and ours may differ: never less than nothing.
std::chrono::milliseconds waited(const waiter& who) {
  const auto since = std::chrono::system_clock::now() - who.since;
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::max(since, since.zero()));
}

// Code points: near enough to columns for lining text up.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

}  // namespace

std::string describe(const lock_status& status) {
  if (!status.holder) return "free";
  const holder& who = *status.holder;
  const std::string left = status.remaining
                               ? show_duration(*status.remaining) + " left unless renewed"
                               : "and it never expires";
  if (who.foreign) {
    return fmt::format("held by another kind of client (value '{}'), {}", escape(who.value), left);
  }
  const auto since = std::chrono::system_clock::now() - who.since;
  const std::string label = who.label.empty() ? "" : fmt::format(" ({})", escape(who.label));
  return fmt::format("held by {} pid {}{} for {}, {}", escape(who.host), who.pid, label,
                     show_duration(std::max(since, since.zero())), left);
}

std::string show_table(const std::vector<lock_status>& locks) {
  std::vector<row> rows{{"LOCK", "HOST", "PID", "SINCE", "TOKEN", "REMAINING", "WAITING", "LABEL"}};
  std::transform(locks.begin(), locks.end(), std::back_inserter(rows), cells);
  std::array<std::size_t, columns> widths{};
  for (const row& line : rows) {
    for (std::size_t i = 0; i < columns; ++i)
      widths[i] = std::max(widths[i], width(line[i]));
  }
  std::string text;
  for (const row& line : rows) {
    std::string shown;
    for (std::size_t i = 0; i < columns; ++i) {
      shown += line[i] + std::string(widths[i] - width(line[i]) + 2, ' ');
    }
    shown.erase(shown.find_last_not_of(' ') + 1);
    text += shown + "\n";
  }
  return text;
}

std::string show_queue(const lock_status& status) {
  std::string text;
  for (std::size_t i = 0; i < status.waiters.size(); ++i) {
    const waiter& who = status.waiters[i];
    const std::string label = who.label.empty() ? "" : fmt::format(" ({})", escape(who.label));
    text += fmt::format("{:>4}. {} pid {}{} has waited for {}\n", i + 1, escape(who.host), who.pid,
                        label, show_duration(waited(who)));
  }
  if (status.waiting > status.waiters.size()) {
    text += fmt::format("      and {} more\n", status.waiting - status.waiters.size());
  }
  return text;
}

nlohmann::ordered_json to_json(const lock_status& status) {
  nlohmann::ordered_json json{
      {"name", escape(status.name)}, {"held", status.holder.has_value()},
      {"holder", nullptr},           {"remaining_ms", nullptr},
      {"waiting", status.waiting},   {"waiters", nlohmann::ordered_json::array()}};
  for (const waiter& who : status.waiters) {
    json["waiters"].push_back({{"host", escape(who.host)},
                               {"pid", who.pid},
                               {"label", escape(who.label)},
                               {"since", show_time(who.since)},
                               {"waited_ms", waited(who).count()}});
  }
  if (status.remaining) json["remaining_ms"] = status.remaining->count();
  if (!status.holder) return json;
  const holder& who = *status.holder;
  if (who.foreign) {
    json["holder"] = {{"foreign", true}, {"value", escape(who.value)}};
  } else {
    json["holder"] = {{"foreign", false},
                      {"host", escape(who.host)},
                      {"pid", who.pid},
                      {"label", escape(who.label)},
                      {"token", who.token.value()},
                      {"since", show_time(who.since)}};
  }
  return json;
}

}  // namespace holdfast::cli
