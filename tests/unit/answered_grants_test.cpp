#include "core/answered_grants.hpp"

#include <gtest/gtest.h>

namespace holdfast::core {

namespace {

const auto id = owner_id::from_bits(1, 0);
constexpr fencing_token older{6};
constexpr fencing_token token{7};

TEST(AnsweredGrants, MessageAboutASettledGrantIsKnownOnce) {
  answered_grants ids;
  EXPECT_FALSE(ids.knows(id, token));
  EXPECT_TRUE(ids.add(id, token));
  EXPECT_TRUE(ids.knows(id, token));
  EXPECT_FALSE(ids.knows(id, token)) << "a second one is a grant that nobody wants";
}

TEST(AnsweredGrants, OlderMessageDoesNotStandForTheOneStillToCome) {
  answered_grants ids;
  EXPECT_TRUE(ids.add(id, token));
  EXPECT_TRUE(ids.knows(id, older));
  EXPECT_TRUE(ids.knows(id, token));
}

TEST(AnsweredGrants, OneTooManyIsSaid) {
  answered_grants ids;
  for (std::uint64_t i = 0; i < answered_grants::remembered_max; ++i)
    EXPECT_TRUE(ids.add(owner_id::from_bits(2, i), token));
  EXPECT_FALSE(ids.add(id, token));
  ids.clear();
  EXPECT_FALSE(ids.knows(id, token));
  EXPECT_TRUE(ids.add(id, token));
}

}  // namespace

}  // namespace holdfast::core
