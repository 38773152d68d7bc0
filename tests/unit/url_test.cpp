// Store URLs: the good ones, the bad ones, and passwords that must not be repeated.
#include "client/url.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

using namespace std::chrono_literals;
using namespace std::string_literals;

namespace holdfast::test {

namespace {

using detail::parse_url;
using detail::store_url;
using kind = store_url::kind;
using testing::HasSubstr;

store_url good(std::string_view text) {
  auto url = parse_url(text);
  EXPECT_TRUE(url) << text << ": " << (url ? "" : url.error().message);
  return url ? *url : store_url{};
}

void expect_bad(std::string_view text, const std::string& says) {
  const auto url = parse_url(text);
  ASSERT_FALSE(url) << text;
  EXPECT_EQ(url.error().code, errc::invalid_argument) << text;
  EXPECT_THAT(url.error().message, HasSubstr(says)) << text;
}

std::string percent_encoded(const std::string& bytes) {
  constexpr std::string_view hex = "0123456789ABCDEF";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += {'%', hex[byte >> 4], hex[byte & 0xf]};
  }
  return text;
}

// These letters are in no message of ours: where one is shown, it came from the password.
constexpr std::string_view secret_letters = "QZXJ";

bool shows_a_secret(const std::string& message) {
  return message.find_first_of(secret_letters) != std::string::npos;
}

}  // namespace

TEST(Url, HostAloneHasDefaults) {
  const auto url = good("redis://db.example");
  EXPECT_EQ(url.what, kind::tcp);
  EXPECT_EQ(url.host, "db.example");
  EXPECT_EQ(url.port, 6379);
  EXPECT_EQ(url.database, 0);
  EXPECT_EQ(url.user, "");
  EXPECT_EQ(url.password, "");
  EXPECT_EQ(url.prefix, "");
  EXPECT_EQ(good("redis://db.example/").database, 0);
}

TEST(Url, EveryPartIsFound) {
  const auto url =
      good("redis://app:pw@db:6380/3?prefix=locks%3A&spin=0&connections=2&foreign=share");
  EXPECT_EQ(url.user, "app");
  EXPECT_EQ(url.password, "pw");
  EXPECT_EQ(url.host, "db");
  EXPECT_EQ(url.port, 6380);
  EXPECT_EQ(url.database, 3);
  EXPECT_EQ(url.prefix, "locks:");
  EXPECT_EQ(url.spin, 0us);
  EXPECT_EQ(url.connections, 2U);
  EXPECT_TRUE(url.share_with_foreign);
  EXPECT_FALSE(good("redis://db").share_with_foreign);
}

TEST(Url, PasswordWithoutUserIsForTheDefaultUser) {
  const auto url = good("redis://:pw@db");
  EXPECT_EQ(url.user, "");
  EXPECT_EQ(url.password, "pw");
}

RC_GTEST_PROP(Url, PercentEncodedUserAndPasswordMayBeAnyBytes,
              (std::string user, std::string password)) {
  const auto url = parse_url("redis://" + percent_encoded(user) + ":" + percent_encoded(password) +
                             "@db:1/2?prefix=" + percent_encoded(user));
  RC_ASSERT(url.has_value());
  RC_ASSERT(url->user == user);
  RC_ASSERT(url->password == password);
  RC_ASSERT(url->prefix == user);
  RC_ASSERT(url->host == "db");
}

TEST(Url, PasswordMayHoldColonsAndAtSigns) {
  const auto url = good("redis://app:a:b@c@db:7");
  EXPECT_EQ(url.password, "a:b@c");
  EXPECT_EQ(url.host, "db");
  EXPECT_EQ(url.port, 7);
}

TEST(Url, Ipv6AddressIsInBrackets) {
  EXPECT_EQ(good("redis://[::1]").host, "::1");
  EXPECT_EQ(good("redis://[::1]").port, 6379);
  const auto url = good("redis://:pw@[fe80::1]:6380/1");
  EXPECT_EQ(url.host, "fe80::1");
  EXPECT_EQ(url.port, 6380);
  EXPECT_EQ(url.database, 1);
  expect_bad("redis://::1", "brackets");
  expect_bad("redis://fe80::1:6379", "brackets");
  expect_bad("redis://[::1", "[ without a ]");
  expect_bad("redis://[::1]6379", "after the address");
  expect_bad("redis://[]", "host");
}

