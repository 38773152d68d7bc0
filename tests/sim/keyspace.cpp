#include "sim/keyspace.hpp"

namespace holdfast::sim {

std::string reply::shown() const {
  switch (type) {
    case kind::nil:
      return "(nil)";
    case kind::integer:
      return std::to_string(integer);
    case kind::text:
    case kind::status:
      return text;
    case kind::error:
      return "(error) " + text;
    case kind::array:
      break;
  }
  std::string all = "[";
  for (const auto& item : items) {
    if (all.size() > 1) all += ", ";
    all += item.shown();
  }
  return all + "]";
}

namespace {

bool expired(const stored& what, std::int64_t now_ms) {
  return what.expires_ms && now_ms > *what.expires_ms;
}

}  // namespace

stored* keyspace::find(std::string_view key, std::int64_t now_ms) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return nullptr;
  if (!expired(found->second, now_ms)) return &found->second;
  entries_.erase(found);
  return nullptr;
}

stored& keyspace::put(std::string_view key, stored what) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return entries_.emplace(key, std::move(what)).first->second;
  found->second = std::move(what);
  return found->second;
}

bool keyspace::erase(std::string_view key, std::int64_t now_ms) {
  if (find(key, now_ms) == nullptr) return false;
  entries_.erase(entries_.find(key));
  return true;
}

keyspace::entries keyspace::all(std::int64_t now_ms) const {
  auto there = entries_;
  std::erase_if(there, [&](const auto& one) { return expired(one.second, now_ms); });
  return there;
}

}  // namespace holdfast::sim
