// Any replies, cut anywhere, and the same bytes read by hiredis.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <hiredis/hiredis.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "stores/redis/resp.hpp"

namespace holdfast::test {

namespace {

using stores::redis::reply_kind;
using stores::redis::reply_reader;
using stores::redis::reply_value;

// hiredis 0.14 reads no deeper.
constexpr int generated_depth_max = 6;

std::string any_line() {
  auto text = *rc::gen::string<std::string>();
  std::erase_if(text, [](char c) { return c == '\r' || c == '\n'; });
  return text;
}

std::string any_reply(int depth) {
  switch (*rc::gen::inRange(0, depth < generated_depth_max ? 8 : 6)) {
    case 0:
      return "+" + any_line() + "\r\n";
    case 1:
      return "-" + any_line() + "\r\n";
    case 2:
      return ":" + std::to_string(*rc::gen::arbitrary<std::int64_t>()) + "\r\n";
    case 3:
      return "$-1\r\n";
    case 4:
      return "*-1\r\n";
    case 5:
      return stores::redis::as_argument(*rc::gen::string<std::string>());
    default:
      break;
  }
  const auto count = *rc::gen::inRange(0, 5);
  auto bytes = "*" + std::to_string(count) + "\r\n";
  for (int i = 0; i < count; ++i)
    bytes += any_reply(depth + 1);
  return bytes;
}

std::string any_stream() {
  std::string bytes;
  const auto count = *rc::gen::inRange(1, 6);
  for (int i = 0; i < count; ++i)
    bytes += any_reply(0);
  return bytes;
}

std::string shown(const reply_value& r) {
  switch (r.type) {
    case reply_kind::nothing:
      return "nothing";
    case reply_kind::integer:
      return std::to_string(r.integer);
    case reply_kind::text:
      return "text " + std::to_string(r.text.size()) + " " + r.text;
    case reply_kind::status:
      return "status " + r.text;
    case reply_kind::error:
      return "error " + r.text;
    case reply_kind::array:
    case reply_kind::push:
      break;
  }
  std::string all = r.type == reply_kind::push ? "push[" : "[";
  for (const auto* one : elements_of(r))
    all += shown(*one) + ",";
  return all + "]";
}

std::string shown(const redisReply& r) {
  const auto text = [&] { return std::string{r.str, static_cast<std::size_t>(r.len)}; };
  switch (r.type) {
    case REDIS_REPLY_INTEGER:
      return std::to_string(r.integer);
    case REDIS_REPLY_STRING:
      return "text " + std::to_string(r.len) + " " + text();
    case REDIS_REPLY_STATUS:
      return "status " + text();
    case REDIS_REPLY_ERROR:
      return "error " + text();
    case REDIS_REPLY_ARRAY:
      break;
    default:
      return "nothing";
  }
  std::string all = "[";
  for (std::size_t i = 0; i < r.elements; ++i)
    all += shown(*r.element[i]) + ",";
  return all + "]";
}

std::vector<std::string> read_by_us(const std::vector<std::string>& pieces) {
  reply_reader reader;
  std::vector<std::string> all;
  for (const auto& piece : pieces) {
    reader.feed(piece);
    while (const auto one = reader.next())
      all.push_back(shown(*one));
  }
  all.push_back("then: " + std::string{reader.trouble()});
  return all;
}

std::vector<std::string> read_by_hiredis(const std::string& bytes) {
  const std::unique_ptr<redisReader, void (*)(redisReader*)> reader{::redisReaderCreate(),
                                                                    &::redisReaderFree};
  ::redisReaderFeed(reader.get(), bytes.data(), bytes.size());
  std::vector<std::string> all;
  for (;;) {
    void* one = nullptr;
    RC_ASSERT(::redisReaderGetReply(reader.get(), &one) == REDIS_OK);
    if (one == nullptr) break;
    all.push_back(shown(*static_cast<redisReply*>(one)));
    ::freeReplyObject(one);
  }
  all.emplace_back("then: ");
  return all;
}

std::vector<std::string> cut_anywhere(const std::string& bytes) {
  std::vector<std::string> pieces;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto length = static_cast<std::size_t>(*rc::gen::inRange(1, 40));
    pieces.push_back(bytes.substr(at, length));
    at += length;
  }
  return pieces;
}

std::vector<std::string> into_bytes(const std::string& bytes) {
  std::vector<std::string> pieces;
  for (const char c : bytes)
    pieces.emplace_back(1, c);
  return pieces;
}

// Replies of all kinds, RESP3 included, and what is no reply.
std::string any_rubbish() {
  auto bytes = any_stream();
  const auto changes = *rc::gen::inRange(0, 4);
  const std::string alphabet = "+-:$*_#,(!=%~>|\r\n0123456789?x";
  for (int i = 0; i < changes; ++i) {
    const auto at = static_cast<std::size_t>(*rc::gen::inRange<std::size_t>(0, bytes.size()));
    bytes[at] = *rc::gen::elementOf(alphabet);
  }
  return bytes;
}

}  // namespace

RC_GTEST_PROP(RespReader, ReadsTheSameHoweverTheBytesAreCut, ()) {
  const auto bytes = any_stream();
  const auto whole = read_by_us({bytes});
  RC_ASSERT(read_by_us(into_bytes(bytes)) == whole);
  RC_ASSERT(read_by_us(cut_anywhere(bytes)) == whole);
}

RC_GTEST_PROP(RespReader, ReadsAndRefusesTheSameHoweverRubbishIsCut, ()) {
  const auto bytes = any_rubbish();
  const auto whole = read_by_us({bytes});
  RC_ASSERT(read_by_us(into_bytes(bytes)) == whole);
  RC_ASSERT(read_by_us(cut_anywhere(bytes)) == whole);
}

RC_GTEST_PROP(RespReader, ReadsWhatHiredisReads, ()) {
  const auto bytes = any_stream();
  RC_ASSERT(read_by_us({bytes}) == read_by_hiredis(bytes));
}

}  // namespace holdfast::test