TEST(Url, UnixSocketIsAnAbsolutePath) {
  const auto url = good("unix:/run/my%20redis.sock?db=4&prefix=p");
  EXPECT_EQ(url.what, kind::unix_socket);
  EXPECT_EQ(url.path, "/run/my redis.sock");
  EXPECT_EQ(url.database, 4);
  EXPECT_EQ(url.prefix, "p");
  EXPECT_EQ(good("unix:///run/redis.sock").path, "/run/redis.sock");
  expect_bad("unix:redis.sock", "absolute path");
  expect_bad("unix:", "absolute path");
  expect_bad("unix:/a%2", "path");
}

TEST(Url, LocalAndMemoryNameNoServer) {
  EXPECT_EQ(good("local:").what, kind::local);
  EXPECT_EQ(good("local:?prefix=a").prefix, "a");
  expect_bad("local:/somewhere", "no path");
  EXPECT_EQ(good("memory:").what, kind::memory);
  EXPECT_EQ(good("memory:").name, "");
  EXPECT_EQ(good("memory:mine").name, "mine");
  expect_bad("memory:?prefix=a", "no options");
}

TEST(Url, WhatIsNoUrlIsToldTheForms) {
  for (const auto text : {"", "localhost", "localhost:6379", "http://db", "REDIS://db", ":"}) {
    expect_bad(text, "a store URL is one of local:");
  }
  expect_bad("redis:db", "//");
  expect_bad("redis:", "//");
}

TEST(Url, SchemesOfLaterVersionsAreNamed) {
  for (const auto scheme : {"redis+sentinel", "zookeeper", "etcd"}) {
    expect_bad(scheme + "://db"s, scheme + ":// is not supported by this version"s);
  }
  expect_bad("redis://a,b,c", "one host");
}

TEST(Url, ClusterTakesNodesToBeginWith) {
  const auto url = good("redis+cluster://app:secret@a:7001,b,[::1]:7003/0?prefix=x:&spin=0");
  EXPECT_EQ(url.what, kind::cluster);
  const std::vector<store_url::node> nodes{{"a", 7001}, {"b", 6379}, {"::1", 7003}};
  EXPECT_EQ(url.nodes, nodes);
  EXPECT_EQ(url.user, "app");
  EXPECT_FALSE(url.has_tls);
  EXPECT_TRUE(good("rediss+cluster://a?ca=/ca.pem").has_tls);
  expect_bad("redis+cluster://a/1", "database 0 only");
  expect_bad("redis+cluster://", "names no host");
  expect_bad("redis+cluster://a,", "comma");
  expect_bad("redis+cluster://a,a", "twice");
  expect_bad("redis+cluster://a?node_timeout=5", "does not exist");
  expect_bad("redis+cluster:a", "//");
}

TEST(Url, RedlockTakesSeveralNodes) {
  const auto url = good("redlock://app:secret@a:7001,b,[::1]:7003/2?node_timeout=80&max_ttl=5000");
  EXPECT_EQ(url.what, kind::redlock);
  const std::vector<store_url::node> nodes{{"a", 7001}, {"b", 6379}, {"::1", 7003}};
  EXPECT_EQ(url.nodes, nodes);
  EXPECT_EQ(url.user, "app");
  EXPECT_EQ(url.password, "secret");
  EXPECT_EQ(url.database, 2);
  EXPECT_EQ(url.node_timeout, 80ms);
  EXPECT_EQ(url.max_ttl, 5s);
  EXPECT_EQ(url.epoch, 1U);
  EXPECT_EQ(good("redlock://a?epoch=7&prefix=x:&spin=0").epoch, 7U);
  EXPECT_EQ(good("redlock://a,b").nodes.size(), 2U) << "an even number is allowed";
}

