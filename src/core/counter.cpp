#include "core/counter.hpp"

#include "core/lock_kind.hpp"

namespace holdfast::core {

namespace {

tl::unexpected<failure> bad(std::string message) {
  return fail(errc::invalid_argument, std::move(message));
}

}  // namespace

failure other_count(std::string_view count, std::string_view named) {
  return {errc::invalid_argument,
          "the latch is in use for " + std::string{count} + ", not " + std::string{named} +
              ": its users must all name that number; reset() starts it anew with another",
          {}};
}

failure counts_too_much(std::string_view left, std::string_view count) {
  if (left == "0") {
    return {errc::invalid_argument,
            "the latch is open: all " + std::string{count} +
                " have counted, perhaps in an earlier run. Give each run a latch of its own name, "
                "or call reset() before it",
            {}};
  }
  return {errc::invalid_argument,
          "only " + std::string{left} + " of " + std::string{count} +
              " are left to be counted; nothing was counted",
          {}};
}

failure run_is_gone() {
  return {errc::outcome_unknown,
          "the latch was started anew, or deleted, before this saw it open: whether all had "
          "counted is not known",
          {}};
}

result<void> check_latch(std::uint32_t count, duration keep) {
  if (count < 1 || count > units_max) {
    return bad("a latch's count must be between 1 and " + std::to_string(units_max) + ", not " +
               std::to_string(count));
  }
  if (keep < latch_keep_min || keep > latch_keep_max) {
    return bad("a latch is kept for 1 s to 31 days: keep is out of that");
  }
  return {};
}

result<void> check_part(std::string_view part) {
  if (part.empty()) return bad("the name of a part of a latch must not be empty");
  if (part.size() <= part_bytes_max) return {};
  return bad("the name of a part of a latch must be at most " + std::to_string(part_bytes_max) +
             " bytes, not " + std::to_string(part.size()));
}

result<void> check_redisson_count(std::int64_t amount) {
  if (amount >= 1 && amount <= redisson_count_max) return {};
  return bad("the number must be between 1 and " + std::to_string(redisson_count_max) + ", not " +
             std::to_string(amount));
}

}  // namespace holdfast::core
