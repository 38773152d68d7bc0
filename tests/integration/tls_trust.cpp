// Whom a client believes over TLS, whom a server believes, and what is said if one does not.
#include <stdlib.h>
#include <sys/socket.h>

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "runtime/clock.hpp"
#include "support/certificates.hpp"
#include "support/open_client.hpp"
#include "support/redis_server.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

redis_server_options with_tls(server_tls how, std::vector<std::string> config = {}) {
  return {.tcp = true, .config = std::move(config), .tls = std::move(how)};
}

// By its address: a bare system may not know "localhost".
std::string at(const redis_server& server, const std::string& query) {
  return "rediss://127.0.0.1:" + std::to_string(server.port()) + "?" + query;
}

// What a client of this URL is told. errc{}: it got the lock.
errc tried(const std::string& url, std::string& words) {
  return thrown_by(
      [&] {
        client c{url, {.operation_timeout = 20s}};
        auto mutex = c.mutex("orders");
        if (!mutex.try_acquire()) throw std::runtime_error{"the lock was not free"};
      },
      &words);
}

errc tried(const std::string& url) {
  std::string ignored;
  const auto code = tried(url, ignored);
  EXPECT_EQ(ignored, "");
  return code;
}

void expect_refused(const std::string& url, const testing::Matcher<std::string>& words,
                    errc code = errc::not_trusted) {
  std::string said;
  EXPECT_EQ(tried(url, said), code) << said;
  EXPECT_THAT(said, words);
}

class TlsTrust : public testing::Test {
 protected:
  [[nodiscard]] server_tls shows(const certificate_files& what) const {
    return {.shows = what, .authority = ours_.file()};
  }
  [[nodiscard]] std::string believing_us() const { return "ca=" + ours_.file(); }
  [[nodiscard]] static std::string shown(const certificate_files& what) {
    return "&cert=" + what.cert + "&key=" + what.key;
  }

  const authority ours_{"our authority"};
  const authority theirs_{"another authority"};
};

}  // namespace

TEST_F(TlsTrust, CertificateIsGoodForTheNamesAndAddressesInIt) {
  const redis_server server{with_tls(shows(ours_.issue("server")))};
  EXPECT_EQ(tried(at(server, believing_us())), errc{});
  EXPECT_EQ(tried(at(server, believing_us() + "&server_name=localhost")), errc{});
  EXPECT_EQ(tried(at(server, believing_us() + "&server_name=localhost.")), errc{})
      << "the root's dot";
}

TEST_F(TlsTrust, AuthoritiesMayBeInAFolder) {
  const redis_server server{with_tls(shows(ours_.issue("server")))};
  EXPECT_EQ(tried(at(server, "ca=" + ours_.folder())), errc{});
  expect_refused(at(server, "ca=" + theirs_.folder()), HasSubstr("our authority"));
  expect_refused(at(server, "ca=" + theirs_.where().path().string()), HasSubstr("openssl rehash"),
                 errc::invalid_argument);
}

TEST_F(TlsTrust, SystemsAuthoritiesAreBelievedUnlessOthersAreNamed) {
  const redis_server server{with_tls(shows(ours_.issue("server")))};
  const std::string url = "rediss://127.0.0.1:" + std::to_string(server.port());
  expect_refused(url, HasSubstr("our authority"));
  ::setenv("SSL_CERT_FILE", ours_.file().c_str(), 1);  // the system's, to OpenSSL
  EXPECT_EQ(tried(url), errc{});
  expect_refused(url + "?ca=" + theirs_.file(), HasSubstr("our authority"));
  ::unsetenv("SSL_CERT_FILE");
}

TEST_F(TlsTrust, UnknownAuthorityIsNamed) {
  const redis_server server{with_tls(shows(ours_.issue("server")))};
  expect_refused(
      at(server, "ca=" + theirs_.file()),
      AllOf(HasSubstr("the authority \"our authority\", which this client does not know"),
            HasSubstr("HOLDFAST_TLS_CA"), HasSubstr(std::to_string(server.port()))));
}

TEST_F(TlsTrust, ExpiredCertificateIsRefusedWithItsDate) {
  const redis_server server{
      with_tls(shows(ours_.issue("server", {.first_day = -9, .last_day = -2})))};
  expect_refused(at(server, believing_us()),
                 AllOf(HasSubstr("the server's certificate expired on 20"), HasSubstr("renewed")));
}

TEST_F(TlsTrust, CertificateOfTheFutureIsRefused) {
  const redis_server server{
      with_tls(shows(ours_.issue("server", {.first_day = 2, .last_day = 9})))};
  expect_refused(at(server, believing_us()), HasSubstr("is not valid before 20"));
}

TEST_F(TlsTrust, CertificateOfAnotherHostIsRefusedUnlessThatHostIsMeant) {
  const redis_server server{with_tls(
      shows(ours_.issue("server", {.hosts = "DNS:redis.example,DNS:*.db.example,IP:192.0.2.7"})))};
  expect_refused(at(server, believing_us()),
                 AllOf(HasSubstr("redis.example, *.db.example, 192.0.2.7"),
                       HasSubstr("not for 127.0.0.1"), HasSubstr("server_name=")));
  const auto meaning = [&](const std::string& name) {
    return at(server, believing_us() + "&server_name=" + name);
  };
  expect_refused(meaning("localhost"), HasSubstr("not for localhost"));
  EXPECT_EQ(tried(meaning("redis.example")), errc{});
  EXPECT_EQ(tried(meaning("a.db.example")), errc{});
  EXPECT_EQ(tried(meaning("192.0.2.7")), errc{});
  expect_refused(meaning("a.b.db.example"), HasSubstr("not for a.b.db.example"));
  expect_refused(meaning("192.0.2.8"), HasSubstr("not for 192.0.2.8"));
}