TEST(Url, BadRedlockUrlsAreNamed) {
  expect_bad("redlock://", "names no host");
  expect_bad("redlock:a,b", "followed by //");
  expect_bad("redlock://a,b,a", "twice");
  expect_bad("redlock://a,b:6379,b", "twice");
  expect_bad("redlock://a,,b", "names no host");
  expect_bad("redlock://a,b,", "no host after it");
  expect_bad("redlock://a,b:x", "port");
  expect_bad("redlock://a,b?node_timeout=0", "node_timeout");
  expect_bad("redlock://a,b?max_ttl=1", "max_ttl");
  expect_bad("redlock://a1,a2,a3,a4,a5,a6,a7,a8,a9,b1,b2,b3,b4,b5,b6,b7", "at most 15");
  expect_bad("redis://a?max_ttl=5000", "does not exist");
}

TEST(Url, TlsIsInTheScheme) {
  EXPECT_FALSE(good("redis://db").has_tls);
  EXPECT_FALSE(good("redlock://a,b,c").has_tls);
  const auto one = good("rediss://app:pw@db:6380/3?ca=%2Fca.pem&cert=/me.pem&key=/me.key");
  EXPECT_TRUE(one.has_tls);
  EXPECT_EQ(one.what, kind::tcp);
  EXPECT_EQ(one.host, "db");
  EXPECT_EQ(one.database, 3);
  EXPECT_EQ(one.tls.ca, "/ca.pem");
  EXPECT_EQ(one.tls.cert, "/me.pem");
  EXPECT_EQ(one.tls.key, "/me.key");
  EXPECT_EQ(one.tls.server_name, "");
  const auto several = good("redlock+tls://a,b:7,c?server_name=redis.example&epoch=2");
  EXPECT_TRUE(several.has_tls);
  EXPECT_EQ(several.what, kind::redlock);
  EXPECT_EQ(several.nodes.size(), 3U);
  EXPECT_EQ(several.tls.server_name, "redis.example");
  expect_bad("rediss:db", "rediss://host[:port]");
  expect_bad("redlock+tls:a,b", "redlock+tls://host1,host2");
}

// Accepted and ignored they would promise what does not happen.
TEST(Url, OptionsOfTlsAreRefusedWithoutIt) {
  for (const auto* option : {"ca=/x", "cert=/x", "key=/x", "server_name=x"}) {
    expect_bad("redis://db?"s + option, "rediss://");
    expect_bad("redlock://a,b,c?"s + option, "redlock+tls://");
    expect_bad("local:?"s + option, "TLS");
  }
  expect_bad("rediss://db?key=/x", "no cert");
  expect_bad("rediss://db?ca=", "option ca");
  expect_bad("rediss://db?ca=a%00b", "option ca");
}

TEST(Url, VerificationCannotBeSwitchedOff) {
  expect_bad("rediss://db?verify=none", "server_name=");
  expect_bad("redis://db?verify=none", "always");
}

TEST(Url, PasswordMayBeInAFile) {
  const auto url = good("redis://app@db?password_file=/run/secrets/a%26b");
  EXPECT_EQ(url.user, "app");
  EXPECT_EQ(url.password_file, "/run/secrets/a&b");
  EXPECT_EQ(good("redlock+tls://a,b,c?password_file=/p").password_file, "/p");
  EXPECT_EQ(good("unix:/redis.sock?password_file=/p").password_file, "/p");
  expect_bad("redis://app:pw@db?password_file=/p", "a password and a password_file");
  expect_bad("redis://:@db?password_file=/p", "a password and a password_file");
  expect_bad("redis://db?password_file=", "password_file");
  expect_bad("local:?password_file=/p", "not for local:");
}

TEST(Url, BadPartsAreNamed) {
  expect_bad("redis://", "host");
  expect_bad("redis://:6379", "host");
  expect_bad("redis://app@db", "user name without a password");
  for (const auto port : {"", "0", "65536", "x", "-1", "1x", " 1", "99999999999"}) {
    expect_bad("redis://db:"s + port, "port");
  }
  for (const auto database : {"x", "-1", "1000001", "99999999999", "1/2"}) {
    expect_bad("redis://db/"s + database, "database");
  }
}

