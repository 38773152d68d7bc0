#include "stores/zookeeper/node_data.hpp"

#include <algorithm>
#include <charconv>

namespace holdfast::stores::zookeeper {

namespace {

constexpr std::string_view first_line = "holdfast 1\n";

// Lines end fields, so a field has none.
std::string one_line(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\\\";
    else if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out;
}

std::string from_line(std::string_view line) {
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\\' || i + 1 == line.size()) {
      out += line[i];
      continue;
    }
    ++i;
    out += line[i] == 'n' ? '\n' : line[i];
  }
  return out;
}

std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t value = 0;
  const auto* end = text.data() + text.size();
  const auto got = std::from_chars(text.data(), end, value);
  if (got.ec != std::errc{} || got.ptr != end) return std::nullopt;
  return value;
}

}  // namespace

std::string node_data(const node_note& note) {
  const auto& who = note.who;
  std::string data{first_line};
  data += "host " + one_line(who.host) + "\npid " + std::to_string(who.pid) + "\n";
  if (!who.label.empty()) data += "label " + one_line(who.label) + "\n";
  if (note.session_ttl) data += "ttl_ms " + std::to_string(note.session_ttl->count()) + "\n";
  if (who.token != fencing_token{}) data += "token " + to_string(who.token) + "\n";
  return data;
}

node_note note_in(std::string_view data, const node_birth& made) {
  node_note note;
  auto& who = note.who;
  who.token = fencing_token{static_cast<std::uint64_t>(made.czxid)};
  who.since = std::chrono::system_clock::time_point{std::chrono::milliseconds{made.at_ms}};
  if (!data.starts_with(first_line)) {
    who.foreign = true;
    who.value = std::string{data.substr(0, foreign_data_shown_max)};
    return note;
  }
  data.remove_prefix(first_line.size());
  while (!data.empty()) {
    const auto end = std::min(data.find('\n'), data.size());
    const auto line = data.substr(0, end);
    data.remove_prefix(std::min(end + 1, data.size()));
    const auto space = std::min(line.find(' '), line.size());
    const auto field = line.substr(0, space);
    const auto value = line.substr(std::min(space + 1, line.size()));
    if (field == "host") who.host = from_line(value);
    if (field == "pid") who.pid = number_in(value).value_or(0);
    if (field == "label") who.label = from_line(value);
    const auto positive = number_in(value);
    if (!positive || *positive <= 0) continue;
    if (field == "ttl_ms") note.session_ttl = std::chrono::milliseconds{*positive};
    if (field == "token") who.token = fencing_token{static_cast<std::uint64_t>(*positive)};
  }
  return note;
}

}  // namespace holdfast::stores::zookeeper
