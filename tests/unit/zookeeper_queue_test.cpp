// Who owns a ZooKeeper lock among its nodes.
#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "runtime/random.hpp"
#include "stores/zookeeper/node_data.hpp"
#include "stores/zookeeper/paths.hpp"
#include "stores/zookeeper/queue_nodes.hpp"

namespace holdfast::stores::zookeeper {

namespace {

using testing::ElementsAre;

constexpr auto last = std::numeric_limits<std::int32_t>::max();
constexpr auto first = std::numeric_limits<std::int32_t>::min();

const core::owner_id someone = core::owner_id::from_bits(0x0123456789abcdef, 0x0011223344556677);

// As the server names it.
std::string node(node_kind kind, std::int32_t sequence) {
  std::array<char, 16> number{};
  std::snprintf(number.data(), number.size(), "%010d", sequence);
  return name_to_create(runtime::fresh_owner(), kind) + number.data();
}

}  // namespace

TEST(ZookeeperQueue, NodeIsNamedAsCuratorNamesIt) {
  EXPECT_EQ(name_to_create(someone, node_kind::mutex),
            "_c_01234567-89ab-cdef-0011-223344556677-lock-");
  EXPECT_EQ(name_to_create(someone, node_kind::reader),
            "_c_01234567-89ab-cdef-0011-223344556677-__READ__");
  EXPECT_EQ(name_to_create(someone, node_kind::writer),
            "_c_01234567-89ab-cdef-0011-223344556677-__WRIT__");
}

TEST(ZookeeperQueue, OnlyContendersAreParsed) {
  EXPECT_EQ(parse_node("_c_x-lock-0000000007")->sequence, 7);
  EXPECT_EQ(parse_node("_c_x-lock--2147483648")->sequence, first);
  EXPECT_EQ(parse_node("lock-2147483647")->sequence, last) << "without a protected creation";
  EXPECT_EQ(parse_node("_c_x-__READ__0000000001")->kind, node_kind::reader);
  for (const auto* other : {"lock-", "lock-7", "42", "", "leases", "_c_x-lock-00000000001",
                            "_c_x-lock-000000000x", "_c_x-lock-9999999999", "block"}) {
    EXPECT_FALSE(parse_node(other)) << other;
  }
}

TEST(ZookeeperQueue, FirstOwnsAndEachOtherWatchesTheOneBefore) {
  const auto a = node(node_kind::mutex, 3);
  const auto b = node(node_kind::mutex, 5);
  const auto c = node(node_kind::mutex, 8);
  const auto queue = queue_of({c, "other", a, b});
  ASSERT_EQ(queue.size(), 3U);
  EXPECT_TRUE(standing_of(queue, a).owns);
  EXPECT_EQ(queue[standing_of(queue, b).watched].name, a);
  EXPECT_EQ(queue[standing_of(queue, c).watched].name, b);
  EXPECT_FALSE(standing_of(queue, "gone").exists);
}

TEST(ZookeeperQueue, OrderSurvivesTheWrapOfTheSequence) {
  const auto old = node(node_kind::mutex, last);
  const auto next = node(node_kind::mutex, first);
  const auto later = node(node_kind::mutex, first + 1);
  const auto queue = queue_of({next, later, old});
  EXPECT_TRUE(standing_of(queue, old).owns);
  EXPECT_EQ(queue[standing_of(queue, next).watched].name, old);
  EXPECT_EQ(queue[standing_of(queue, later).watched].name, next);
}

TEST(ZookeeperQueue, ReadersOwnTogetherUpToTheFirstWriter) {
  const auto r1 = node(node_kind::reader, 1);
  const auto r2 = node(node_kind::reader, 2);
  const auto w3 = node(node_kind::writer, 3);
  const auto r4 = node(node_kind::reader, 4);
  const auto r5 = node(node_kind::reader, 5);
  const auto queue = queue_of({r5, r4, w3, r2, r1});
  EXPECT_EQ(owners_of(queue), 2U);
  EXPECT_TRUE(standing_of(queue, r2).owns);
  EXPECT_EQ(queue[standing_of(queue, w3).watched].name, r2);
  EXPECT_EQ(queue[standing_of(queue, r4).watched].name, w3);
  EXPECT_EQ(queue[standing_of(queue, r5).watched].name, w3) << "a reader does not wait for readers";
}

TEST(ZookeeperQueue, NodeInPlaceOfAnotherKeepsThePlace) {
  const auto old = *parse_node(node(node_kind::writer, first + 12));
  const auto name = name_in_place_of(old, someone, node_kind::reader, runtime::fresh_owner());
  const auto made = parse_node(name);
  ASSERT_TRUE(made) << name;
  EXPECT_EQ(made->sequence, old.sequence);
  EXPECT_EQ(made->kind, node_kind::reader);
  EXPECT_TRUE(name.starts_with(own_prefix(someone)));
}

// What makes the lock a lock, and live: exactly one owner of a mutex; and everybody else watches a
// node that comes before, so that the last to go wakes somebody.
RC_GTEST_PROP(ZookeeperQueue, OneOwnsAndTheOthersFormAChain, ()) {
  const auto start = *rc::gen::arbitrary<std::int32_t>();
  const auto gaps =
      *rc::gen::container<std::vector<std::uint8_t>>(rc::gen::inRange<std::uint8_t>(1, 9));
  RC_PRE(!gaps.empty());
  std::vector<std::string> created;
  auto sequence = static_cast<std::uint32_t>(start);
  for (const auto gap : gaps)
    created.push_back(node(node_kind::mutex, static_cast<std::int32_t>(sequence += gap)));
  auto shuffled = created;
  std::shuffle(shuffled.begin(), shuffled.end(), std::minstd_rand{sequence});
  const auto queue = queue_of(shuffled);
  for (std::size_t i = 0; i < created.size(); ++i) {
    const auto where = standing_of(queue, created[i]);
    RC_ASSERT(where.exists);
    RC_ASSERT(where.owns == (i == 0));
    if (i > 0) RC_ASSERT(queue[where.watched].name == created[i - 1]);
  }
}

// Whoever leaves, whoever may come in then is woken by it, and nobody else need be.
RC_GTEST_PROP(ZookeeperQueue, WhoMayComeInWatchedTheOneThatLeft, ()) {
  const auto writes = *rc::gen::container<std::vector<bool>>(rc::gen::arbitrary<bool>());
  RC_PRE(writes.size() > 1);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    const auto kind = writes[i] ? node_kind::writer : node_kind::reader;
    names.push_back(node(kind, static_cast<std::int32_t>(i)));
  }
  const auto leaves = *rc::gen::inRange<std::size_t>(0, names.size());
  const auto before = queue_of(names);
  auto left = names;
  left.erase(left.begin() + static_cast<std::ptrdiff_t>(leaves));
  const auto after = queue_of(left);
  for (const auto& name : left) {
    const auto was = standing_of(before, name);
    const auto is = standing_of(after, name);
    RC_ASSERT(!was.owns || is.owns);
    if (!was.owns && is.owns) RC_ASSERT(before[was.watched].name == names[leaves]);
  }
}