TEST(Url, SeveralHostsForOneServerSuggestRedlock) {
  for (const auto* hosts : {"a,b", "a:6379,b:6379", "a:1,b:2,c:3/1", "u:p@a:1,b:2"}) {
    expect_bad("redis://"s + hosts, "redlock://");
  }
}

TEST(Url, WhiteSpaceAtTheEndIsIgnored) {
  EXPECT_EQ(good("redis://db.example:7000/2\n").database, 2);
  EXPECT_EQ(good("redis://db.example\r\n").host, "db.example");
  EXPECT_EQ(good("unix:/run/redis.sock \n").path, "/run/redis.sock");
  EXPECT_EQ(good("redis://db.example?prefix=a:\n").prefix, "a:");
}

TEST(Url, BadOptionsAreNamed) {
  expect_bad("redis://db?colour=red", "colour");
  expect_bad("redis://db?prefix", "option=value");
  expect_bad("redis://db?db=1", "db");
  for (const auto spin : {"", "-1", "1001", "fast"})
    expect_bad("redis://db?spin="s + spin, "spin");
  for (const auto many : {"0", "65", "x"}) {
    expect_bad("redis://db?connections="s + many, "connections");
    expect_bad("redis://db?foreign="s + many, "foreign");
  }
  expect_bad("redis://db?prefix=%", "prefix");
  expect_bad("redis://db?prefix=" + std::string(257, 'x'), "256");
  EXPECT_EQ(good("redis://db?&&spin=1&").spin, 1us);
}

// Accepted and ignored they would promise what a quorum does not do.
TEST(Url, OptionsOfOneServerAreRefusedOnAQuorum) {
  for (const auto* option : {"foreign=share", "connections=4", "foreign=x", "connections=0"}) {
    expect_bad("redlock://a,b,c?"s + option, "redlock:// has no option");
    expect_bad("redlock://a,b,c?prefix=p&"s + option, "node_timeout");
  }
}

TEST(Url, PercentMustBeFollowedByTwoHexDigits) {
  for (const auto bad : {"%", "%4", "%zz", "%4z", "%-1", "%+1", "% 1"}) {
    expect_bad("redis://u:"s + bad + "@db", "password");
    expect_bad("redis://"s + bad + ":p@db", "user name");
  }
}

TEST(Url, MessagesArePrintable) {
  const auto url = parse_url("redis://db?\x1b[2J\n=1");
  ASSERT_FALSE(url);
  EXPECT_THAT(url.error().message, HasSubstr("\\x1b[2J\\n"));
}

TEST(Url, UnencodedPasswordThatLooksLikeOtherPartsIsNotRepeated) {
  for (const auto password : {"QZ/XJ", "QZ?XJ", "12/QZXJ", "12?QZXJ", "12?QZ=XJ", "1/2?QZXJ"}) {
    const auto url = parse_url("redis://app:"s + password + "@db:6379/1");
    const auto message = url ? ""s : url.error().message;
    EXPECT_FALSE(shows_a_secret(message)) << message;
  }
}

RC_GTEST_PROP(Url, NoPartOfAPasswordIsEverInAMessage, ()) {
  const auto password = *rc::gen::container<std::string>(rc::gen::element(
      'Q', 'Z', 'X', 'J', '1', '/', '?', '#', '&', '=', ':', '@', '%', '[', ']', ',', ' '));
  const auto user = *rc::gen::element(""s, "app"s, "%"s);
  const auto rest = *rc::gen::element("db"s, "db:1"s, "db:x"s, "db/x"s, "db?x"s, "db?x=1"s, ""s,
                                      "::1"s, "[::1"s, "a,b"s, "db?spin=x"s, "db?prefix=%"s);
  const auto scheme =
      *rc::gen::element("redis://"s, "redis:"s, "rediss://"s, "redlock+tls://"s, "x://"s, ""s);
  const auto url = parse_url(scheme + user + ":" + password + "@" + rest);
  if (!url) RC_ASSERT(!shows_a_secret(url.error().message));
}

}  // namespace holdfast::test
