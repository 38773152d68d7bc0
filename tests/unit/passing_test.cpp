// Which failures are tried again, by a caller and by the machines: three answers from one list.
#include "core/passing.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace holdfast::test {

namespace {

constexpr auto last = errc::forked;

std::vector<errc> all_codes() {
  std::vector<errc> all;
  for (int code = 1; code <= static_cast<int>(last); ++code)
    all.push_back(static_cast<errc>(code));
  return all;
}

bool may_be_tried_again(errc code) { return make_error_code(code) == condition::try_again; }

}  // namespace

TEST(Passing, WhatACallerMayTryAgainAMachineDoesButForTheEndOfTheWaitAndOverload) {
  for (const auto code : all_codes()) {
    if (code == errc::timed_out || code == errc::stopped || code == errc::overloaded) {
      EXPECT_TRUE(may_be_tried_again(code)) << make_error_code(code).message();
      EXPECT_FALSE(core::is_passing(code)) << make_error_code(code).message();
    } else if (code != errc::outcome_unknown) {
      EXPECT_EQ(core::is_passing(code), may_be_tried_again(code))
          << make_error_code(code).message();
    }
  }
}

TEST(Passing, UnknownOutcomeIsAskedAgainByAMachineAndLookedAtByACaller) {
  EXPECT_TRUE(core::is_passing(errc::outcome_unknown));
  EXPECT_FALSE(may_be_tried_again(errc::outcome_unknown));
}

TEST(Passing, ReleaseIsTriedAgainForOverloadToo) {
  for (const auto code : all_codes()) {
    EXPECT_EQ(core::is_passing_for_release(code),
              core::is_passing(code) || code == errc::overloaded)
        << make_error_code(code).message();
  }
}

}  // namespace holdfast::test
