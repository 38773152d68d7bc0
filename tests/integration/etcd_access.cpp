// etcd:// over TLS, and logged in.
#include <fstream>

#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "support/certificates.hpp"
#include "support/etcd_cluster.hpp"
#include "support/watch.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

class EtcdOverTls : public testing::Test {
 protected:
  [[nodiscard]] std::string url(const std::string& options) const {
    return cluster.url() + "?" + options;
  }
  [[nodiscard]] static failure refused(const std::string& where) {
    client c{where, {.operation_timeout = 10s, .unreachable_limit = patience}};
    auto got = c.mutex("orders").acquire_result(patience);
    return got ? failure{} : got.error();
  }
  [[nodiscard]] std::string ours() const {
    return "ca=" + authority_.file() + "&cert=" + client_.cert + "&key=" + client_.key;
  }

  const authority authority_{"our authority"};
  const certificate_files server_ = authority_.issue("server");
  const certificate_files client_ = authority_.issue("client");
  etcd_cluster cluster{{.members = 1,
                        .arguments = {"--cert-file", server_.cert, "--key-file", server_.key,
                                      "--client-cert-auth", "--trusted-ca-file", authority_.file()},
                        .scheme = "https"}};
};

TEST_F(EtcdOverTls, ServerAndClientProveThemselves) {
  client c{url(ours()), {.unreachable_limit = patience}};
  auto held = c.mutex("orders").acquire(patience);
  EXPECT_EQ(c.status("orders").holder.value().token, held.token());
  EXPECT_TRUE(held.release());

  const auto nobody = refused(url("ca=" + authority_.file()));
  EXPECT_EQ(nobody.code, errc::not_trusted) << nobody.message;
  const authority other{"another authority"};
  const auto unknown =
      refused(url("ca=" + other.file() + "&cert=" + client_.cert + "&key=" + client_.key));
  EXPECT_EQ(unknown.code, errc::not_trusted) << unknown.message;
  EXPECT_NE(unknown.message.find("ca="), std::string::npos) << "what to do";
  const auto misnamed = refused(url(ours() + "&server_name=other.example"));
  EXPECT_EQ(misnamed.code, errc::not_trusted) << misnamed.message;
}

class EtcdWithUsers : public testing::Test {
 protected:
  EtcdWithUsers() {
    for (const std::vector<std::string>& one : std::vector<std::vector<std::string>>{
             {"user", "add", "root:root-secret"},
             {"user", "grant-role", "root", "root"},
             {"role", "add", "locks"},
             {"role", "grant-permission", "locks", "--prefix=true", "readwrite", "locks/"},
             {"user", "add", "app:s3cret word"},
             {"user", "grant-role", "app", "locks"},
             {"auth", "enable"}}) {
      static_cast<void>(cluster.ctl(one));
    }
  }
  [[nodiscard]] std::string url(const std::string& who, const std::string& options) const {
    auto all = cluster.url();
    return all.insert(all.find("//") + 2, who + "@") + "?" + options;
  }
  [[nodiscard]] static failure refused(const std::string& where) {
    client c{where, {.operation_timeout = 10s, .unreachable_limit = patience}};
    auto got = c.mutex("orders").acquire_result(patience);
    return got ? failure{} : got.error();
  }
  etcd_cluster cluster{{.members = 1}};
};

TEST_F(EtcdWithUsers, TokenThatTheServerForgotIsReplaced) {
  // Logging in takes the server a while: it hashes the password.
  client c{url("app:s3cret%20word", "prefix=locks/"),
           {.lock = {.ttl = 120s}, .operation_timeout = 10s, .unreachable_limit = patience}};
  auto held = c.mutex("orders").acquire(patience);
  cluster.kill9(0);  // tokens are in its memory
  cluster.start_again(0);
  EXPECT_TRUE(c.mutex("stock").try_acquire(patience));
  EXPECT_TRUE(held.renew());
}

TEST_F(EtcdWithUsers, PasswordMayBeInAFileAndIsReadAgain) {
  const temp_dir folder;
  const auto file = folder.file("password");
  std::ofstream{file} << "wrong\n";
  client c{url("app", "prefix=locks/&password_file=" + file),
           {.operation_timeout = 10s, .unreachable_limit = patience}};
  const auto got = c.mutex("orders").acquire_result(patience);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::not_authenticated) << got.error().message;
  std::ofstream{file} << "s3cret word\n";
  EXPECT_TRUE(c.mutex("orders").try_acquire(patience));
}

TEST_F(EtcdWithUsers, WhatIsRefusedIsToldWithoutThePassword) {
  const auto wrong = refused(url("app:not-the-word", "prefix=locks/"));
  EXPECT_EQ(wrong.code, errc::not_authenticated) << wrong.message;
  EXPECT_EQ(wrong.message.find("not-the-word"), std::string::npos);
  const auto elsewhere = refused(url("app:s3cret%20word", "prefix=other/"));
  EXPECT_EQ(elsewhere.code, errc::not_permitted) << elsewhere.message;
  const auto nobody = refused(cluster.url() + "?prefix=locks/");
  EXPECT_TRUE(nobody.code == errc::not_authenticated || nobody.code == errc::not_permitted)
      << nobody.message;
}

}  // namespace holdfast::test
