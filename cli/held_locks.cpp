#include "held_locks.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include <fmt/format.h>

namespace holdfast::cli {
namespace {

// Deeper nesting than this is not watched: the outermost locks are left out.
constexpr std::size_t entries_max = 64;

// FNV-1a: the same in every build, which std::hash need not be.
std::uint64_t hash_of(std::string_view name) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : name) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3U;
  }
  return hash;
}

bool read_number(std::string_view text, int base, std::uint64_t& into) noexcept {
  const char* const end = text.data() + text.size();
  const auto got = std::from_chars(text.data(), end, into, base);
  return got.ec == std::errc{} && got.ptr == end;
}

}  // namespace

held_locks held_locks::of_this_process() {
  const char* const text = std::getenv(variable);
  held_locks all{text == nullptr ? std::string_view{} : std::string_view{text}};
  // A script's, by what `holdfast lock` printed: no parent of ours could note it.
  const char* const name = std::getenv("HOLDFAST_LOCK");
  const char* const token = std::getenv("HOLDFAST_TOKEN");
  std::uint64_t number = 0;
  if (name != nullptr && token != nullptr && read_number(token, 10, number) &&
      !all.knows(name, number)) {
    all.add(name, number);
  }
  return all;
}

held_locks::held_locks(std::string_view text) {
  while (!text.empty() && entries_.size() < entries_max) {
    const auto end = std::min(text.find(' '), text.size());
    const auto one = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto colon = one.find(':');
    entry read{};
    if (colon != std::string_view::npos && read_number(one.substr(0, colon), 16, read.name_hash) &&
        read_number(one.substr(colon + 1), 10, read.token)) {
      entries_.push_back(read);
    }
  }
}

bool held_locks::knows(std::string_view name) const noexcept {
  return std::any_of(entries_.begin(), entries_.end(),
                     [hash = hash_of(name)](const entry& one) { return one.name_hash == hash; });
}

bool held_locks::knows(std::string_view name, std::uint64_t token) const noexcept {
  return std::any_of(entries_.begin(), entries_.end(),
                     [hash = hash_of(name), token](const entry& one) {
                       return one.name_hash == hash && one.token == token;
                     });
}

void held_locks::add(std::string_view name, std::uint64_t token) {
  entries_.push_back({hash_of(name), token});
}

std::string held_locks::text() const {
  std::string text;
  const std::size_t skipped = entries_.size() <= entries_max ? 0 : entries_.size() - entries_max;
  for (std::size_t i = skipped; i < entries_.size(); ++i) {
    text += fmt::format("{}{:016x}:{}", text.empty() ? "" : " ", entries_[i].name_hash,
                        entries_[i].token);
  }
  return text;
}

}  // namespace holdfast::cli