TEST_F(TlsTrust, NamesInACertificateCannotForgeAMessage) {
  const redis_server server{
      with_tls(shows(ours_.issue("server", {.hosts = "DNS:a\x1b[2Jb.example"})))};
  expect_refused(at(server, believing_us()),
                 AllOf(HasSubstr("a\\x1b[2Jb"), Not(HasSubstr("\x1b"))));
}

TEST_F(TlsTrust, SelfSignedCertificateIsRefusedUnlessItIsNamed) {
  const auto own = ours_.self_signed("server");
  const redis_server server{with_tls(shows(own))};
  expect_refused(at(server, believing_us()),
                 AllOf(HasSubstr("signed by itself"), HasSubstr("ca=")));
  EXPECT_EQ(tried(at(server, "ca=" + own.cert)), errc{});
}

TEST_F(TlsTrust, ClientCertificateIsShownWhereItIsWanted) {
  auto tls = shows(ours_.issue("server"));
  tls.wants_certificate = true;
  const auto mine = ours_.issue("client");
  const auto foreign = theirs_.issue("client");
  const auto expired = ours_.issue("late", {.first_day = -9, .last_day = -2});
  for (const std::string version : {"TLSv1.2", "TLSv1.3"}) {
    SCOPED_TRACE(version);
    const redis_server server{with_tls(tls, {"tls-protocols " + version})};
    EXPECT_EQ(tried(at(server, believing_us() + shown(mine))), errc{});
    expect_refused(at(server, believing_us()),
                   AllOf(HasSubstr("client certificate"), HasSubstr("HOLDFAST_TLS_CERT")));
    expect_refused(at(server, believing_us() + shown(foreign)),
                   HasSubstr("the server refuses this client's certificate"));
    expect_refused(at(server, believing_us() + shown(expired)), HasSubstr("it has expired"));
  }
}

TEST_F(TlsTrust, CertificateAndKeyMayBeInOneFile) {
  auto tls = shows(ours_.issue("server"));
  tls.wants_certificate = true;
  const redis_server server{with_tls(tls)};
  const auto mine = ours_.issue("client");
  std::ofstream{mine.cert, std::ios::app} << std::ifstream{mine.key}.rdbuf();
  EXPECT_EQ(tried(at(server, believing_us() + "&cert=" + mine.cert)), errc{});
}

// Before anything is sent, and without a word of what is in them.
TEST_F(TlsTrust, FilesThatCannotBeUsedAreToldWhenTheClientIsMade) {
  const auto mine = ours_.issue("client");
  const auto other = ours_.issue("other");
  const auto empty = ours_.where().file("empty.pem");
  std::ofstream{empty}.flush();
  const auto refused = [&](const std::string& query, const std::string& words) {
    std::string said;
    EXPECT_EQ(thrown_by([&] { client{"rediss://127.0.0.1:1?" + query}; }, &said),
              errc::invalid_argument)
        << said;
    EXPECT_THAT(said, AllOf(HasSubstr(words), Not(HasSubstr("BEGIN"))));
  };
  refused("ca=/nonexistent/ca.pem", "(ca=) /nonexistent/ca.pem cannot be read: No such file");
  refused("ca=" + empty, "hold no certificate");
  refused("cert=" + empty, "holds no certificate");
  refused("cert=" + mine.cert + "&key=" + empty, "holds no private key");
  refused("cert=" + mine.cert + "&key=/nonexistent", "(key=) /nonexistent cannot be read");
  refused("cert=" + mine.cert + "&key=" + other.key, "does not belong to the certificate");
  refused("cert=" + mine.cert, "holds no private key");
  refused("cert=" + mine.cert + "&key=" + ours_.encrypted(mine), "is encrypted");
}

TEST_F(TlsTrust, NothingOlderThanTls12IsSpoken) {
  const redis_server server{with_tls(shows(ours_.issue("server")),
                                     {"tls-protocols TLSv1.1", "tls-ciphers DEFAULT@SECLEVEL=0"})};
  expect_refused(at(server, believing_us()), HasSubstr("version 1.2 or newer"), errc::incompatible);
}

TEST_F(TlsTrust, ServerWithTlsThatIsSpokenToInTheClearIsHintedAt) {
  const redis_server server{with_tls(shows(ours_.issue("server")))};
  expect_refused("redis://127.0.0.1:" + std::to_string(server.port()), HasSubstr("rediss://"),
                 errc::store_unreachable);
}

// Redis waits for the end of a line that TLS never sends. So does a server that says nothing.
TEST_F(TlsTrust, HandshakeEndsInTimeWhereNobodyAnswersIt) {
  const redis_server plain{{.tcp = true}};
  client c{at(plain, believing_us()), {.operation_timeout = 300ms}};
  auto mutex = c.mutex("orders");
  const auto start = runtime::now();
  std::string said;
  EXPECT_EQ(thrown_by([&] { (void)mutex.try_acquire(); }, &said), errc::store_unreachable);
  EXPECT_LT(runtime::now() - start, 20s);
  EXPECT_THAT(said, AllOf(HasSubstr("TLS handshake"), HasSubstr("redis://")));
}

}  // namespace holdfast::test
