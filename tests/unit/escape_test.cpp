// Untrusted bytes as text that cannot move a cursor, forge a line or turn text around.
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <holdfast/untrusted.hpp>

using namespace std::string_literals;

namespace holdfast::test {

using untrusted::escape;

namespace {

// What a reader of escaped text does to get the bytes back.
std::string unescape(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      bytes += text[i];
      continue;
    }
    switch (text.at(++i)) {
      case '\\':
        bytes += '\\';
        break;
      case 'n':
        bytes += '\n';
        break;
      case 'r':
        bytes += '\r';
        break;
      case 't':
        bytes += '\t';
        break;
      case 'x':
        bytes += static_cast<char>(std::stoi(std::string{text.substr(i + 1, 2)}, nullptr, 16));
        i += 2;
        break;
      default:
        return "not an escape";
    }
  }
  return bytes;
}

// UTF-8 as its standard's table of well-formed sequences has it, byte ranges and all.
bool is_well_formed(std::string_view text) {
  const auto in = [&](std::size_t i, unsigned low, unsigned high) {
    return i < text.size() && static_cast<unsigned char>(text[i]) >= low &&
           static_cast<unsigned char>(text[i]) <= high;
  };
  std::size_t i = 0;
  while (i < text.size()) {
    const auto tail = [&](std::size_t at) { return in(at, 0x80, 0xbf); };
    const bool three =
        (in(i, 0xe0, 0xe0) && in(i + 1, 0xa0, 0xbf)) || (in(i, 0xe1, 0xec) && tail(i + 1)) ||
        (in(i, 0xed, 0xed) && in(i + 1, 0x80, 0x9f)) || (in(i, 0xee, 0xef) && tail(i + 1));
    const bool four = (in(i, 0xf0, 0xf0) && in(i + 1, 0x90, 0xbf)) ||
                      (in(i, 0xf1, 0xf3) && tail(i + 1)) ||
                      (in(i, 0xf4, 0xf4) && in(i + 1, 0x80, 0x8f));
    if (in(i, 0, 0x7f))
      i += 1;
    else if (in(i, 0xc2, 0xdf) && tail(i + 1))
      i += 2;
    else if (three && tail(i + 2))
      i += 3;
    else if (four && tail(i + 2) && tail(i + 3))
      i += 4;
    else
      return false;
  }
  return true;
}

std::string utf8(char32_t c) {
  const auto tail = [&](unsigned shift) { return static_cast<char>(0x80 | ((c >> shift) & 0x3f)); };
  if (c < 0x80) return {static_cast<char>(c)};
  if (c < 0x800) return {static_cast<char>(0xc0 | (c >> 6)), tail(0)};
  if (c < 0x10000) return {static_cast<char>(0xe0 | (c >> 12)), tail(6), tail(0)};
  return {static_cast<char>(0xf0 | (c >> 18)), tail(12), tail(6), tail(0)};
}

// Bytes that are interesting: whole characters, pieces of them, and anything.
rc::Gen<std::string> any_bytes() {
  return rc::gen::map(
      rc::gen::container<std::vector<std::string>>(rc::gen::oneOf(
          rc::gen::map(rc::gen::inRange(0, 0x110000),
                       [](int c) { return utf8(static_cast<char32_t>(c)); }),
          rc::gen::map(rc::gen::inRange(0x2000, 0x2070),
                       [](int c) { return utf8(static_cast<char32_t>(c)); }),
          rc::gen::map(rc::gen::inRange(0, 256),
                       [](int c) { return std::string(1, static_cast<char>(c)); }),
          rc::gen::element("\\"s, "\\x"s, "n"s, "41"s, "\n"s, "\x1b["s, "\xc3"s, "\xe2\x80"s))),
      [](const std::vector<std::string>& parts) {
        std::string all;
        for (const auto& one : parts)
          all += one;
        return all;
      });
}

}  // namespace

TEST(Escape, PlainTextIsShownAsItIs) {
  for (const auto text : {"", "orders/42", "Grüße an 東京 🙂", "a b=c;d%20{}*?\"'"}) {
    EXPECT_EQ(escape(text), text);
  }
}

TEST(Escape, ControlCharactersAreSpelt) {
  EXPECT_EQ(escape("a\nb\rc\td"), "a\\nb\\rc\\td");
  EXPECT_EQ(escape("\0\x01\x1b[2J\x7f"s), "\\x00\\x01\\x1b[2J\\x7f");
  EXPECT_EQ(escape("\xc2\x9b"
                   "31m"),
            "\\xc2\\x9b31m")
      << "CSI as one character";
}

TEST(Escape, BackslashIsDoubledSoThatNoEscapeCanBeForged) {
  EXPECT_EQ(escape("\\"), "\\\\");
  EXPECT_EQ(escape("\\n"), "\\\\n");
  EXPECT_NE(escape("\\n"), escape("\n"));
}

TEST(Escape, InvalidUtf8IsSpeltByteByByte) {
  EXPECT_EQ(escape("\xff"), "\\xff");
  EXPECT_EQ(escape("\xc3"), "\\xc3") << "cut short";
  EXPECT_EQ(escape("\xc3("), "\\xc3(");
  EXPECT_EQ(escape("\xe2\x82"), "\\xe2\\x82");
  EXPECT_EQ(escape("\xc0\xaf"), "\\xc0\\xaf") << "an overlong slash";
  EXPECT_EQ(escape("\xe0\x80\xaf"), "\\xe0\\x80\\xaf");
  EXPECT_EQ(escape("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half of a surrogate pair";
  EXPECT_EQ(escape("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond the last character";
}

TEST(Escape, CharactersThatTurnTextAroundOrHideAreSpelt) {
  std::vector<char32_t> tricks{0xad, 0x61c, 0xfeff};
  for (char32_t c = 0x200b; c <= 0x200f; ++c)
    tricks.push_back(c);
  for (char32_t c = 0x2028; c <= 0x202e; ++c)
    tricks.push_back(c);
  for (char32_t c = 0x2066; c <= 0x2069; ++c)
    tricks.push_back(c);
  tricks.push_back(0xe0041);
  for (const auto c : tricks) {
    const auto shown = escape("a" + utf8(c) + "b");
    EXPECT_EQ(shown.substr(0, 3), "a\\x") << std::hex << static_cast<unsigned>(c);
    EXPECT_EQ(unescape(shown), "a" + utf8(c) + "b");
  }
}

RC_GTEST_PROP(Escape, AnythingBecomesPrintableTextOnOneLine, ()) {
  const auto shown = escape(*any_bytes());
  RC_ASSERT(is_well_formed(shown));
  for (const char c : shown) {
    const auto byte = static_cast<unsigned char>(c);
    RC_ASSERT(byte >= 0x20);
    RC_ASSERT(byte != 0x7f);
  }
  for (char32_t c = 0x80; c < 0xa0; ++c)
    RC_ASSERT(shown.find(utf8(c)) == std::string::npos);
  for (char32_t c = 0x202a; c < 0x202f; ++c)
    RC_ASSERT(shown.find(utf8(c)) == std::string::npos);
}

RC_GTEST_PROP(Escape, NothingIsLost, ()) {
  const auto bytes = *any_bytes();
  RC_ASSERT(unescape(escape(bytes)) == bytes);
}

RC_GTEST_PROP(Escape, WellFormedTextWithoutTricksKeepsItsLength, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::inRange<char>(' ', '['));
  RC_ASSERT(escape(text) == text);
}

}  // namespace holdfast::test
