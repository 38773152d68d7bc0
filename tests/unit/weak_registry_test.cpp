// What is open by name is shared while somebody uses it, and names that nobody uses do not gather.
#include "core/weak_registry.hpp"

#include <gtest/gtest.h>

namespace holdfast::test {

TEST(WeakRegistry, AreSharedWhileSomebodyUsesThem) {
  core::weak_registry<int> names;
  EXPECT_EQ(names.find("a"), nullptr);
  auto one = std::make_shared<int>(1);
  names.put("a", one);
  EXPECT_EQ(names.find("a"), one);
  EXPECT_EQ(names.all().size(), 1U);
  one.reset();
  EXPECT_EQ(names.find("a"), nullptr);
  EXPECT_TRUE(names.all().empty());
}

TEST(WeakRegistry, KeepThoseInUseHoweverManyPass) {
  core::weak_registry<int> names;
  const auto kept = std::make_shared<int>(0);
  names.put("kept", kept);
  for (int i = 0; i < 10'000; ++i)
    names.put(std::to_string(i), std::make_shared<int>(i));
  EXPECT_EQ(names.find("kept"), kept);
  EXPECT_EQ(names.all().size(), 1U);
}

}  // namespace holdfast::test
