// The version is said in CMakeLists.txt, which builds and packages, and in a header, for #if.
#include <string>

#include <gtest/gtest.h>

#include <holdfast/version.hpp>

#include "support/built.hpp"

namespace holdfast::test {

TEST(Version, HeaderSaysWhatTheBuildSays) {
  EXPECT_STREQ(HOLDFAST_VERSION, HOLDFAST_PROJECT_VERSION);
  EXPECT_EQ(std::to_string(HOLDFAST_VERSION_MAJOR) + "." + std::to_string(HOLDFAST_VERSION_MINOR) +
                "." + std::to_string(HOLDFAST_VERSION_PATCH),
            HOLDFAST_PROJECT_VERSION);
}

TEST(Version, LibrarySaysTheVersionItWasBuiltFrom) { EXPECT_EQ(version(), HOLDFAST_VERSION); }

}  // namespace holdfast::test
