// Bugs to plant in the lock on one Redis: edits of the scripts' text, or rules of the client side
// left out.
#include "sim/run.hpp"

namespace holdfast::sim {

namespace {

left_out only(bool left_out::*rule) {
  left_out without;
  without.*rule = true;
  return without;
}

constexpr std::string_view token_in_passing = "local token = time[1] * 1000000 + time[2]";
constexpr std::string_view token_in_grant =
    "math.max((tonumber(record[2]) or 0) + 1, time[1] * 1000000 + time[2])";
constexpr std::string_view counter_alone = "(tonumber(record[2]) or 0) + 1";
constexpr std::string_view units_fit = "return used + units <= capacity";
constexpr std::string_view units_fit_in_passing =
    "used and used <= tonumber(kept and seen[2] or ARGV[10])";
constexpr std::string_view units_token_in_passing =
    "local text = time[1] .. string.format('%06d', time[2])";
constexpr std::string_view units_behind_counter = "record[2] and record[2] - text >= 0";
constexpr std::string_view clock_alone = "time[1] * 1000000 + time[2]";

}  // namespace

std::vector<mutant> redis_mutants() {
  return {
      {"stale-grant",
       "a grant from before the latest answer is accepted",
       {},
       {planted_bug::stale_grants}},
      {"release-any",
       "a release does not compare owners",
       {{"release", "string.sub(held, 1, #ARGV[1] + 1) == ARGV[1] .. ';'", "true"}}},
      {"late-grant", "a grant that expired on arrival is used", {}, {planted_bug::late_check}},
      {"count-from-arrival",
       "validity counts from when the answer came",
       {},
       {planted_bug::early_count}},
      {"free-but-queued",
       "a free lock with a queue is not handed over",
       {{"acquire",
         "local result = call('EXISTS', queue) == 0 and 'nobody' or hand_over(id, ARGV[2])",
         "local result = call('EXISTS', queue) == 0 and 'nobody'\n"
         "if not result then return {2, -2, '', record[2] or '0', 0} end"}}},
      {"no-withdraw", "giving up does not leave the queue", {}, {planted_bug::withdrawing}},
      {"message-after-answer",
       "a grant that was answered before its message is given back",
       {},
       {planted_bug::settling}},
      {"stray-by-id",
       "a grant that nobody wants is given back by its attempt, not by its token",
       {},
       {planted_bug::stray_token},
       store_kind::redis,
       false,
       fault::partition},
      {"claim-as-ttl", "a sent grant is relied on for the whole TTL", {}, {planted_bug::claim}},
      {"no-drift", "clocks are taken to run alike", {}, only(&left_out::drift)},
      {"sure-too-soon",
       "an attempt with an unanswered question is called withdrawn",
       {},
       {planted_bug::doubt}},
      {"asked-again",
       "asking again is answered granted, and does not extend",
       {{"acquire", "call('PEXPIRE', lock, ARGV[2])", "call('EXISTS', lock)"}}},
      {"renewed-in-word",
       "a renewal says yes and does not extend",
       {{"renew", "redis.call('PEXPIRE', key, ttl)", "redis.call('EXISTS', key)"}}},
      {"renew-any",
       "a renewal extends the lock for whoever has it",
       {{"renew", "string.sub(held, 1, 33) ~= id .. ';'", "false"},
        {"renew", "token < first or token > last", "false"}}},
      {"counter-alone",
       "a token is the counter's next, without the clock",
       {{"acquire", token_in_passing, "local token = 0"},
        {"acquire", token_in_grant, counter_alone},
        {"release", token_in_grant, counter_alone}}},
      {"clock-alone",
       "a token is the clock, without the counter",
       {{"acquire", "if last >= token then", "if false then"},
        {"acquire", token_in_grant, clock_alone},
        {"release", token_in_grant, clock_alone}}},
      {"renew-revives",
       "a renewal brings a missing key back",
       {{"renew", "answer[i + 2] = 0",
         "redis.call('SET', key, id .. ';holdfast=1;token=' .. given .. ';block=1;', 'PX', ttl)\n"
         "answer[i + 2] = given"}}},
      {"units-uncounted",
       "units are granted without counting those in use",
       {{"share_acquire", units_fit, "return true"}, {"share_release", units_fit, "return true"}}},
      {"units-uncounted-in-passing",
       "units are granted at once without counting those in use",
       {{"share_acquire", units_fit_in_passing, "used"}}},
      {"dead-too-soon",
       "a holder is taken for dead before its lease has ended",
       {{"share_acquire", "expiry and expiry > ms then", "expiry and expiry > ms + 50 then"}}},
      {"units-asked-again",
       "asking again for units is answered granted, and does not extend",
       {{"share_acquire", "extend(mine, ttl)", "local _ = mine"}}},
      {"units-renewed-in-word",
       "a renewal of units says yes and does not extend",
       {{"renew", "if expiry < ms + wanted then", "if false then"}}},
      {"downgraded-to-nothing",
       "a writer that becomes a reader is not counted as one",
       {{"share_downgrade", "extend(mine, tonumber(ARGV[2]), 1)",
         "extend(mine, tonumber(ARGV[2]), 0)"}}},
      {"counted-twice",
       "a part that counts again is counted again",
       {{"latch_count", "if known and redis.call('HGET', latch, part) then", "if false then"}}},
      {"open-but-for-one",
       "a latch is open when one part has still to count",
       {{"latch_look", "return {known.left == 0 and 1 or 0,",
         "return {known.left <= 1 and 1 or 0,"}}},
      {"opened-untold",
       "those who wait at a latch are not told that it opens",
       {{"latch_count", "if left == 0 then", "if false then"}}},
      {"units-by-counter-alone",
       "a token of units is the counter's next, without the clock",
       {{"share_acquire", token_in_grant, counter_alone},
        {"share_acquire", units_token_in_passing, "local text = '0'"},
        {"share_release", token_in_grant, counter_alone}}},
      {"units-by-clock-alone",
       "a token of units is the clock, without the counter",
       {{"share_acquire", token_in_grant, clock_alone},
        {"share_acquire", units_behind_counter, "false"},
        {"share_release", token_in_grant, clock_alone}}},
  };
}

const std::vector<mutant>& mutants() {
  static const auto all = [] {
    auto both = redis_mutants();
    for (auto& one : redlock_mutants())
      both.push_back(std::move(one));
    return both;
  }();
  return all;
}

}  // namespace holdfast::sim
