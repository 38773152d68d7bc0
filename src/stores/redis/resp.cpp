#include "stores/redis/resp.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace holdfast::stores::redis {

namespace {

constexpr std::string_view not_redis = "the server does not speak the Redis protocol";
constexpr std::string_view too_large = "the server sent a reply that is larger than any we ask for";
constexpr std::string_view line_end = "\r\n";
// An array is given room for so many elements before they come; larger ones grow.
constexpr std::size_t elements_reserved_max = 256;
// A large reply's memory is given back.
constexpr std::size_t buffer_kept_bytes = std::size_t{64} * 1024;
// "txt:", before the text of a verbatim string.
constexpr std::size_t format_bytes = 4;

std::optional<long long> number_in(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  long long number = 0;
  const auto* end = text.data() + text.size();
  const auto got = std::from_chars(text.data(), end, number);
  if (got.ec != std::errc{} || got.ptr != end) return std::nullopt;
  return number;
}

}  // namespace

void reply_reader::feed(std::string_view bytes) {
  if (!trouble_.empty()) return;
  if (at_ == buffer_.size()) {
    if (buffer_.capacity() > buffer_kept_bytes) buffer_ = {};
    buffer_.clear();
    at_ = scanned_ = 0;
  } else if (at_ > buffer_.size() / 2) {
    buffer_.erase(0, at_);
    scanned_ -= std::min(scanned_, at_);
    at_ = 0;
  }
  buffer_ += bytes;
}

reply reply_reader::next() {
  if (!trouble_.empty()) return {};
  if (!root_) {
    if (at_ == buffer_.size()) return {};
    root_ = std::make_unique<reply_value>();
    pending_ = root_.get();
  }
  for (;;) {
    if (!read_value(*pending_)) return {};
    bool value_follows = false;
    while (!open_.empty() && open_.back().missing == 0 && !value_follows) {
      value_follows = open_.back().is_attribute;
      pending_ = open_.back().into;
      open_.pop_back();
    }
    if (value_follows) {
      *pending_ = {};
      continue;
    }
    if (open_.empty()) return finish();
    --open_.back().missing;
    pending_ = &open_.back().into->items.emplace_back();
  }
}

reply reply_reader::finish() {
  bytes_ = elements_ = 0;
  pending_ = nullptr;
  return std::move(root_);
}

bool reply_reader::refuse(std::string_view why) {
  trouble_ = why;
  open_.clear();
  static_cast<void>(finish());
  buffer_ = {};
  at_ = scanned_ = 0;
  return false;
}

std::optional<std::string_view> reply_reader::line() {
  auto end = buffer_.find(line_end.front(), std::max(at_, scanned_));
  while (end != std::string::npos && end + 1 < buffer_.size() && buffer_[end + 1] != '\n')
    end = buffer_.find(line_end.front(), end + 1);
  const bool complete = end < buffer_.size() && end + 1 < buffer_.size();
  end = std::min(end, buffer_.size());
  scanned_ = end;
  if (end - at_ > line_bytes_max) {
    static_cast<void>(refuse(too_large));
    return std::nullopt;
  }
  if (!complete) return std::nullopt;
  const auto found = std::string_view{buffer_}.substr(at_, end - at_);
  bytes_ += found.size() + line_end.size();
  at_ = end + line_end.size();
  return found;
}

bool reply_reader::read_value(reply_value& to) {
  if (text_bytes_) return read_text(to);
  const auto all = line();
  if (!all) return false;
  if (all->empty()) return refuse(not_redis);
  if (bytes_ > reply_bytes_max) return refuse(too_large);
  const char mark = all->front();
  const auto rest = all->substr(1);
  switch (mark) {
    case '+':
    case '-':
      to.type = mark == '+' ? reply_kind::status : reply_kind::error;
      to.text = rest;
      return true;
    case ':': {
      const auto number = number_in(rest);
      if (!number) return refuse(not_redis);
      to.type = reply_kind::integer;
      to.integer = *number;
      return true;
    }
    case '$':
    case '!':
    case '=': {
      if (mark == '$' && rest == "-1") return true;
      const auto bytes = number_in(rest);
      if (!bytes || *bytes < 0) return refuse(not_redis);
      if (static_cast<std::size_t>(*bytes) > reply_bytes_max - bytes_) return refuse(too_large);
      text_bytes_ = static_cast<std::size_t>(*bytes);
      text_mark_ = mark;
      return read_text(to);
    }
    case '*':
      if (rest == "-1") return true;
      [[fallthrough]];
    case '~':
    case '>':
    case '%':
    case '|':
      return open(to, mark, rest);
    case '_':
      return rest.empty() || refuse(not_redis);
    case '#':
      if (rest != "t" && rest != "f") return refuse(not_redis);
      to.type = reply_kind::integer;
      to.integer = rest == "t" ? 1 : 0;
      return true;
    case ',':
    case '(':
      to.type = reply_kind::text;
      to.text = rest;
      return true;
    default:
      return refuse(not_redis);
  }
}

bool reply_reader::read_text(reply_value& to) {
  const auto bytes = *text_bytes_;
  if (buffer_.size() - at_ < bytes + line_end.size()) return false;
  auto text = std::string_view{buffer_}.substr(at_, bytes);
  if (std::string_view{buffer_}.substr(at_ + bytes, line_end.size()) != line_end) {
    return refuse(not_redis);
  }
  if (text_mark_ == '=') {
    if (bytes < format_bytes) return refuse(not_redis);
    text.remove_prefix(format_bytes);
  }
  to.type = text_mark_ == '!' ? reply_kind::error : reply_kind::text;
  to.text = text;
  bytes_ += bytes + line_end.size();
  at_ += bytes + line_end.size();
  text_bytes_.reset();
  return true;
}

bool reply_reader::open(reply_value& to, char mark, std::string_view count) {
  const auto said = number_in(count);
  if (!said || *said < 0) return refuse(not_redis);
  auto elements = static_cast<std::size_t>(*said);
  if (elements > elements_max || open_.size() == depth_max) return refuse(too_large);
  if (mark == '%' || mark == '|') elements *= 2;
  elements_ += elements;
  if (elements_ > elements_max) return refuse(too_large);
  to.type = mark == '>' ? reply_kind::push : reply_kind::array;
  to.items.reserve(std::min(elements, elements_reserved_max));
  open_.push_back({&to, elements, mark == '|'});
  return true;
}

std::string as_argument(std::string_view text) {
  std::string bytes;
  bytes += '$';
  bytes += std::to_string(text.size());
  bytes += line_end;
  bytes += text;
  bytes += line_end;
  return bytes;
}

}  // namespace holdfast::stores::redis
