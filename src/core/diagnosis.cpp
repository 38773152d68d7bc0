#include "core/diagnosis.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <string>
#include <utility>

#include "core/admission.hpp"
#include "core/quorum_machine.hpp"

namespace holdfast::core {

namespace {

using severity = finding::severity;

std::string in_ms(duration value) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(value).count()) +
         " ms";
}

std::string in_seconds(duration value) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(value).count()) + " s";
}

duration size_of(duration value) { return value < duration::zero() ? -value : value; }

std::string counted(const key_facts::group& group, std::string_view one, std::string_view many) {
  return std::to_string(group.count) + " " + std::string{group.count == 1 ? one : many} +
         " (for example " + group.example + ")";
}

// The numbers in front of a version's first two points.
std::pair<int, int> release_of(std::string_view version) {
  std::pair<int, int> release{};
  const auto* end = version.data() + version.size();
  const auto major = std::from_chars(version.data(), end, release.first);
  if (major.ptr != end) std::from_chars(major.ptr + 1, end, release.second);
  return release;
}

class doctor {
 public:
  explicit doctor(const deployment& what)
      : of_{what}, is_quorum_{what.is == deployment::form::quorum} {}

  [[nodiscard]] std::vector<finding> findings() && {
    for (const auto& one : of_.servers) {
      if (one.trouble) {
        look_at_trouble(one);
      } else {
        look_at(one);
      }
    }
    if (is_quorum_) look_at_set();
    std::stable_sort(found_.begin(), found_.end(),
                     [](const auto& a, const auto& b) { return a.how < b.how; });
    return std::move(found_);
  }

 private:
  void say(severity how, std::string about, const server_facts& of, std::string what,
           std::string voids, std::string advice) {
    found_.push_back(
        {how, std::move(about), of.node, std::move(what), std::move(voids), std::move(advice)});
  }

  void look_at(const server_facts& one) {
    look_at_role(one);
    look_at_memory(one);
    if (!is_quorum_) look_at_persistence(one);
    look_at_writing(one);
    look_at_clock(one);
    look_at_time(one);
    look_at_rights(one);
    if (one.keys) look_at_keys(one, *one.keys);
    look_at_version(one);
    for (const auto& what : one.unseen)
      say(severity::note, "unseen", one, "could not be looked at: " + what,
          "what it would void is not known", "let the doctor's user ask, or look at it by hand");
  }

  void look_at_trouble(const server_facts& one) {
    const auto& why = *one.trouble;
    if (why.code == errc::incompatible) {
      return say(severity::danger, "unsuitable", one, why.message, "no lock can be kept there",
                 "name another server in the URL");
    }
    const bool is_away = why.code == errc::store_unreachable || why.code == errc::outcome_unknown;
    say(severity::warning, is_away ? "unreachable" : "refused", one, why.message,
        "it does not vote: so many fewer of the others may fail",
        is_away ? "bring it back, or replace it with `holdfast redlock move`"
                : "give all nodes the same user, password and certificates");
  }

  void look_at_role(const server_facts& one) {
    if (one.in_cluster) {
      say(severity::danger, "cluster", one, "is a member of a Redis cluster",
          "it keeps the locks of its own slots only, and a failover to a replica forgets them",
          "name a server without cluster-enabled");
    }
    if (one.is_replica) {
      say(severity::danger, "role", one, "is a replica, so it takes no locks",
          "nothing can be locked", "name the master");
    }
    const auto replicas = one.replicas.value_or(0);
    if (replicas == 0) return;
    const auto has = "has " + std::to_string(replicas) + " replica" + (replicas == 1 ? "" : "s");
    if (is_quorum_) {
      return say(
          severity::danger, "replica", one, has,
          "a failover puts a server in its place that may have forgotten votes: two majorities "
          "may grant one lock",
          "a node stays one server: take its replicas away");
    }
    std::string voids =
        "replication is asynchronous: a failover loses the locks of the last moments, and another "
        "gets them while their holders believe in them";
    std::string advice = "fence what the locks protect, or use redlock:// on independent servers";
    if (!one.wants_replicas) {
      voids += "; a master that is cut off from its replicas goes on granting";
      advice += "; set min-replicas-to-write 1 and min-replicas-max-lag 10";
    }
    say(severity::warning, "replica", one, has, std::move(voids), std::move(advice));
  }

