// Patterns, against a matcher that is slow and obvious.
#include "stores/glob.hpp"

#include <algorithm>
#include <bitset>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace holdfast::test {

namespace {

using stores::glob_matches;

// One element of a pattern: a set of bytes, or *.
struct element {
  bool star = false;
  std::bitset<256> bytes;

  void add(char c) { bytes.set(static_cast<unsigned char>(c)); }
};

bool matches(const std::vector<element>& pattern, std::size_t at, std::string_view text) {
  if (at == pattern.size()) return text.empty();
  const auto& one = pattern[at];
  if (one.star) {
    return matches(pattern, at + 1, text) ||
           (!text.empty() && matches(pattern, at, text.substr(1)));
  }
  return !text.empty() && one.bytes.test(static_cast<unsigned char>(text[0])) &&
         matches(pattern, at + 1, text.substr(1));
}

// A class as Redis reads it. `i` is after the [, and ends after the ].
element read_class(std::string_view p, std::size_t& i) {
  element e;
  const bool negated = i < p.size() && p[i] == '^';
  if (negated) ++i;
  for (; i < p.size() && p[i] != ']'; ++i) {
    if (p[i] == '\\' && i + 1 < p.size()) {
      e.add(p[++i]);
    } else if (i + 2 < p.size() && p[i + 1] == '-') {
      for (int c = std::min(p[i], p[i + 2]); c <= std::max(p[i], p[i + 2]); ++c) {
        e.add(static_cast<char>(c));
      }
      i += 2;
    } else {
      e.add(p[i]);
    }
  }
  ++i;
  if (negated) e.bytes.flip();
  return e;
}

std::vector<element> read(std::string_view p) {
  std::vector<element> all;
  for (std::size_t i = 0; i < p.size();) {
    element e;
    if (p[i] == '[') {
      ++i;
      all.push_back(read_class(p, i));
      continue;
    }
    if (p[i] == '*')
      e.star = true;
    else if (p[i] == '?')
      e.bytes.set();
    else if (p[i] == '\\' && i + 1 < p.size())
      e.add(p[++i]);
    else
      e.add(p[i]);
    ++i;
    all.push_back(e);
  }
  return all;
}

// Every text of at most four of these bytes.
const std::vector<std::string>& short_texts() {
  static const auto all = [] {
    std::vector<std::string> texts{""};
    for (std::size_t i = 0; texts[i].size() < 4; ++i) {
      for (const char c : {'a', 'b', 'c', '-', ']'})
        texts.push_back(texts[i] + c);
    }
    return texts;
  }();
  return all;
}

void agree_on(const std::string& pattern) {
  const auto meant = read(pattern);
  for (const auto& text : short_texts()) {
    if (glob_matches(pattern, text) == matches(meant, 0, text)) continue;
    RC_FAIL("'" + pattern + "' on '" + text + "'");
  }
}

rc::Gen<std::string> joined(std::vector<std::string> parts) {
  return rc::gen::map(rc::gen::resize(12, rc::gen::container<std::vector<std::string>>(
                                              rc::gen::elementOf(std::move(parts)))),
                      [](const std::vector<std::string>& all) {
                        std::string text;
                        for (const auto& one : all)
                          text += one;
                        return text;
                      });
}

}  // namespace

TEST(Glob, KnowsWhatRedisKnows) {
  EXPECT_TRUE(glob_matches("*", ""));
  EXPECT_TRUE(glob_matches("*", "orders/42"));
  EXPECT_TRUE(glob_matches("orders/*", "orders/"));
  EXPECT_FALSE(glob_matches("orders/*", "orders"));
  EXPECT_TRUE(glob_matches("h?llo", "hello"));
  EXPECT_FALSE(glob_matches("h?llo", "hllo"));
  EXPECT_TRUE(glob_matches("h[ae]llo", "hallo"));
  EXPECT_FALSE(glob_matches("h[ae]llo", "hillo"));
  EXPECT_FALSE(glob_matches("h[^e]llo", "hello"));
  EXPECT_TRUE(glob_matches("h[a-c]llo", "hbllo"));
  EXPECT_TRUE(glob_matches("h[c-a]llo", "hbllo"));
  EXPECT_TRUE(glob_matches("a\\*b", "a*b"));
  EXPECT_FALSE(glob_matches("a\\*b", "axb"));
  EXPECT_FALSE(glob_matches("", "a"));
  EXPECT_FALSE(glob_matches("a", ""));
}

TEST(Glob, TakesAnyBytes) {
  const std::string binary{"\0\xff\n", 3};
  EXPECT_TRUE(glob_matches("???", binary));
  EXPECT_TRUE(glob_matches(binary, binary));
  EXPECT_TRUE(glob_matches("*\xff*", binary));
}

// What redis-server 7 answers to KEYS with such patterns.
TEST(Glob, OddClassesMeanWhatTheyMeanToRedis) {
  EXPECT_TRUE(glob_matches("[a", "a"));
  EXPECT_TRUE(glob_matches("[\\]", "]"));
  EXPECT_TRUE(glob_matches("\\", "\\"));
  EXPECT_FALSE(glob_matches("[]a]", "a"));
  EXPECT_TRUE(glob_matches("[^]", "a"));
  EXPECT_TRUE(glob_matches("[a-]", "`")) << "a range from ] to a";
  EXPECT_FALSE(glob_matches("[\\a-z]", "b")) << "an escaped byte starts no range";
}

TEST(Glob, NoPatternIsExpensive) {
  std::string pattern;
  for (int i = 0; i < 200; ++i)
    pattern += "*a";
  EXPECT_FALSE(glob_matches(pattern + "b", std::string(512, 'a')));
}

RC_GTEST_PROP(Glob, AgreesWithTheObviousMatcherOnWellFormedPatterns, ()) {
  agree_on(*joined({"a", "b", "-", "?", "*", "*", "\\a", "\\*", "[ab]", "[^a]", "[a-c]", "[c-a]",
                    "[^a-b]", "[-a]", "[\\]]", "[*]"}));
}

RC_GTEST_PROP(Glob, AgreesWithTheObviousMatcherOnAnyPattern, ()) {
  agree_on(*joined({"a", "c", "-", "a-", "?", "*", "\\", "[", "[", "[^", "]"}));
}

RC_GTEST_PROP(Glob, EscapedNameMatchesItselfAlone, (std::string name, std::string other)) {
  std::string pattern;
  for (const char c : name) {
    pattern += '\\';
    pattern += c;
  }
  RC_ASSERT(glob_matches(pattern, name));
  RC_ASSERT(glob_matches(pattern, other) == (other == name));
}

}  // namespace holdfast::test
