// Where the simulator plants bugs in shipped code, to see that it finds them.
#pragma once

#include <string_view>

namespace holdfast::core {

// Rules that a planted bug leaves out.
enum class planted_bug {
  // One Redis.
  stale_grants,  // a grant from before the latest answer is accepted
  early_count,   // validity counts from when the answer came
  withdrawing,   // giving up does not leave the queue
  stray_token,   // a grant that nobody wants is given back by its attempt, not by its token
  settling,      // a grant that was answered is not remembered, and its message is a stray
  claim,         // a sent grant is relied on for the whole TTL
  doubt,         // an attempt with an unanswered ask is called withdrawn
  late_check,    // a grant that expired on its way is used
  // A quorum.
  elapsed,         // a majority that is complete only after the TTL is used
  fresh_id,        // the next ask goes by the id of the last
  write_back,      // a token above the nodes' counters is taken without raising them to it
  own_raise,       // what confirmed a lower raise counts for a higher one
  late_release,    // what is granted after a refusal is kept
  silent_release,  // a node that did not answer is not told of the release
  owed_release,    // a node that was away is not told of the release
  repair_sure,     // nodes are repaired though no majority has renewed
  own_round,       // what answered the last renewal counts in this one
  one_answer,      // a node that extends counts, and is repaired as well
  wait_first,      // a node gets the counters of when it came back
  enough_sources,  // a node gets the counters of one other
  lease_token,     // a key with a token above the lease's counts in a renewal
  none,
};

// True only in the simulator, which compiles the files that ask with HOLDFAST_PLANT. Everywhere
// else this is nothing at all.
#ifdef HOLDFAST_PLANT
[[nodiscard]] bool planted(planted_bug which) noexcept;
// Tells the simulator's judge of a request that was to be sent for sure, and is not sent any more.
void note_dropped(std::string_view bytes);
#else
[[nodiscard]] constexpr bool planted(planted_bug which) noexcept {
  static_cast<void>(which);
  return false;
}
constexpr void note_dropped(std::string_view bytes) noexcept { static_cast<void>(bytes); }
#endif

}  // namespace holdfast::core
