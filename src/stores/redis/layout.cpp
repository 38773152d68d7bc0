#include "stores/redis/layout.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>

#include "core/types.hpp"
#include "stores/redis/script_values.hpp"

namespace holdfast::stores::redis {

namespace {

constexpr unsigned slots = 16384;
constexpr std::string_view hex = "0123456789abcdef";
constexpr std::size_t foreign_value_shown_max = 256;

// CRC-16/XMODEM, the one that Redis Cluster uses.
constexpr auto crc_table = [] {
  std::array<std::uint16_t, 256> table{};
  for (unsigned i = 0; i < table.size(); ++i) {
    unsigned crc = i << 8;
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc & 0x8000U) != 0 ? (crc << 1) ^ 0x1021U : crc << 1;
    table[i] = static_cast<std::uint16_t>(crc);
  }
  return table;
}();

constexpr std::uint16_t crc_step(std::uint16_t crc, char c) noexcept {
  const auto index = ((crc >> 8) ^ static_cast<unsigned char>(c)) & 0xffU;
  return static_cast<std::uint16_t>((crc << 8) ^ crc_table[index]);
}

bool is_plain(char c) noexcept { return c > ' ' && c < 0x7f && c != ';' && c != '%' && c != '='; }

void append_field(std::string& to, std::string_view text) {
  for (const char c : text) {
    if (is_plain(c) || c == ' ') {
      to += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    to += '%';
    to += hex[byte >> 4];
    to += hex[byte & 0xf];
  }
}

std::string decode_field(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      unsigned byte = 0;
      const auto* from = text.data() + i + 1;
      if (std::from_chars(from, from + 2, byte, 16).ptr == from + 2) {
        out += static_cast<char>(byte);
        i += 2;
        continue;
      }
    }
    out += text[i];
  }
  return out;
}

// Anybody may have written it: what is no number is 0, and more than `most` is taken for `most`.
std::int64_t number(std::string_view text, std::optional<std::int64_t> most = {}) noexcept {
  std::int64_t value = 0;
  const auto got = std::from_chars(text.data(), text.data() + text.size(), value);
  if (got.ec == std::errc::result_out_of_range) return most.value_or(0);
  return most ? std::min(value, *most) : value;
}

}  // namespace

unsigned hash_slot(std::string_view key) noexcept {
  // A non-empty {tag} alone decides, as in the cluster specification.
  if (const auto open = key.find('{'); open != std::string_view::npos) {
    const auto close = key.find('}', open + 1);
    if (close != std::string_view::npos && close > open + 1) {
      key = key.substr(open + 1, close - open - 1);
    }
  }
  std::uint16_t crc = 0;
  for (const char c : key)
    crc = crc_step(crc, c);
  return crc % slots;
}

namespace {

using tag_table = std::array<std::array<char, 3>, slots>;

// The first match in this order; every slot has one (tested). Made once, in a millisecond: to look
// for one tag takes 16,000 steps, too many for a program that opens a lock for each order.
tag_table make_tags() {
  constexpr std::string_view letters =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";
  tag_table tags{};
  for (const char a : letters) {
    const auto first = crc_step(0, a);
    for (const char b : letters) {
      const auto second = crc_step(first, b);
      for (const char c : letters) {
        auto& tag = tags[crc_step(second, c) % slots];
        if (tag[0] == '\0') tag = {a, b, c};
      }
    }
  }
  return tags;
}

}  // namespace

std::string slot_tag(unsigned slot) {
  static const tag_table tags = make_tags();
  const auto& tag = tags[slot % slots];
  return {tag.begin(), tag.end()};
}

namespace {

// How keys and channels of our own begin that belong to this key.
std::string beside(const std::string& key) {
  return std::string{reserved_prefix} + slot_tag(hash_slot(key)) + "}:";
}

}  // namespace

std::string latch_channel(const std::string& key) { return beside(key) + "latch:" + key; }

lock_keys::lock_keys(std::string lock_key) : lock{std::move(lock_key)} {
  const auto ours = beside(lock);
  slot = ours + "slot";
  queue = ours + "queue:" + lock;
  waiters = ours + "waiters:" + lock;
}

namespace {

// Where the fields of an entry are. Those in the Lua script count from one.
constexpr std::size_t claim_at = core::owner_id::digits + 1;
constexpr std::size_t claim_digits = 8;
constexpr std::size_t block_at = claim_at + claim_digits + 1;
constexpr std::size_t block_digits = 3;
constexpr std::size_t layout_at = block_at + block_digits + 1;
constexpr std::size_t layout_digits = 2;
constexpr std::size_t inbox_at = layout_at + layout_digits + 1;
constexpr std::size_t inbox_length = inbox_prefix.size() + core::owner_id::digits;
constexpr std::size_t joined_at = inbox_at + inbox_length + 1;
constexpr std::size_t joined_digits = 13;
constexpr std::size_t holder_at = joined_at + joined_digits + 1;
static_assert(claim_at == 33 && block_at == 42 && layout_at == 46 && inbox_at == 49 &&
              joined_at == 97 && holder_at == 111);

}  // namespace

