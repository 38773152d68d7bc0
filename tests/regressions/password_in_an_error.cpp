// A server that does not know HELLO repeats its arguments in the error, the password among them,
// and the error went into nodes() as it came. A password with a / or ? in it, or a URL without a
// host, ended up in the message about a bad port or option.
#include <string>

#include <gtest/gtest.h>

#include "support/canned_server.hpp"
#include "support/open_client.hpp"
#include "support/redis_server.hpp"
#include "support/watch.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

const std::string secret = "s3cret";

std::string with_password(const std::string& url) {
  constexpr std::string_view scheme = "redis://";
  return std::string{scheme} + ":" + secret + "@" + url.substr(scheme.size());
}

bool is_in(const std::string& text, const std::string& what) {
  return text.find(what) != std::string::npos;
}

// Everything that a failed acquisition tells, to its caller and to the observer.
void expect_secret_kept(const std::string& url, errc code) {
  const auto seen = std::make_shared<recorder>();
  client c{url, {.observer = seen}};
  const auto check = [&](const auto& call) {
    try {
      call();
      ADD_FAILURE() << "must fail";
    } catch (const error& e) {
      EXPECT_EQ(e.code(), code) << e.what();
      EXPECT_FALSE(is_in(e.what(), secret)) << e.what();
      EXPECT_FALSE(e.nodes().empty());
      for (const node_answer& one : e.nodes()) {
        EXPECT_FALSE(is_in(one.answer, secret)) << one.answer;
        EXPECT_FALSE(is_in(one.node, secret)) << one.node;
      }
    }
  };
  check([&] { (void)c.mutex("orders").acquire(); });
  check([&] { (void)c.mutex("orders").try_acquire(); });
  check([&] { (void)c.status("orders"); });
  check([&] { (void)c.list("*"); });
  for (const seen_event& one : seen->all())
    EXPECT_FALSE(is_in(one.detail, secret)) << one.detail;
}

}  // namespace

TEST(PasswordInAnError, OfARedisWithoutHello) {
  redis_server server{{.tcp = true, .config = {"rename-command HELLO \"\""}, .password = secret}};
  expect_secret_kept(with_password(server.tcp_url()), errc::incompatible);
}

TEST(PasswordInAnError, OfRedis5) {
  const canned_server server{
      "-ERR unknown command `HELLO`, with args beginning with: `2`, `AUTH`, "
      "`default`, `s3cret`, `SETNAME`, `holdfast`, \r\n"};
  expect_secret_kept(with_password(server.url()), errc::incompatible);
}

TEST(PasswordInAnError, OfAServerThatQuotesLikeRedis7) {
  const canned_server server{
      "-ERR unknown command 'HELLO', with args beginning with: '2' 'AUTH' "
      "'default' 's3cret' 'SETNAME' 'holdfast' \r\n"};
  expect_secret_kept(with_password(server.url()), errc::incompatible);
}

TEST(PasswordInAnError, OfAServerThatQuotesInItsOwnWay) {
  const canned_server server{"-ERR syntax error near \"AUTH\" \"default\" \"s3cret\"\r\n"};
  expect_secret_kept(with_password(server.url()), errc::store_refused);
}

TEST(PasswordInAnError, OfAUrlThatMakesNoSense) {
  for (const char* url : {
           "redis://user:hunter2/x@host",
           "redis://user:hunter2/x@host:6379/0",
           "redis://user:x/hunter2@host",
           "redis://user:hunter2?x@host",
           "redis://user:x?hunter2@host",
           "redis://user:x?hunter2=1@host",
           "redis://user:x?prefix=hunter2@host",
           "redis://user:hunter2#/@host/0",
           "redis://user:hunter2",
           "redis://user:hunter2/",
           "redis://user:hunter2/0",
           "redis://user:hunter2?prefix=x",
           "redis://user:hunter2@",
           "redis://user:hunter2@host:port",
           "redis://user:hunter2@host/database",
           "redis://user:hunter2@host?nonsense",
           "redis://user:hunter2@one,,two",
           "redis://user:hunter2%@host",
           "redis://user:hunter2%zz@host",
           "redis:user:hunter2@host",
           "rediss://user:hunter2@host:port",
           "rediss://user:hunter2@host?verify=none",
           "http://user:hunter2@host",
           "user:hunter2@host",
       }) {
    std::string what;
    EXPECT_EQ(thrown_by([&] { const client refused{url}; }, &what), errc::invalid_argument) << url;
    EXPECT_FALSE(is_in(what, "hunter2")) << url << ": " << what;
  }
}

}  // namespace holdfast::test
