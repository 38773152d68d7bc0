// Bugs to plant in the lock on a quorum: those of models/README.md, and some of the client's own.
#include "sim/run.hpp"

namespace holdfast::sim {

namespace {

// `by`: what brings about one that takes long to see elsewhere.
using brought_about = std::optional<fault>;

mutant planted(std::string_view name, std::string_view what, std::vector<edit> edits,
               brought_about by = {}) {
  return {name, what, std::move(edits), {}, store_kind::redlock, false, by};
}

mutant leaves_out(std::string_view name, std::string_view what, const left_out& rules,
                  brought_about by = {}) {
  return {name, what, {}, rules, store_kind::redlock, false, by};
}

mutant leaves_out(std::string_view name, std::string_view what, planted_bug rule,
                  brought_about by = {}) {
  return leaves_out(name, what, left_out{rule}, by);
}

mutant leaves_out(std::string_view name, std::string_view what, bool left_out::*rule) {
  left_out without;
  without.*rule = true;
  return leaves_out(name, what, without);
}

constexpr edit no_guard{"redlock/repair", "if own > tonumber(ARGV[5]) then", "if false then"};

mutant unguarded(std::string_view name, std::string_view what, planted_bug rule) {
  auto one = leaves_out(name, what, rule, fault::renewal_interrupted);
  one.edits = {no_guard};
  one.lenient = true;
  return one;
}

// In every script that includes parts/voter.lua.
constexpr std::string_view quarantine = "if record[1] ~= run then";
constexpr std::string_view no_quarantine = "record[3] = record[3] or '600000'\nif false then";
constexpr std::string_view wait_left =
    "local left = math.max(since + max_ttl - now, seen + max_ttl - wall, 0)";

// In both scripts that include parts/wait.lua.
mutant waits(std::string_view name, std::string_view what, std::string_view from,
             std::string_view to, brought_about by = {}) {
  return planted(name, what, {{"redlock/standing", from, to}, {"redlock/admit", from, to}}, by);
}

constexpr std::string_view raise_strictly = "if (tonumber(record[4]) or 0) >= tonumber(ARGV[4])";

}  // namespace

std::vector<mutant> redlock_mutants() {
  const left_out elapsed{planted_bug::elapsed, planted_bug::late_check};
  const left_out forgotten{planted_bug::late_release, planted_bug::silent_release};
  return {
      // The order of tokens.
      leaves_out("no-write-back", "the highest counter, plus one, is taken without raising to it",
                 planted_bug::write_back),
      planted(
          "raise-equal", "a node is raised if its counter is not above the new token",
          {{"redlock/raise", raise_strictly, "if (tonumber(record[4]) or 0) > tonumber(ARGV[4])"}}),
      planted("raise-unchecked", "a node is raised whatever its counter",
              {{"redlock/raise", raise_strictly, "if false"}}),
      planted("raise-any-owner", "a node is raised for an attempt that does not have it",
              {{"redlock/raise", "if not held or string.sub(held, 1, 33) ~= ARGV[3] .. ';' then",
                "if not held then"}}),
      planted("raised-whatever", "a repeated raise is confirmed, whatever it is to",
              {{"redlock/raise", "if string.match(held, ';token=(%d+);') == ARGV[4] then",
                "if string.find(held, ';raised=1;', 1, true) then"},
               {"redlock/raise", "';token=' .. ARGV[4] .. ';', 1)",
                "';token=' .. ARGV[4] .. ';raised=1;', 1)"}}),
      leaves_out("keep-confirmations", "what confirmed a lower raise counts for the higher one",
                 planted_bug::own_raise),
      planted("retransmit-fresh", "an acquire that is sent again is answered fresh",
              {{"redlock/acquire", "then\n  return {2, record[4] or '0'}\nend\nlocal turn",
                "then\n  return {1}\nend\nlocal turn"}},
              fault::answer_lost),
      planted("unbelieved-taken", "a proposal that a node does not believe is answered fresh",
              {{"redlock/acquire", "if not fresh then",
                "if proposal > counter and not fresh then\n  return {1}\nend\nif not fresh then"}}),
      leaves_out("reused-id", "the next attempt goes by the id of the last", planted_bug::fresh_id),
      // Renewal.
      leaves_out("higher-counts", "a key with a token above the lease's counts in a renewal",
                 planted_bug::lease_token, fault::ask_overtaken),
      planted("stale-counts", "a key that was set by a stale vote counts in a renewal",
              {{"redlock/extend", "elseif string.find(held, '^%x+;holdfast=%d+;token=0;') then",
                "elseif false then"}},
              fault::ask_overtaken),
      planted("quorum-renew-any", "a renewal extends the lock for whoever has it",
              {{"redlock/extend", "string.sub(held, 1, 33) ~= ARGV[2 * i - 2] .. ';'", "false"}}),
      planted("quorum-renewed-in-word", "a renewal says yes and does not extend",
              {{"redlock/extend", "call('PEXPIRE', KEYS[i], ttl)", "call('EXISTS', KEYS[i])"}}),
      planted("repair-counted", "a renewal sets a missing key again, and it counts",
              {{"redlock/extend", "answer[i + 1] = 0",
                "local value = ARGV[2 * i - 2] .. ';holdfast=1;token=1;block=1;since=0;'\n"
                "call('SET', KEYS[i], value, 'PX', ttl)\nanswer[i + 1] = value"}}),
      unguarded("repair-unsure", "a node is repaired though no majority has renewed",
                planted_bug::repair_sure),
      unguarded("both-answers", "a node that extends, and has lost it then, counts and is repaired",
                planted_bug::one_answer),
      planted("repair-unguarded", "a node is repaired that has granted the lock since", {no_guard},
              fault::repair_overtaken),
      leaves_out("answers-of-last-round", "what answered the last renewal counts in this one",
                 planted_bug::own_round, fault::ask_overtaken),
      // Nodes that forget.
      planted("no-quarantine", "a node that lost its data goes on voting",
              {{"redlock/acquire", quarantine, no_quarantine},
               {"redlock/raise", quarantine, no_quarantine},
               {"redlock/extend", quarantine, no_quarantine},
               {"redlock/repair", quarantine, no_quarantine}}),
      waits("no-wait", "it votes again at once, with the others' counters", wait_left,
            "local left = 0"),
      waits("wait-by-node", "only the node's clock measures its wait", wait_left,
            "local left = math.max(since + max_ttl - now, 0)", fault::vote_forgotten),
      waits("wait-by-client", "only clients' clocks measure a node's wait", wait_left,
            "local left = math.max(seen + max_ttl - wall, 0)", fault::vote_forgotten),
      waits("wait-by-either", "a node's wait is over by whichever clock says so first", wait_left,
            "local left = math.max(math.min(since + max_ttl - now, seen + max_ttl - wall), 0)",
            fault::vote_forgotten),
      waits("node-start-kept", "a node's clock that is below the start of its wait leaves it",
            "math.min(now, waiting[2])", "tonumber(waiting[2])", fault::many_restart),
      waits("client-start-kept", "a client's clock that is below the start of a wait leaves it",
            "math.min(wall, waiting[3])", "tonumber(waiting[3])", fault::many_restart),
      waits("old-wait-counts", "a wait that began before the node's last start goes on",
            "if string.sub(wait, 1, #run + 1) == run .. '@' then", "if wait ~= '' then",
            fault::node_rollback),
      planted("no-floor", "what nobody remembers is not made up for by clocks",
              {{"redlock/admit", "at_least('floor', ARGV[6])", "at_least('floor', '0')"}},
              fault::many_restart),
      planted("floor-of-clock", "made up for by clocks, but not by how far tokens may be ahead",
              {{"redlock/admit", "at_least('floor', ARGV[6])",
                "at_least('floor', math.max(tonumber(ARGV[6]) - 60000000, 0))"}},
              fault::many_restart),
      planted("no-recovery", "it votes again with its own counters",
              {{"redlock/admit", "for i = 7, #ARGV - 2, 2 do", "for i = 7, 0, 2 do"}},
              fault::vote_forgotten),
      leaves_out("read-before-wait", "it gets the counters of when it came back",
                 planted_bug::wait_first, fault::vote_forgotten),
      leaves_out("recover-from-one", "it gets the counters of one node",
                 planted_bug::enough_sources, fault::vote_forgotten),
      planted("outdated-admission",
              "it is let in by somebody who waited for it before it was started anew again",
              {{"redlock/admit", "if not vouched and (wait ~= ARGV[5] or left > 0) then",
                "if false then"}},
              fault::admission_outdated),
      // Time.
      leaves_out("quorum-no-drift", "clocks are taken to run alike", &left_out::drift),
      leaves_out("quorum-half-drift", "the drift of one clock is allowed for, not of two",
                 &left_out::half_drift),
      leaves_out("quorum-from-arrival", "validity counts from when the answers came",
                 planted_bug::early_count),
      leaves_out("no-elapsed-check", "a majority that is complete too late is used", elapsed),
      // Giving back.
      planted("quorum-release-any", "a release does not compare owners",
              {{"redlock/release", "string.sub(held, 1, 33) == ARGV[1] .. ';'", "true"}}),
      planted("failed-hands-on", "an attempt that was not granted hands its turn on",
              {{"redlock/release", "if ARGV[3] == '0' then", "if false then"},
               {"redlock/release", "'PX', ARGV[3])", "'PX', '50')"}},
              fault::node_gone),
      // Each of the two covers for the other: a release goes behind the acquire, or the answer to
      // the acquire brings it about.
      leaves_out("forgotten-release", "after a refusal, nodes that had not answered keep the lock",
                 forgotten),
      leaves_out("nothing-owed", "a node that was away is not told of a release",
                 planted_bug::owed_release),
      leaves_out("quorum-no-withdraw", "giving up does not leave the queue",
                 planted_bug::withdrawing),
  };
}

}  // namespace holdfast::sim