std::string queue_entry::text() const {
  std::string to{id.text()};
  to += ';';
  to += digits(static_cast<std::uint64_t>(claim.count()), claim_digits) + ';';
  to += digits(block, block_digits) + ';';
  to += digits(layout_written, layout_digits) + ';';
  to += inbox;
  to += ';';
  to += digits(static_cast<std::uint64_t>(joined.count()), joined_digits) + ';';
  to += holder;
  return to;
}

std::optional<queue_entry> queue_entry::parse(std::string_view text) {
  const auto id = core::owner_id::parse(text.substr(0, core::owner_id::digits));
  if (!id || text.size() < holder_at) return std::nullopt;
  const auto at = [&](std::size_t from, std::size_t width) {
    return number(text.substr(from, width), std::numeric_limits<std::int64_t>::max());
  };
  queue_entry entry;
  entry.id = *id;
  entry.claim = std::chrono::milliseconds{at(claim_at, claim_digits)};
  entry.block = static_cast<std::uint64_t>(at(block_at, block_digits));
  entry.inbox = text.substr(inbox_at, inbox_length);
  entry.joined = std::chrono::milliseconds{at(joined_at, joined_digits)};
  entry.holder = text.substr(holder_at);
  return entry;
}

std::string_view kind_name(core::lock_kind::form of) noexcept {
  switch (of) {
    case core::lock_kind::form::exclusive:
      break;
    case core::lock_kind::form::shared:
      return "shared";
    case core::lock_kind::form::permits:
      return "permits";
    case core::lock_kind::form::redisson:
      return "redisson";
    case core::lock_kind::form::redisson_fenced:
      return "redisson_fenced";
    case core::lock_kind::form::redisson_permits:
      return "redisson_permits";
    case core::lock_kind::form::redisson_rw:
      return "redisson_rw";
    case core::lock_kind::form::redisson_fair:
      return "redisson_fair";
  }
  return {};
}

lock_status::form kind_called(std::string_view name) noexcept {
  if (name == kind_name(core::lock_kind::form::shared)) return lock_status::form::shared_mutex;
  if (name == kind_name(core::lock_kind::form::permits)) return lock_status::form::semaphore;
  if (name == latch_kind_name) return lock_status::form::latch;
  return lock_status::form::mutex;
}

std::string units_wanted(const core::lock_kind& kind, std::uint32_t units) {
  return std::string{kind_name(kind.what)} + '=' + std::to_string(units) + ';';
}

std::string describe_holder(std::string_view host, std::int64_t pid, std::string_view label) {
  std::string text = "host=";
  append_field(text, host);
  text += ";pid=" + std::to_string(pid) + ";label=";
  append_field(text, label);
  return text;
}

namespace {

constexpr std::int64_t farthest_ms = 1000LL * 3600 * 24 * 365 * 200;  // after 1970

std::chrono::system_clock::time_point time_of(std::int64_t ms) {
  return std::chrono::system_clock::time_point{std::chrono::milliseconds{ms}};
}

struct fields {
  holder who;
  std::int64_t layout = 0;
};

// "key=text;key=text;…", as far as it is known.
fields read_fields(std::string_view rest) {
  fields read;
  auto& who = read.who;
  while (!rest.empty()) {
    const auto end = rest.find(';');
    const auto field = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    const auto equals = field.find('=');
    if (equals == std::string_view::npos) continue;
    const auto key = field.substr(0, equals);
    const auto text = field.substr(equals + 1);
    if (key == "holdfast") {
      read.layout = number(text, layout_readable_max + 1);
    } else if (key == "token") {
      who.token = fencing_token{static_cast<std::uint64_t>(number(text))};
    } else if (key == "since") {
      who.since = time_of(number(text, farthest_ms));
    } else if (key == "host") {
      who.host = decode_field(text);
    } else if (key == "pid") {
      who.pid = number(text);
    } else if (key == "label") {
      who.label = decode_field(text);
    }
  }
  return read;
}

}  // namespace

result<holder> parse_holder(std::string_view value) {
  const auto foreign = [&] {
    holder other;
    other.foreign = true;
    other.value = std::string{value.substr(0, foreign_value_shown_max)};
    return other;
  };
  constexpr std::string_view mark = ";holdfast=";
  if (value.size() < core::owner_id::digits + mark.size()) return foreign();
  if (!core::owner_id::parse(value.substr(0, core::owner_id::digits))) return foreign();
  if (value.substr(core::owner_id::digits, mark.size()) != mark) return foreign();

  const auto read = read_fields(value.substr(core::owner_id::digits + 1));
  if (read.layout > layout_readable_max) {
    return fail(errc::incompatible,
                "the lock is held by a newer Holdfast (stored layout " +
                    std::to_string(read.layout) + ", this version shares locks up to " +
                    std::to_string(layout_readable_max) + "): update this program");
  }
  return read.who;
}

std::string value_begins(const core::owner_id& id, fencing_token token) {
  return std::string{id.text()} + ";holdfast=" + std::to_string(layout_written) +
         ";token=" + to_string(token);
}

waiter describe_waiter(std::string_view holder, std::chrono::milliseconds since) {
  auto who = read_fields(holder).who;
  return {std::move(who.host), who.pid, std::move(who.label),
          time_of(std::min(since.count(), farthest_ms))};
}

}  // namespace holdfast::stores::redis
