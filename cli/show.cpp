#include "show.hpp"

#include <algorithm>
#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "duration.hpp"
#include "say.hpp"

namespace holdfast::cli {
namespace {

using row = std::vector<std::string>;

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

std::size_t held_on(const lock_status& status) {
  return static_cast<std::size_t>(
      std::count_if(status.nodes.begin(), status.nodes.end(),
                    [](const auto& one) { return one.status == lock_on_node::state::held; }));
}

row cells(const lock_status& status, const holder& who) {
  const std::string waiting = std::to_string(status.waiting);
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

// A row for each holder that is shown.
std::vector<row> rows_of(const lock_status& status) {
  if (!status.holder) {
    return {{escape(status.name), "free", "", "", "", "", std::to_string(status.waiting), ""}};
  }
  if (status.kind == lock_status::form::mutex) return {cells(status, *status.holder)};
  std::vector<row> rows;
  for (const auto& who : status.holders)
    rows.push_back(cells(status, who));
  return rows;
}

// "3 of 4 permits"; how a unit is called depends on who has it.
std::string in_use(const lock_status& status) {
  if (status.kind == lock_status::form::semaphore) {
    return fmt::format("{} of {} permits", status.units_in_use, status.capacity);
  }
  if (status.kind == lock_status::form::latch) {
    if (status.units_in_use == 0) return fmt::format("open, all {} have counted", status.capacity);
    return fmt::format("closed, {} of {} have not counted", status.units_in_use, status.capacity);
  }
  const bool writes = status.holder && status.holder->units == status.capacity;
  if (writes) return "1 writer";
  return fmt::format("{} reader{}", status.holding, status.holding == 1 ? "" : "s");
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
  if (status.kind == lock_status::form::latch) return "a latch, which nobody holds";
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
  if (status.kind != lock_status::form::mutex) {
    return fmt::format("{} held, by {} pid {}{} for {}{}", in_use(status), escape(who.host),
                       who.pid, label, show_duration(std::max(since, since.zero())),
                       status.holding > 1 ? " and others" : "");
  }
  return fmt::format("held by {} pid {}{} for {}, {}", escape(who.host), who.pid, label,
                     show_duration(std::max(since, since.zero())), left);
}

namespace {

std::string line_up(const std::vector<row>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const row& line : rows) {
    for (std::size_t i = 0; i < line.size(); ++i)
      widths[i] = std::max(widths[i], width(line[i]));
  }
  std::string text;
  for (const row& line : rows) {
    std::string shown;
    for (std::size_t i = 0; i < line.size(); ++i)
      shown += line[i] + std::string(widths[i] - width(line[i]) + 2, ' ');
    shown.erase(shown.find_last_not_of(' ') + 1);
    text += shown + "\n";
  }
  return text;
}

std::string show_holder(const lock_on_node& of) {
  std::string text;
  if (of.holder && of.holder->foreign) {
    text = fmt::format("another kind of client (value '{}')", escape(of.holder->value));
  } else if (of.holder) {
    text = fmt::format("{} pid {}, token {}", escape(of.holder->host), of.holder->pid,
                       to_string(of.holder->token));
  } else {
    text = escape(of.reason);
  }
  return text + (of.remaining ? ", " + show_duration(*of.remaining) + " left" : ", never expires");
}

// What a node says, and what the others make of it in one word or two.
struct node_words {
  std::string in_short;
  std::string in_full;
};
node_words describe(const lock_on_node& of) {
  using state = lock_on_node::state;
  switch (of.status) {
    case state::held:
      return {"held", "held by " + show_holder(of)};
    case state::other:
      return {"held by somebody else", "held by somebody else: " + show_holder(of)};
    case state::free:
      return {"free", "free"};
    case state::quarantined: {
      const auto rest = of.remaining ? " for " + show_duration(*of.remaining) : std::string{};
      return {"in quarantine" + rest, "in quarantine" + rest + ": " + escape(of.reason)};
    }
    case state::refused:
      return {"refused", "refused: " + escape(of.reason)};
    case state::unreachable:
      break;
  }
  return {"unreachable", "unreachable: " + escape(of.reason)};
}

}  // namespace

std::string show_table(const std::vector<lock_status>& locks) {
  std::vector<row> rows{{"LOCK", "HOST", "PID", "SINCE", "TOKEN", "REMAINING", "WAITING", "LABEL"}};
  // A lock that several hold has a row for each of them.
  std::vector<const lock_status*> of{nullptr};
  for (const auto& one : locks) {
    for (auto& line : rows_of(one)) {
      rows.push_back(std::move(line));
      of.push_back(&one);
    }
  }
  const bool on_nodes =
      std::any_of(locks.begin(), locks.end(), [](const auto& one) { return !one.nodes.empty(); });
  // Before the label, which is of any length.
  for (std::size_t i = 0; on_nodes && i < rows.size(); ++i) {
    const auto shown =
        i == 0 ? std::string{"NODES"} : fmt::format("{}/{}", held_on(*of[i]), of[i]->nodes.size());
    rows[i].insert(rows[i].end() - 1, shown);
  }
  return line_up(rows);
}

std::string show_units(const lock_status& status) {
  if (status.kind == lock_status::form::mutex) return {};
  std::string text = fmt::format("{}: {}", to_string(status.kind), in_use(status));
  if (status.kind == lock_status::form::semaphore && status.holding > 0) {
    text += fmt::format(", {} holder{}", status.holding, status.holding == 1 ? "" : "s");
  }
  if (status.holding > status.holders.size()) {
    text += fmt::format(", {} of them not shown", status.holding - status.holders.size());
  }
  return text + "\n";
}

std::string show_nodes(const lock_status& status) {
  if (status.nodes.empty()) return {};
  std::string agreement =
      status.holder ? fmt::format("held on {} of {} nodes", held_on(status), status.nodes.size())
                    : fmt::format("no majority of {} nodes holds it", status.nodes.size());
  std::vector<row> rows;
  for (const auto& one : status.nodes) {
    const auto words = describe(one);
    rows.push_back({"  " + escape(one.node), words.in_full});
    const bool agrees = status.holder ? one.status == lock_on_node::state::held
                                      : one.status == lock_on_node::state::free;
    if (!agrees) agreement += fmt::format("; {} {}", escape(one.node), words.in_short);
  }
  return agreement + "\n" + line_up(rows);
}

std::string show_queue(const lock_status& status) {
  std::string text;
  for (std::size_t i = 0; i < status.waiters.size(); ++i) {
    const waiter& who = status.waiters[i];
    const std::string label = who.label.empty() ? "" : fmt::format(" ({})", escape(who.label));
    text += fmt::format("{:>4}. {} pid {}{} has waited for {}\n", i + 1, escape(who.host), who.pid,
                        label, show_duration(waited(who)));
  }
  if (!status.waiters.empty() && status.waiting > status.waiters.size()) {
    text += fmt::format("      and {} more\n", status.waiting - status.waiters.size());
  }
  return text;
}

namespace {

nlohmann::ordered_json ms_json(const std::optional<std::chrono::milliseconds>& time) {
  if (!time) return nullptr;
  return time->count();
}

nlohmann::ordered_json holder_json(const std::optional<holder>& who) {
  if (!who) return nullptr;
  if (who->foreign) return {{"foreign", true}, {"value", escape(who->value)}};
  return {{"foreign", false},
          {"host", escape(who->host)},
          {"pid", who->pid},
          {"label", escape(who->label)},
          {"token", who->token.value()},
          {"since", show_time(who->since)},
          {"units", who->units}};
}

}  // namespace

nlohmann::ordered_json to_json(const lock_status& status) {
  nlohmann::ordered_json json{{"name", escape(status.name)},
                              {"held", status.holder.has_value()},
                              {"kind", to_string(status.kind)},
                              {"capacity", status.capacity},
                              {"units_in_use", status.units_in_use},
                              {"holding", status.holding},
                              {"holders", nlohmann::ordered_json::array()},
                              {"holder", nullptr},
                              {"remaining_ms", nullptr},
                              {"waiting", status.waiting},
                              {"waiters", nlohmann::ordered_json::array()},
                              {"nodes", nlohmann::ordered_json::array()}};
  for (const holder& who : status.holders)
    json["holders"].push_back(holder_json(who));
  for (const waiter& who : status.waiters) {
    json["waiters"].push_back({{"host", escape(who.host)},
                               {"pid", who.pid},
                               {"label", escape(who.label)},
                               {"since", show_time(who.since)},
                               {"waited_ms", waited(who).count()}});
  }
  for (const lock_on_node& one : status.nodes) {
    json["nodes"].push_back({{"node", escape(one.node)},
                             {"state", to_string(one.status)},
                             {"holder", holder_json(one.holder)},
                             {"remaining_ms", ms_json(one.remaining)},
                             {"said", escape(one.reason)}});
  }
  json["remaining_ms"] = ms_json(status.remaining);
  json["holder"] = holder_json(status.holder);
  return json;
}

}  // namespace holdfast::cli
