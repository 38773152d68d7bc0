#include <unistd.h>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "stores/etcd/layout.hpp"

namespace holdfast {

using namespace stores::etcd;

namespace {

const std::string one = "orders/" + std::string(32, '1');
const std::string two = "orders/" + std::string(32, '2');
const std::string foreign = "orders/694d81f3f0b2a1c5";

key_value at(std::string key, revision created) { return {std::move(key), {}, created, 9}; }

key_value in(std::string name, revision created, part what) {
  return {"config/" + name, value_of({}, what), created, 9};
}

}  // namespace

TEST(EtcdLayout, ReadersComeInTogetherAndAWriterAlone) {
  const std::vector all{in("r1", 3, part::reader), in("r2", 4, part::reader),
                        in("w1", 5, part::writer), in("r3", 6, part::reader),
                        in("w2", 7, part::writer)};
  EXPECT_TRUE(shared_standing_of("config/r1", "config/", all).is_in);
  EXPECT_TRUE(shared_standing_of("config/r2", "config/", all).is_in);
  const auto writer = shared_standing_of("config/w1", "config/", all);
  EXPECT_FALSE(writer.is_in);
  EXPECT_EQ(writer.ahead.size(), 2U);
  const auto late = shared_standing_of("config/r3", "config/", all);
  EXPECT_FALSE(late.is_in) << "the writer that waits holds it back";
  ASSERT_EQ(late.ahead.size(), 1U);
  EXPECT_EQ(late.ahead[0].key, "config/w1") << "whose going may let it in";
  EXPECT_EQ(shared_standing_of("config/w2", "config/", all).ahead.size(), 4U);
  EXPECT_EQ(holders_in(all), 2U);
  EXPECT_EQ(holders_in({all[2], all[3]}), 1U);
  EXPECT_FALSE(shared_standing_of("config/gone", "config/", all).is_there);
}

TEST(EtcdLayout, WriterThatBecomesAReaderIsOne) {
  const auto writer = in("w1", 5, part::writer);
  const key_value reads{writer.key, as_readers(writer.value), 5, 9};
  EXPECT_EQ(part_of(reads), part::reader);
  EXPECT_EQ(holder_of(reads).host, holder_of(writer).host);
  EXPECT_TRUE(as_readers("nonsense").empty());
}

TEST(EtcdLayout, MutexOfOursIsOfAnotherKindAndAForeignOneIsWaitedFor) {
  const auto reader = in("r1", 9, part::reader);
  const auto beside_ours =
      shared_standing_of(reader.key, "config/", {in("m", 3, part::whole), reader});
  EXPECT_TRUE(beside_ours.is_other_kind);
  const auto behind_theirs =
      shared_standing_of(reader.key, "config/", {{"config/9", {}, 3, 9}, reader});
  EXPECT_FALSE(behind_theirs.is_other_kind);
  EXPECT_FALSE(behind_theirs.is_in);
}

// However they come and go: writers are alone.
RC_GTEST_PROP(EtcdLayout, NoWriterBesideAnother, ()) {
  const auto parts = *rc::gen::container<std::vector<bool>>(rc::gen::arbitrary<bool>());
  std::vector<key_value> all;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    all.push_back(in(std::to_string(i), static_cast<revision>(i + 2),
                     parts[i] ? part::writer : part::reader));
  }
  std::size_t holding = 0;
  bool writes = false;
  for (const auto& key : all) {
    if (!shared_standing_of(key.key, "config/", all).is_in) continue;
    ++holding;
    writes = writes || part_of(key) == part::writer;
  }
  RC_ASSERT(!writes || holding == 1);
  RC_ASSERT(all.empty() || holding == holders_in(all));
}

TEST(EtcdLayout, FirstKeyOwnsAndEachOtherOneLooksAtTheNextBeforeIt) {
  const std::vector all{at(one, 3), at(foreign, 5), at(two, 8)};
  const auto first = standing_of(one, "orders/", all);
  EXPECT_TRUE(first.is_there);
  EXPECT_TRUE(first.owns);
  const auto last = standing_of(two, "orders/", all);
  EXPECT_TRUE(last.is_there);
  EXPECT_FALSE(last.owns);
  EXPECT_EQ(last.first.value().key, one);
  EXPECT_EQ(last.ahead.value().key, foreign);
}

