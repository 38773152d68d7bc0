// Codes, the conditions that say what to do about them, and what is thrown.
#include <map>
#include <set>

#include <gtest/gtest.h>

#include <holdfast/error.hpp>
#include <holdfast/result.hpp>

#include "core/fail.hpp"

namespace holdfast::test {

using detail::fail;

namespace {

const std::map<errc, condition> what_to_do{
    {errc::timed_out, condition::try_again},
    {errc::stopped, condition::try_again},
    {errc::lease_lost, condition::lease_lost},
    {errc::outcome_unknown, condition::outcome_unknown},
    {errc::store_unreachable, condition::try_again},
    {errc::store_loading, condition::try_again},
    {errc::store_busy, condition::try_again},
    {errc::out_of_memory, condition::try_again},
    {errc::read_only, condition::try_again},
    {errc::not_authenticated, condition::give_up},
    {errc::not_permitted, condition::give_up},
    {errc::wrong_type, condition::give_up},
    {errc::moved, condition::give_up},
    {errc::incompatible, condition::give_up},
    {errc::store_refused, condition::give_up},
    {errc::store_missing, condition::give_up},
    {errc::unsafe_folder, condition::give_up},
    {errc::overloaded, condition::try_again},
    {errc::not_held, condition::give_up},
    {errc::unsupported, condition::give_up},
    {errc::invalid_argument, condition::misuse},
    {errc::would_deadlock, condition::misuse},
    {errc::forked, condition::misuse},
    {errc::not_trusted, condition::give_up},
};
constexpr int last_code = static_cast<int>(errc::not_trusted);

}  // namespace

TEST(Errc, EveryCodeIsInTheTableOfThisTest) {
  EXPECT_EQ(what_to_do.size(), static_cast<std::size_t>(last_code));
  EXPECT_EQ(what_to_do.rbegin()->first, errc::not_trusted);
}

TEST(Errc, EveryCodeHasExactlyTheConditionThatSaysWhatToDo) {
  for (const auto& [code, todo] : what_to_do) {
    for (const auto c : {condition::try_again, condition::give_up, condition::lease_lost,
                         condition::outcome_unknown, condition::misuse}) {
      EXPECT_EQ(make_error_code(code) == c, c == todo) << make_error_code(code).message();
    }
  }
}

TEST(Errc, EveryCodeHasAMessageOfItsOwn) {
  std::set<std::string> messages;
  for (const auto& [code, todo] : what_to_do)
    messages.insert(make_error_code(code).message());
  EXPECT_EQ(messages.size(), what_to_do.size());
  EXPECT_FALSE(messages.contains("unknown error"));
  EXPECT_FALSE(messages.contains(""));
}

TEST(Errc, CodeThatDoesNotExistIsNoSuccessAndNoCrash) {
  const std::error_code strange{last_code + 1, error_category()};
  EXPECT_TRUE(strange);
  EXPECT_EQ(strange.message(), "unknown error");
  EXPECT_EQ(strange, condition::give_up);
}

TEST(Errc, ZeroIsNoCodeSoThatEveryErrorIsTrue) {
  for (const auto& [code, todo] : what_to_do)
    EXPECT_TRUE(make_error_code(code));
}

TEST(Errc, CategoriesHaveNamesAndAreNotTheSame) {
  EXPECT_STREQ(error_category().name(), "holdfast");
  EXPECT_NE(error_category(), condition_category());
  EXPECT_EQ(std::error_code{errc::stopped}.category(), error_category());
  EXPECT_NE(std::error_code(1, std::generic_category()), condition::try_again);
}

TEST(Condition, EveryOneHasAMessageOfItsOwn) {
  std::set<std::string> messages;
  for (const auto c : {condition::try_again, condition::give_up, condition::lease_lost,
                       condition::outcome_unknown, condition::misuse}) {
    messages.insert(make_error_condition(c).message());
  }
  EXPECT_EQ(messages.size(), 5U);
  EXPECT_FALSE(messages.contains("unknown condition"));
}

TEST(Error, SaysTheMessageOnceTheCodeAndWhatEachNodeAnswered) {
  const error thrown{failure{errc::store_loading,
                             "the server is loading its data",
                             {{"a:6379", "LOADING"}, {"b:6379", "no reply in time"}}}};
  EXPECT_EQ(thrown.code(), errc::store_loading);
  EXPECT_EQ(thrown.code(), condition::try_again);
  EXPECT_STREQ(thrown.what(), "the server is loading its data");
  EXPECT_STREQ((error{failure{errc::store_loading, "", {}}}.what()), "the store is starting up");
  ASSERT_EQ(thrown.nodes().size(), 2U);
  EXPECT_EQ(thrown.nodes()[0].node, "a:6379");
  EXPECT_EQ(thrown.nodes()[1].answer, "no reply in time");
}

TEST(Error, IsCaughtAsASystemErrorAndSurvivesCopying) {
  try {
    throw error{failure{errc::timed_out, "", {{"a", "b"}}}};
  } catch (const std::system_error& caught) {
    EXPECT_EQ(caught.code(), errc::timed_out);
    const auto* ours = dynamic_cast<const error*>(&caught);
    ASSERT_NE(ours, nullptr);
    const error copy = *ours;
    EXPECT_EQ(copy.nodes().size(), 1U);
    EXPECT_STREQ(copy.what(), ours->what());
  }
}

TEST(Error, KeepsWhoHasTheLock) {
  failure why{errc::timed_out, "", {}};
  EXPECT_FALSE(error{why}.holder());
  why.holder = holder{.host = "web1", .pid = 4711};
  const error thrown{why};
  ASSERT_TRUE(thrown.holder());
  EXPECT_EQ(thrown.holder()->host, "web1");
  EXPECT_EQ(thrown.holder()->pid, 4711);
}

TEST(Result, FailureTravelsAsAValue) {
  const result<int> bad = fail(errc::not_held, "with that token");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, errc::not_held);
  EXPECT_EQ(bad.error().message, "with that token");
  EXPECT_TRUE(bad.error().nodes.empty());
  const result<void> passed_on = fail(failure{bad.error()});
  EXPECT_EQ(passed_on.error().code, errc::not_held);
}

}  // namespace holdfast::test