  void look_at_memory(const server_facts& one) {
    if (!one.eviction.empty() && one.eviction != "noeviction") {
      const bool now = one.memory_max > 0;
      auto what = "maxmemory-policy is " + one.eviction;
      if (one.evicted > 0) {
        what += ", and " + std::to_string(one.evicted) + " keys were evicted since it was started";
      } else if (!now) {
        what += ", though maxmemory is not set";
      }
      say(now ? severity::danger : severity::warning, "eviction", one, std::move(what),
          "a server that is short of memory deletes locks while they are held: exclusion is void",
          "CONFIG SET maxmemory-policy noeviction");
    }
    if (one.memory_max > 0 && one.memory_used > one.memory_max / 100 * memory_full_percent) {
      say(severity::warning, "memory", one,
          "uses " + std::to_string(one.memory_used * 100 / one.memory_max) + " % of maxmemory",
          "soon it refuses new locks; those that are held can still be renewed and released",
          "raise maxmemory, or keep locks on a server of their own");
    }
  }

  // Whether every lock that it granted survives a crash of its process, and of its host where that
  // does not take the holders with it.
  [[nodiscard]] bool keeps_everything(const server_facts& one) const {
    return one.keeps_log.value_or(true) &&
           (of_.on_this_host || one.syncs_log.empty() || one.syncs_log == "always");
  }

  void look_at_persistence(const server_facts& one) {
    const std::string voids =
        " while they are held: others get them. Tokens still increase, so what is fenced is safe";
    if (one.keeps_log == false) {
      say(severity::warning, "persistence", one, "appendonly is off",
          "a crash or restart of the server loses locks" + voids,
          of_.on_this_host ? "set appendonly yes"
                           : "set appendonly yes and appendfsync always, or use redlock://");
    } else if (!keeps_everything(one)) {
      say(severity::warning, "persistence", one, "appendfsync is " + one.syncs_log,
          "a crash of its host loses the locks of the last moments" + voids,
          "set appendfsync always, or use redlock://");
    }
    if (one.up_for && *one.up_for < recent_start && !keeps_everything(one)) {
      say(severity::warning, "restarted", one,
          "was started " + in_seconds(*one.up_for) + " ago, and does not keep everything",
          "leases from before may be lost, and their holders hear of it at their next renewal",
          "find out why it was restarted");
    }
  }

  void look_at_writing(const server_facts& one) {
    if (!one.log_fails && !one.snapshot_fails) return;
    say(severity::danger, "disk", one,
        std::string{one.log_fails ? "could not write its log" : "could not save a snapshot"},
        "it refuses new locks and renewals (MISCONF), or loses them with its next crash",
        "look into its log: most often the disk is full");
  }

  void look_at_clock(const server_facts& one) {
    if (one.clock_stepped != duration::zero()) {
      say(severity::danger, "clock-step", one,
          "its wall clock jumped by " + in_ms(one.clock_stepped) + " while it was looked at",
          "locks expire by that clock: those that are held end early, or stay for too long",
          "let chrony or ntpd slew the clock, never step it; look at the host's virtualisation");
    }
    if (!one.clock_ahead || size_of(*one.clock_ahead) <= clock_skew_noticed + one.clock_doubt) {
      return;
    }
    const bool ahead = *one.clock_ahead > duration::zero();
    say(severity::warning, "clock", one,
        "its clock is " + in_ms(size_of(*one.clock_ahead)) + (ahead ? " ahead of" : " behind") +
            " ours",
        "tokens are made of it: they stay in order, unless the server also loses its data",
        "synchronise both hosts' clocks");
  }

  void look_at_time(const server_facts& one) {
    if (!one.round_trip) return;
    const auto limit = is_quorum_ ? of_.node_timeout / 2 : slow_round_trip;
    if (*one.round_trip <= limit) return;
    if (is_quorum_) {
      return say(severity::warning, "latency", one,
                 "half of all round trips take more than " + in_ms(*one.round_trip) +
                     ", with a node_timeout of " + in_ms(of_.node_timeout),
                 "its votes come too late, as if it were away",
                 "raise node_timeout in the URL, or find out what keeps it busy (SLOWLOG GET)");
    }
    say(severity::warning, "latency", one,
        "half of all round trips take more than " + in_ms(*one.round_trip),
        "acquiring is slow, and short TTLs are at the mercy of it",
        "find out what keeps it busy: SLOWLOG GET, LATENCY DOCTOR");
  }

  void look_at_rights(const server_facts& one) {
    for (const auto& missing : one.missing_rights) {
      say(missing.essential ? severity::danger : severity::warning, "rights", one,
          "its access rules refuse this user " + missing.right,
          "without it there is no " + missing.used_for,
          "`holdfast doctor --acl` prints the rule that suffices");
    }
  }

