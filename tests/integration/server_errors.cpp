// Every refusal of a server is a clear error or is waited out, and none of them shows a secret.
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "support/canned_server.hpp"
#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

// Gives up on a server that does not serve soon.
const client_options impatient{.operation_timeout = 500ms, .unreachable_limit = 600ms};
const client_options patient{.lock = {.ttl = 60s}, .unreachable_limit = 60s};

errc acquiring(client& c, std::string* what = nullptr) {
  return thrown_by([&] { (void)c.mutex("orders").acquire(); }, what);
}

errc acquiring(const std::string& url, std::string* what = nullptr) {
  return thrown_by([&] { (void)client{url, impatient}.mutex("orders").acquire(); }, what);
}

}  // namespace

class ServerErrors : public proxied_redis {};

TEST_F(ServerErrors, LongScriptOfSomebodyElseIsStoreBusy) {
  client waits = through_proxy(patient);
  ASSERT_EQ(server.command({"CONFIG", "SET", "busy-reply-threshold", "1"}), "OK");
  raw_redis hog{server.where()};
  hog.send({"EVAL", "while true do end", "0"});
  ASSERT_TRUE(eventually([&] { return server.command({"GET", "x"}).starts_with("(error) BUSY"); }));
  client gives_up = direct(impatient);
  EXPECT_EQ(acquiring(gives_up), errc::store_busy);

  std::optional<lease> got;
  std::thread waiter{[&] { got = waits.mutex("orders").acquire(); }};
  EXPECT_TRUE(proxy.await_request(asks, 2)) << "it was told BUSY and asks again";
  EXPECT_EQ(server.command({"SCRIPT", "KILL"}), "OK");
  waiter.join();
  EXPECT_TRUE(got);
  EXPECT_TRUE(hog.receive().is_error());
}

TEST(LoadingServer, IsWaitedForOrStoreLoading) {
  redis_server server{{.while_loading = true}};
  raw_redis filler{server.where()};
  constexpr int keys = 12'000;
  (void)filler.command(
      {"EVAL", "for i = 1, " + std::to_string(keys) + " do redis.call('SET', i, i) end", "0"});
  ASSERT_EQ(server.command({"SAVE"}), "OK");
  server.kill9();
  // A moment for each key, and after a hundred of them the clients are heard: some seconds in all,
  // and an answer in a fraction of what the impatient one has.
  std::ofstream{server.folder() / "redis.conf", std::ios::app}
      << "key-load-delay 100\nloading-process-events-interval-bytes 1024\n";
  server.restart();
  client gives_up{server.url(), impatient};
  EXPECT_EQ(acquiring(gives_up), errc::store_loading);
  client waits{server.url(), patient};
  EXPECT_EQ(acquiring(waits), errc{});
}

TEST_F(ServerErrors, FullMemoryIsOutOfMemoryButHeldLocksLiveOn) {
  client c = direct(impatient);
  lease held = c.mutex("stock").acquire();
  ASSERT_EQ(server.command({"CONFIG", "SET", "maxmemory", "1"}), "OK");
  EXPECT_EQ(acquiring(c), errc::out_of_memory);
  EXPECT_TRUE(held.renew());
  EXPECT_TRUE(held.release());
  EXPECT_FALSE(exists("stock"));
  ASSERT_EQ(server.command({"CONFIG", "SET", "maxmemory", "0"}), "OK");
  EXPECT_EQ(acquiring(c), errc{});
}

TEST_F(ServerErrors, ReplicaIsReadOnly) {
  client c = direct(impatient);
  lease held = c.mutex("stock").acquire();
  ASSERT_EQ(server.command({"REPLICAOF", "127.0.0.1", "1"}), "OK");
  EXPECT_EQ(acquiring(c), errc::read_only);
  const auto renewed = held.renew();
  ASSERT_FALSE(renewed);
  EXPECT_EQ(renewed.error().code, errc::read_only);
  EXPECT_TRUE(held.held()) << "not renewed is not lost yet";
}

TEST(Passwords, MissingOrWrongIsNotAuthenticatedAndNeverShown) {
  redis_server server{{.tcp = true, .password = "open-sesame"}};
  const std::string at = "@127.0.0.1:" + std::to_string(server.port());
  std::string what;
  EXPECT_EQ(acquiring(server.tcp_url(), &what), errc::not_authenticated) << what;
  EXPECT_EQ(acquiring("redis://:wrong-secret" + at, &what), errc::not_authenticated) << what;
  EXPECT_EQ(what.find("wrong-secret"), std::string::npos) << what;
  EXPECT_EQ(acquiring("redis://nobody:wrong-secret" + at, &what), errc::not_authenticated) << what;
  EXPECT_EQ(what.find("wrong-secret"), std::string::npos) << what;
  EXPECT_EQ(acquiring("redis://:open-sesame" + at, &what), errc{}) << what;
  // Nor when the server is not there at all, nor when the URL makes no sense.
  server.kill9();
  EXPECT_EQ(acquiring("redis://:open-sesame" + at, &what), errc::store_unreachable) << what;
  EXPECT_EQ(what.find("sesame"), std::string::npos) << what;
  EXPECT_EQ(acquiring("redis://:open-sesame" + at + "/not-a-number", &what),
            errc::invalid_argument);
  EXPECT_EQ(what.find("sesame"), std::string::npos) << what;
}

