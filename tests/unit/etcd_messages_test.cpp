#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <rapidcheck/gtest.h>

#include "stores/etcd/messages.hpp"

namespace holdfast {

using namespace stores::etcd;
using nlohmann::json;

namespace {

const std::string header = R"("header":{"revision":"7"})";

}  // namespace

TEST(EtcdMessages, Base64IsThatOfTheRfc) {
  const std::vector<std::pair<std::string, std::string>> known{{"", ""},
                                                               {"f", "Zg=="},
                                                               {"fo", "Zm8="},
                                                               {"foo", "Zm9v"},
                                                               {"foob", "Zm9vYg=="},
                                                               {"fooba", "Zm9vYmE="},
                                                               {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : known) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
  EXPECT_EQ(from_base64("Zg"), std::nullopt);
  EXPECT_EQ(from_base64("Z*=="), std::nullopt);
}

RC_GTEST_PROP(EtcdMessages, AnyBytesComeBackFromBase64, (const std::string& bytes)) {
  RC_ASSERT(from_base64(to_base64(bytes)) == bytes);
}

TEST(EtcdMessages, EndOfAPrefixIsTheFirstKeyBehindIt) {
  EXPECT_EQ(end_of_prefix("a/"), "a0");
  EXPECT_EQ(end_of_prefix("a\xff"), "b");
  EXPECT_EQ(end_of_prefix(""), std::string(1, '\0')) << "what etcd takes for all keys";
}

TEST(EtcdMessages, TransactionSaysWhatIsComparedAndDone) {
  const transaction what{{{"a/", "a0", 0, false}, {"a/1", {}, 0, true}},
                         {put{.key = "a/1", .value = "v", .lease = 5}},
                         {read{.from = "a/",
                               .to = "a0",
                               .sorted = read::order::newest_first,
                               .limit = 1,
                               .created_by = 9,
                               .keys_only = true},
                          remove{"a/1"}}};
  EXPECT_EQ(json::parse(to_json(what)), json::parse(R"({
    "compare": [
      {"key": "YS8=", "range_end": "YTA=", "target": "CREATE", "result": "EQUAL",
       "create_revision": "0"},
      {"key": "YS8x", "target": "CREATE", "result": "GREATER", "create_revision": "0"}],
    "success": [{"request_put": {"key": "YS8x", "value": "dg==", "lease": "5"}}],
    "failure": [
      {"request_range": {"key": "YS8=", "range_end": "YTA=", "sort_target": "CREATE",
                         "sort_order": "DESCEND", "limit": "1", "max_create_revision": "9",
                         "keys_only": true}},
      {"request_delete_range": {"key": "YS8x"}}]})"));
}

TEST(EtcdMessages, AnswerOfATransactionIsReadInOrder) {
  const auto said = read_transaction("{" + header + R"(,"succeeded":true,"responses":[
    {"response_put":{"header":{"revision":"7"}}},
    {"response_range":{"kvs":[{"key":"YS8x","create_revision":"6","lease":"5","value":"dg=="}],
                       "count":"3"}}]})");
  ASSERT_TRUE(said);
  EXPECT_TRUE(said->succeeded);
  EXPECT_EQ(said->at, 7);
  ASSERT_EQ(said->reads.size(), 2U);
  EXPECT_TRUE(said->reads[0].keys.empty());
  EXPECT_EQ(said->reads[1].count, 3);
  ASSERT_EQ(said->reads[1].keys.size(), 1U);
  EXPECT_EQ(said->reads[1].keys[0].key, "a/1");
  EXPECT_EQ(said->reads[1].keys[0].value, "v");
  EXPECT_EQ(said->reads[1].keys[0].created, 6);
  EXPECT_EQ(said->reads[1].keys[0].lease, 5);
}

TEST(EtcdMessages, LeaseThatIsGoneHasNoTimeLeft) {
  EXPECT_EQ(read_lease(R"({"result":{)" + header + R"(,"ID":"12"}})")->ttl_s, 0);
  EXPECT_EQ(read_lease(R"({"result":{)" + header + R"(,"ID":"12","TTL":"60"}})")->ttl_s, 60);
  EXPECT_EQ(read_lease("{" + header + R"(,"ID":"12","TTL":"-1"})")->ttl_s, -1);
}

TEST(EtcdMessages, WatchTellsOfRemovalsAndOfItsEnd) {
  const auto said = read_watch(R"({"result":{)" + header + R"(,"events":[
      {"type":"DELETE","kv":{"key":"YS8x","mod_revision":"8"}},{"kv":{"key":"YS8y"}}]}})");
  ASSERT_TRUE(said);
  ASSERT_EQ(said->events.size(), 2U);
  EXPECT_TRUE(said->events[0].is_removal);
  EXPECT_EQ(said->events[0].key, "a/1");
  EXPECT_FALSE(said->events[1].is_removal);
  EXPECT_FALSE(said->canceled);
  EXPECT_TRUE(read_watch(R"({"result":{)" + header + R"(,"canceled":true}})")->canceled);
  const auto lost = read_watch(R"({"error":{"grpc_code":14,"message":"etcdserver: no leader"}})");
  ASSERT_TRUE(lost);
  EXPECT_TRUE(lost->canceled);
  EXPECT_EQ(lost->why, "etcdserver: no leader");
}

TEST(EtcdMessages, RefusalIsReadFromBothForms) {
  const auto plain = read_refusal(
      R"({"error":"no lease","message":"etcdserver: requested lease not found","code":5})");
  EXPECT_EQ(plain.code, 5);
  EXPECT_EQ(plain.message, "etcdserver: requested lease not found");
  EXPECT_EQ(read_refusal("Not Found").code, 0);
}

TEST(EtcdMessages, WhatIsNoAnswerOfEtcdsIsRefused) {
  for (const auto* text : {"", "[]", "{}", "nonsense", R"({"result":3})", R"({"header":)"}) {
    EXPECT_EQ(read_transaction(text).error().code, errc::incompatible) << text;
    EXPECT_EQ(read_found(text).error().code, errc::incompatible) << text;
    EXPECT_EQ(read_lease(text).error().code, errc::incompatible) << text;
  }
  EXPECT_FALSE(read_watch("nonsense"));
  EXPECT_FALSE(read_token("{}"));
}

// Whatever a server sends: no crash, and no exception.
RC_GTEST_PROP(EtcdMessages, AnyValuesInTheRightPlacesAreBorne, ()) {
  const auto value = *rc::gen::element<std::string>("3", "\"x\"", "null", "[]", "{}", "[3]", "true",
                                                    "[{\"kvs\":[4]}]", "{\"kvs\":\"no\"}");
  for (const auto* name : {"header", "succeeded", "responses", "kvs", "count", "result", "error"}) {
    const auto text = "{\"header\":{},\"" + std::string{name} + "\":" + value + "}";
    static_cast<void>(read_transaction(text));
    static_cast<void>(read_found(text));
    static_cast<void>(read_lease(text));
    static_cast<void>(read_watch(text));
    static_cast<void>(read_refusal(text));
  }
}

}  // namespace holdfast