TEST(ZookeeperPaths, NameIsThePathAndBack) {
  EXPECT_EQ(path_of("/locks", "orders/42").value(), "/locks/orders/42");
  EXPECT_EQ(path_of("", "orders").value(), "/orders");
  for (const std::string name : {"orders", "a/b", "a//b", "/a", "a/", ".", "..", "a/../b", "50%",
                                 "\x01\xff", "grün", "a b"}) {
    const auto path = path_of("/locks", name).value();
    EXPECT_EQ(name_of("/locks", path), name) << path;
    EXPECT_EQ(path.find("//"), std::string::npos) << path;
    EXPECT_EQ(path.find("/."), std::string::npos) << path;
  }
}

TEST(ZookeeperPaths, NamesThatLookLikeNodesAreRefused) {
  EXPECT_EQ(path_of("", "zookeeper").error().code, errc::invalid_argument);
  EXPECT_TRUE(path_of("/locks", "zookeeper"));
  EXPECT_EQ(path_of("/locks", "a/lock-0000000001").error().code, errc::invalid_argument);
}

TEST(ZookeeperPaths, AncestryEndsWithThePath) {
  EXPECT_THAT(ancestry("/a/b/c"), ElementsAre("/a", "/a/b", "/a/b/c"));
  EXPECT_THAT(ancestry("/a"), ElementsAre("/a"));
}

RC_GTEST_PROP(ZookeeperPaths, EveryNameComesBack, ()) {
  const auto name = *rc::gen::nonEmpty(rc::gen::string<std::string>());
  const auto path = path_of("/c", name);
  RC_PRE(path.has_value());
  RC_ASSERT(name_of("/c", *path) == name);
}

TEST(ZookeeperNodeData, SaysWhoHoldsIt) {
  node_note note;
  note.who.host = "build-7";
  note.who.pid = 4711;
  note.who.label = "two\nlines \\ and more";
  note.session_ttl = std::chrono::seconds{30};
  const auto seen = note_in(node_data(note), {77, 1'000});
  EXPECT_FALSE(seen.who.foreign);
  EXPECT_EQ(seen.who.host, "build-7");
  EXPECT_EQ(seen.who.pid, 4711);
  EXPECT_EQ(seen.who.label, note.who.label);
  EXPECT_EQ(seen.who.token.value(), 77U);
  EXPECT_EQ(seen.session_ttl, std::chrono::seconds{30});
  note.who.token = fencing_token{12};
  EXPECT_EQ(note_in(node_data(note), {77, 0}).who.token.value(), 12U) << "of the node before";
}

TEST(ZookeeperNodeData, WhatAnotherClientWroteIsShownAsItIs) {
  const auto seen = note_in("192.0.2.7", {5, 0}).who;
  EXPECT_TRUE(seen.foreign);
  EXPECT_EQ(seen.value, "192.0.2.7");
  EXPECT_EQ(seen.token.value(), 5U);
  EXPECT_EQ(note_in(std::string(1000, 'x'), {5, 0}).who.value.size(), foreign_data_shown_max);
}

}  // namespace holdfast::stores::zookeeper