  void look_at_keys(const server_facts& one, const key_facts& keys) {
    if (keys.without_expiry.count > 0) {
      say(severity::danger, "no-expiry", one,
          counted(keys.without_expiry, "lock has", "locks have") + " no TTL",
          "liveness is void: should the holder die, nobody gets it any more",
          "`holdfast status` shows the holder; if it is gone, `holdfast break` the lock");
    }
    if (keys.damaged.count > 0) {
      say(severity::danger, "damaged", one,
          counted(keys.damaged, "lock is", "locks are") + " damaged: the value was written over",
          "its holder cannot renew or release it, and nobody can break it",
          "find out who writes there, and delete the key");
    }
    if (keys.newer.count > 0) {
      say(severity::danger, "newer", one,
          counted(keys.newer, "lock was", "locks were") + " written by a newer Holdfast",
          "this version cannot share locks with it", "update this program");
    }
    if (keys.expiring_record.count > 0) {
      say(severity::danger, "record", one,
          counted(keys.expiring_record, "token counter has", "token counters have") + " a TTL",
          "once it is forgotten, tokens rest on the server's clock alone", "PERSIST the key");
    }
    if (keys.damaged_record.count > 0) {
      say(severity::danger, "record", one,
          counted(keys.damaged_record, "token counter is", "token counters are") + " damaged",
          "no lock of that slot can be taken, or its tokens begin anew",
          "find out who writes under holdfast:, and delete the key");
    }
    if (keys.foreign.count > 0) {
      say(of_.has_prefix ? severity::warning : severity::note, "foreign", one,
          counted(keys.foreign, "key is", "keys are") + " no lock of Holdfast's" +
              (of_.has_prefix ? ", though under our prefix" : ""),
          "a lock of that name is refused, or held by whoever wrote the key",
          of_.has_prefix ? "find out who writes there"
                         : "keep locks under a prefix= or in a database of their own");
    }
    if (!keys.complete) {
      say(severity::note, "unseen", one, "could not be looked at: all keys, there are too many",
          "what it would void is not known", "keep locks in a database of their own");
    }
  }

  void look_at_version(const server_facts& one) {
    if (one.version.empty() || release_of(one.version) >= std::pair{6, 2}) return;
    say(severity::warning, "version", one, "is version " + one.version,
        "it gets no corrections any more, those for its scripts included",
        "update the server to 7.0 or newer");
  }

  void look_at_set() {
    const auto size = of_.servers.size();
    const auto majority = majority_of(size);
    std::size_t voting = 0;
    std::map<std::string_view, const server_facts*> by_run;
    const server_facts* slowest = nullptr;
    const server_facts* fastest = nullptr;
    for (const auto& one : of_.servers) {
      if (one.trouble) continue;
      if (one.votes.value_or(false)) ++voting;
      if (one.votes == false) {
        say(severity::warning, "no-vote", one, "does not vote: " + one.standing,
            "so many fewer of the others may fail",
            "it comes back by itself after max_ttl; `holdfast redlock status` says when");
      }
      const auto [known, is_new] = by_run.emplace(one.run_id, &one);
      if (!one.run_id.empty() && !is_new) {
        say(severity::danger, "same-server", one, "is the same server as " + known->second->node,
            "it votes twice: a minority of the servers is a majority",
            "name servers that run, and fail, independently of each other");
      }
      if (!one.clock_ahead) continue;
      if (slowest == nullptr || *one.clock_ahead < *slowest->clock_ahead) slowest = &one;
      if (fastest == nullptr || *one.clock_ahead > *fastest->clock_ahead) fastest = &one;
    }
    if (voting < majority) {
      found_.push_back({severity::danger,
                        "majority",
                        {},
                        std::to_string(voting) + " of " + std::to_string(size) +
                            " nodes vote, and " + std::to_string(majority) + " are needed",
                        "nothing can be locked or renewed",
                        "bring nodes back; `holdfast redlock status` says what each waits for"});
    }
    if (slowest == fastest) return;
    const auto apart = *fastest->clock_ahead - *slowest->clock_ahead;
    const auto limit = std::min(of_.max_ttl, believed_ahead_max);
    if (apart <= limit + fastest->clock_doubt + slowest->clock_doubt) return;
    found_.push_back({severity::danger,
                      "clock",
                      {},
                      "the clocks of " + fastest->node + " and " + slowest->node + " are " +
                          in_ms(apart) + " apart",
                      "tokens may repeat once a majority loses its data",
                      "synchronise the nodes' clocks"});
  }

  const deployment& of_;
  const bool is_quorum_;
  std::vector<finding> found_;
};

}  // namespace

std::vector<finding> diagnose(const deployment& what) { return doctor{what}.findings(); }

}  // namespace holdfast::core
