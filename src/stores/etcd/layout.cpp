#include "stores/etcd/layout.hpp"

#include <algorithm>
#include <charconv>

#include <nlohmann/json.hpp>

#include "core/lock_kind.hpp"
#include "runtime/clock.hpp"
#include "runtime/host.hpp"

namespace holdfast::stores::etcd {

namespace {

using nlohmann::json;

constexpr int value_version = 1;
constexpr std::size_t foreign_value_shown_max = 256;
constexpr std::string_view reads = "reader";
constexpr std::string_view writes = "writer";
constexpr std::string_view hex = "0123456789abcdef";

std::string_view end_of(std::string_view key) noexcept { return key.substr(key.rfind('/') + 1); }

// JSON holds text, and labels are any bytes: what is not plain is written %XX.
std::string as_text(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    if (c >= ' ' && c < 0x7f && c != '%') {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += hex[byte >> 4U];
    out += hex[byte & 0xfU];
  }
  return out;
}

std::string as_bytes(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    const auto two = text.substr(i + 1, 2);
    if (text[i] == '%' && two.size() == 2 &&
        std::from_chars(two.data(), two.data() + 2, byte, 16).ptr == two.data() + 2) {
      out += static_cast<char>(byte);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string text_in(const json& all, const char* name) {
  const auto at = all.find(name);
  return at != all.end() && at->is_string() ? as_bytes(at->get_ref<const std::string&>())
                                            : std::string{};
}

std::int64_t number_in(const json& all, const char* name) {
  const auto at = all.find(name);
  return at != all.end() && at->is_number_integer() ? at->get<std::int64_t>() : 0;
}

bool is_hex(std::string_view text) noexcept {
  return text.find_first_not_of(hex) == std::string_view::npos;
}

}  // namespace

std::string folder_of(std::string_view prefix, std::string_view name) {
  return std::string{prefix} + std::string{name} + "/";
}

bool is_of(std::string_view folder, std::string_view key) noexcept {
  return key.starts_with(folder) && key.find('/', folder.size()) == std::string_view::npos;
}

std::optional<std::string> lock_of(std::string_view prefix, const key_value& one) {
  const std::string_view key = one.key;
  const auto end = end_of(key);
  if (!key.starts_with(prefix) || end.size() + prefix.size() + 1 >= key.size()) return std::nullopt;
  // etcdctl's keys end in the id of their lease, and have no value.
  std::uint64_t id = 0;
  const bool is_number =
      std::from_chars(end.data(), end.data() + end.size(), id, 16).ptr == end.data() + end.size();
  const bool is_etcdctls = one.value.empty() && one.lease != 0 && is_number &&
                           id == static_cast<std::uint64_t>(one.lease);
  const bool is_ours = end.size() == core::owner_id::digits && is_hex(end) && one.lease != 0;
  if (!is_ours && !is_etcdctls) return std::nullopt;
  return std::string{key.substr(prefix.size(), key.size() - end.size() - 1 - prefix.size())};
}

std::string value_of(std::string_view label, part what) {
  const auto since =
      std::chrono::duration_cast<std::chrono::microseconds>(runtime::wall_now().time_since_epoch());
  json all{{"holdfast", value_version},
           {"host", as_text(runtime::host_name())},
           {"pid", runtime::process_id()},
           {"label", as_text(label)},
           {"since", since.count()}};
  if (what != part::whole) all["part"] = what == part::reader ? reads : writes;
  return all.dump();
}

part part_of(const key_value& one) {
  const auto all = json::parse(one.value, nullptr, false);
  if (!all.is_object()) return part::whole;
  const auto what = text_in(all, "part");
  if (what == reads) return part::reader;
  return what == writes ? part::writer : part::whole;
}

std::string as_readers(std::string_view value) {
  auto all = json::parse(value, nullptr, false);
  if (!all.is_object()) return {};
  all["part"] = reads;
  return all.dump();
}

holder holder_of(const key_value& one) {
  holder who;
  who.token = fencing_token{static_cast<std::uint64_t>(one.created)};
  const auto all = json::parse(one.value, nullptr, false);
  if (!all.is_object() || number_in(all, "holdfast") < value_version) {
    who.foreign = true;
    who.value = std::string{end_of(one.key).substr(0, foreign_value_shown_max)};
    return who;
  }
  who.host = text_in(all, "host");
  who.pid = number_in(all, "pid");
  who.label = text_in(all, "label");
  who.since =
      std::chrono::system_clock::time_point{std::chrono::microseconds{number_in(all, "since")}};
  return who;
}

waiter waiter_of(const key_value& one) {
  auto who = holder_of(one);
  return {std::move(who.host), who.pid, std::move(who.label), who.since};
}

standing standing_of(std::string_view key, std::string_view folder,
                     const std::vector<key_value>& oldest_first) {
  standing place;
  for (const auto& one : oldest_first) {
    if (!is_of(folder, one.key)) continue;
    if (!place.first) place.first = one;
    if (one.key == key) {
      place.is_there = true;
      place.owns = !place.ahead;
      return place;
    }
    place.ahead = one;
  }
  place.ahead.reset();
  return place;
}

shared_standing shared_standing_of(std::string_view key, std::string_view folder,
                                   const std::vector<key_value>& oldest_first) {
  shared_standing place;
  std::vector<key_value> before;
  const key_value* own = nullptr;
  for (const auto& one : oldest_first) {
    if (!is_of(folder, one.key)) continue;
    if (one.key == key) {
      own = &one;
      break;
    }
    if (!place.first) place.first = one;
    place.is_other_kind =
        place.is_other_kind || (part_of(one) == part::whole && !holder_of(one).foreign);
    before.push_back(one);
  }
  if (own == nullptr) return place;
  if (!place.first) place.first = *own;
  place.is_there = true;
  const bool is_reader = part_of(*own) == part::reader;
  for (auto& one : before)
    if (!is_reader || part_of(one) != part::reader) place.ahead.push_back(std::move(one));
  place.is_in = place.ahead.empty();
  return place;
}

std::size_t holders_in(const std::vector<key_value>& of_the_lock) {
  std::size_t count = 0;
  for (const auto& one : of_the_lock) {
    if (part_of(one) != part::reader) return count == 0 ? 1 : count;
    ++count;
  }
  return count;
}

}  // namespace holdfast::stores::etcd