// Scenario 35: the waiter's lease expired in the queue, and then its predecessor left.
TEST(EtcdLayout, KeyThatIsGoneOwnsNothingThoughNobodyIsAhead) {
  const auto none = standing_of(two, "orders/", {});
  EXPECT_FALSE(none.is_there);
  EXPECT_FALSE(none.owns);
  const auto behind = standing_of(two, "orders/", {at(one, 3)});
  EXPECT_FALSE(behind.owns);
  EXPECT_EQ(behind.first.value().key, one);
}

TEST(EtcdLayout, KeysOfLocksFurtherDownDoNotCount) {
  const std::string below = "orders/1/" + std::string(32, '1');
  EXPECT_TRUE(standing_of(two, "orders/", {at(below, 3), at(two, 8)}).owns);
  EXPECT_FALSE(is_of("orders/", below));
  EXPECT_TRUE(is_of("orders/1/", below));
}

TEST(EtcdLayout, LockOfAKeyIsFoundForOursAndForEtcdctls) {
  EXPECT_EQ(lock_of("app/", at("app/a/b/" + std::string(32, 'f'), 3)), "a/b");
  EXPECT_EQ(lock_of("", {"orders/9", {}, 3, 9}), "orders") << "a lease's id";
  EXPECT_EQ(lock_of("", {"orders/8", {}, 3, 9}), std::nullopt) << "that of another lease";
  EXPECT_EQ(lock_of("", {"orders/9", "x", 3, 9}), std::nullopt) << "has a value";
  EXPECT_EQ(lock_of("", {"plain", {}, 3, 9}), std::nullopt);
  EXPECT_EQ(lock_of("app/", at("orders/" + std::string(32, 'f'), 3)), std::nullopt);
  EXPECT_EQ(lock_of("", {"orders/" + std::string(32, 'f'), {}, 3, 0}), std::nullopt) << "no lease";
}

TEST(EtcdLayout, HolderIsReadFromWhatItWrote) {
  const std::string label{"night\nly \xff%41\0", 14};
  const auto who = holder_of({one, value_of(label), 42, 9});
  EXPECT_FALSE(who.foreign);
  EXPECT_EQ(who.label, label);
  EXPECT_EQ(who.pid, ::getpid());
  EXPECT_EQ(who.token, fencing_token{42});
}

TEST(EtcdLayout, WhoWroteNothingOfTheKindIsForeign) {
  for (const auto* value : {"", "me", "{}", "[1]", R"({"holdfast":"1"})", R"({"holdfast":0})"}) {
    const auto who = holder_of({foreign, value, 42, 9});
    EXPECT_TRUE(who.foreign) << value;
    EXPECT_EQ(who.value, "694d81f3f0b2a1c5");
    EXPECT_EQ(who.token, fencing_token{42}) << "so that it can be broken";
  }
}

RC_GTEST_PROP(EtcdLayout, AnyLabelComesBack, (const std::string& label)) {
  RC_ASSERT(holder_of({one, value_of(label), 1, 1}).label == label);
}

// At most one of the keys owns, and it is the oldest.
RC_GTEST_PROP(EtcdLayout, OneOwner, ()) {
  const auto count = *rc::gen::inRange(1, 8);
  std::vector<key_value> all;
  for (int i = 0; i < count; ++i) {
    const bool below = *rc::gen::arbitrary<bool>();
    all.push_back(at("orders/" + std::string(below ? "x/" : "") + std::to_string(i), 10 + i));
  }
  int owners = 0;
  for (const auto& key : all)
    owners += standing_of(key.key, "orders/", all).owns ? 1 : 0;
  const bool any = std::any_of(all.begin(), all.end(),
                               [](const auto& key) { return is_of("orders/", key.key); });
  RC_ASSERT(owners == (any ? 1 : 0));
}

}  // namespace holdfast