TEST(Passwords, UsersAndEscapedPasswordsWork) {
  redis_server server{{.tcp = true}};
  ASSERT_EQ(server.command({"ACL", "SETUSER", "worker", "on", ">p@ss:/word%", "~*", "+@all"}),
            "OK");
  std::string what;
  const std::string at = "@127.0.0.1:" + std::to_string(server.port());
  EXPECT_EQ(acquiring("redis://worker:p%40ss%3A%2Fword%25" + at, &what), errc{}) << what;
}

TEST(AccessRules, CommandOrKeyThatIsRefusedIsNotPermitted) {
  redis_server server{{.tcp = true}};
  ASSERT_EQ(
      server.command({"ACL", "SETUSER", "mute", "on", ">pw", "~*", "+@all", "-evalsha", "-eval"}),
      "OK");
  ASSERT_EQ(server.command({"ACL", "SETUSER", "elsewhere", "on", ">pw", "~other*", "+@all"}), "OK");
  ASSERT_EQ(server.command({"ACL", "SETUSER", "nowrite", "on", ">pw", "~*", "+@all", "-set"}),
            "OK");
  const std::string at = "@127.0.0.1:" + std::to_string(server.port());
  for (const char* user : {"mute", "elsewhere", "nowrite"}) {
    std::string what;
    EXPECT_EQ(acquiring("redis://" + std::string{user} + ":pw" + at, &what), errc::not_permitted)
        << user << ": " << what;
  }
}

TEST(NotRedis, AnHttpServerIsIncompatible) {
  canned_server http{"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"};
  std::string what;
  EXPECT_EQ(acquiring(http.url(), &what), errc::incompatible) << what;
  EXPECT_NE(what.find("127.0.0.1"), std::string::npos) << "names the server: " << what;
}

TEST(NotRedis, AServerThatSaysNothingIsUnreachable) {
  canned_server mute{""};
  EXPECT_EQ(acquiring(mute.url()), errc::store_unreachable);
}

TEST_F(ServerErrors, TooOldARedisIsIncompatible) {
  proxy.inject(fault::answer, "HELLO", 1000,
               "-ERR unknown command `HELLO`, with args beginning with: `2`, \r\n");
  std::string what;
  EXPECT_EQ(acquiring(proxy.url(), &what), errc::incompatible);
  EXPECT_NE(what.find("6.0"), std::string::npos) << what;
}

TEST_F(ServerErrors, ClusterMemberIsSaidToBeOne) {
  proxy.inject(fault::answer, asks, 1000, "-MOVED 3999 127.0.0.1:6381\r\n");
  EXPECT_EQ(acquiring(proxy.url()), errc::moved);
}

TEST_F(ServerErrors, UnknownErrorIsShownAsItIs) {
  proxy.inject(fault::answer, asks, 1000, "-WEIRD \x01 thing\r\n");
  std::string what;
  EXPECT_EQ(acquiring(proxy.url(), &what), errc::store_refused);
  EXPECT_NE(what.find("WEIRD"), std::string::npos) << what;
  EXPECT_EQ(what.find('\x01'), std::string::npos) << "escaped";
}

TEST_F(ServerErrors, ErrorsSayWhatTheNodeAnswered) {
  client c = through_proxy(impatient);
  proxy.inject(fault::answer, asks, 1000, "-WEIRD thing\r\n");
  try {
    (void)c.mutex("orders").acquire();
    FAIL();
  } catch (const error& e) {
    ASSERT_EQ(e.nodes().size(), 1U);
    EXPECT_NE(e.nodes()[0].answer.find("WEIRD"), std::string::npos);
    EXPECT_FALSE(e.nodes()[0].node.empty());
  }
}

// Nobody there: found out at once, tried for as long as was said, no longer.
TEST(Unreachable, NothingListeningIsStoreUnreachable) {
  std::string what;
  const auto started = runtime::now();
  EXPECT_EQ(acquiring("redis://127.0.0.1:" + std::to_string(free_port()), &what),
            errc::store_unreachable);
  EXPECT_EQ(acquiring("unix:/nowhere/redis.sock", &what), errc::store_unreachable);
  EXPECT_NE(what.find("/nowhere/redis.sock"), std::string::npos) << what;
  EXPECT_LT(runtime::now() - started, 20s);
}

TEST(Unreachable, TryAcquireThrowsInsteadOfSayingBusy) {
  client c{"unix:/nowhere/redis.sock", impatient};
  EXPECT_EQ(thrown_by([&] { (void)c.mutex("orders").try_acquire(); }), errc::store_unreachable);
  EXPECT_EQ(make_error_code(errc::store_unreachable), condition::try_again);
}

TEST(Unreachable, UrlsThatMakeNoSenseAreRefusedAtOnce) {
  for (const char* url : {"", "redis", "redis://", "http://localhost", "redis://host:notaport",
                          "redis://host:70000", "unix:", "redis://host/?nonsense=1",
                          "redis://host?spin=-1", "redis://host?connections=0"}) {
    EXPECT_EQ(thrown_by([&] { client c{url}; }), errc::invalid_argument) << url;
  }
}

}  // namespace holdfast::test
