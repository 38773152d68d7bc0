/* Fenced Redlock: leases that are renewed while nodes restart empty and rejoin.
 *
 * Modelled   three nodes with key, counter and marker; two attempts that take the lock with a fresh
 *            token on a majority, renew it in rounds for as long as they like, and end. A round
 *            extends the key where it is still the attempt's; a majority is success, and then nodes
 *            that had lost the key are repaired, unless their counter is above the token. A node
 *            that restarts empty refuses all of this, until it has waited for max_ttl and has the
 *            counters of the other two, as in redlock_rejoin.pml. A key that was set by a stale
 *            vote is not extended.
 * Time       max_ttl has passed: whatever counts from before the restart is over: attempts, and
 *            leases that have not been renewed since, in a round that began since. A key that a
 *            lease stands on, or that was granted or extended in the current round, stays until the
 *            lease is over or stands elsewhere.
 * Adversary  restarts nodes RESTARTS times, at any moment; delays requests, repairs, and acquires
 *            of attempts that are over; loses replies.
 * Asserted   at most one attempt holds the lock; tokens in real-time order, none twice.
 * Limits     1 GB.
 *
 * Mutants    NO_WAIT         a node rejoins without waiting
 *            LEASES_IGNORED  it waits for attempts that were under way, not for leases
 *            LATE_ANSWER     an extension of an earlier round counts in this one
 *            NO_COUNTERS     a node rejoins without the counters of others
 */
#define N 3
#define MAJORITY 2
#define ATTEMPTS 2
#ifndef RESTARTS
#define RESTARTS 2
#endif
#define PROPOSAL_MAX 2
#define ALL 7

#define HAS(set, n) ((set >> n) & 1)
#define ADD(set, n) set = set | (1 << n)
#define DROP(set, n) set = set & ~(1 << n)
#define COUNT(set) (HAS(set, 0) + HAS(set, 1) + HAS(set, 2))
#define EACH(what) what(0) what(1) what(2)

byte key[N];
byte stale; /* nodes whose key was set by a stale vote */
byte counter[N];
byte intact = ALL;
byte restarts;

byte token[ATTEMPTS + 1];    /* proposed */
byte relied[ATTEMPTS + 1];   /* nodes that the lease stands on */
byte answered[ATTEMPTS + 1]; /* nodes that granted or extended, in the current round */
byte repairs[ATTEMPTS + 1];  /* in the network, for ever: nodes */
byte alive;                  /* attempts that have begun and are not over */
byte holder;                 /* 0: nobody */
byte highest;
byte tokens;

/* By node that rejoins. */
byte lease_from_before[N]; /* attempts whose lease counts from before the restart */
byte round_from_before[N]; /* attempts whose current round began before it */
byte sources[N];
byte recovered[N];

#define LIFT(n, to) if :: counter[n] < to -> counter[n] = to :: else fi
#define ACQUIRE_UNHEARD(n) \
  :: d_step { HAS(intact, n) && key[n] == 0 -> \
       key[n] = me; \
       if :: p > counter[n] -> counter[n] = p; DROP(stale, n) :: else -> ADD(stale, n) fi }
#define ACQUIRE(n) \
  :: d_step { HAS(intact, n) && key[n] == 0 && p > counter[n] -> \
       key[n] = me; counter[n] = p; DROP(stale, n); ADD(answered[me], n) } \
  ACQUIRE_UNHEARD(n)
#define EXTEND(n) \
  :: d_step { HAS(intact, n) && key[n] == me && !HAS(stale, n) && !HAS(answered[me], n) && \
              !HAS(missing, n) -> ADD(answered[me], n) } \
  MISS(n)
#define MAY_REPAIR(n, i) \
  (HAS(intact, n) && (key[n] == 0 || (key[n] == i && HAS(stale, n))) && counter[n] <= token[i])
#define SET_AGAIN(n, i) key[n] = i; DROP(stale, n); LIFT(n, token[i])
#define MISS(n) \
  :: d_step { HAS(intact, n) && key[n] == 0 && !HAS(answered[me], n) -> ADD(missing, n) }

#define EACH_BEFORE(what) what(0); what(1); what(2)
#define RENEWED(n) \
  if :: HAS(round_from_before[n], me) :: else -> DROP(lease_from_before[n], me) fi
#define NEW_ROUND(n) DROP(round_from_before[n], me)
#define NOT_ALIVE(n) DROP(lease_from_before[n], me); DROP(round_from_before[n], me)
#ifdef LATE_ANSWER
#define FORGET_ANSWERS skip
#else
#define FORGET_ANSWERS answered[me] = 0
#endif

proctype attempt(byte me) {
  byte p;
  byte bound;
  byte missing; /* nodes that were without the key, in this round */
  atomic {
    bound = highest;
    ADD(alive, me);
    p = 1;
    do :: p < PROPOSAL_MAX -> p++ :: break od;
    token[me] = p
  }
  do
  EACH(ACQUIRE)
  :: COUNT(answered[me]) >= MAJORITY ->
     d_step {
       assert(holder == 0);
       assert(p > bound);
       assert(!HAS(tokens, p));
       holder = me;
       ADD(tokens, p);
       if :: p > highest -> highest = p :: else fi;
       bound = 0
     };
     goto holds
  :: goto ends
  od;
holds:
  do
  /* A round is over, and the next begins. */
  :: d_step { COUNT(answered[me]) >= MAJORITY ->
       relied[me] = answered[me]; repairs[me] = repairs[me] | missing; missing = 0;
       FORGET_ANSWERS;
       EACH_BEFORE(RENEWED); EACH_BEFORE(NEW_ROUND) }
  :: d_step { COUNT(answered[me]) < MAJORITY ->
       missing = 0; FORGET_ANSWERS; EACH_BEFORE(NEW_ROUND) }
  EACH(EXTEND)
  :: break
  od;
ends:
  atomic {
    if :: holder == me -> holder = 0 :: else fi;
    answered[me] = 0; relied[me] = 0; bound = 0; missing = 0;
    EACH_BEFORE(NOT_ALIVE);
    DROP(alive, me)
  };
end:
  do
  EACH(ACQUIRE_UNHEARD)
  od
}

#define STAYS(n) HAS((relied[key[n]] | answered[key[n]]), n)
#define VANISH(n) :: d_step { key[n] && !STAYS(n) -> key[n] = 0; DROP(stale, n) }
#define REPAIR(n) \
  :: d_step { HAS(repairs[1], n) && MAY_REPAIR(n, 1) -> SET_AGAIN(n, 1) } \
  :: d_step { HAS(repairs[2], n) && MAY_REPAIR(n, 2) -> SET_AGAIN(n, 2) }

#ifdef LEASES_IGNORED
#define LEASES_BEFORE (alive & ~(1 << holder))
#else
#define LEASES_BEFORE alive
#endif
#define RESTART(n) \
  :: d_step { restarts < RESTARTS -> \
       restarts++; key[n] = 0; counter[n] = 0; DROP(stale, n); DROP(intact, n); \
       sources[n] = 0; recovered[n] = 0; \
       lease_from_before[n] = LEASES_BEFORE; round_from_before[n] = LEASES_BEFORE }
#ifdef NO_WAIT
#define WAITED(n) 1
#else
#define WAITED(n) ((lease_from_before[n] | round_from_before[n]) == 0)
#endif
#ifdef NO_COUNTERS
#define SOURCES_MIN 0
#else
#define SOURCES_MIN MAJORITY
#endif
#define READ(n, m) \
  :: d_step { !HAS(intact, n) && WAITED(n) && HAS(intact, m) && !HAS(sources[n], m) -> \
       ADD(sources[n], m); \
       if :: counter[m] > recovered[n] -> recovered[n] = counter[m] :: else fi }
#define READS(n) READ(n, 0) READ(n, 1) READ(n, 2)
#define REJOIN(n) \
  :: d_step { !HAS(intact, n) && WAITED(n) && COUNT(sources[n]) >= SOURCES_MIN -> \
       counter[n] = recovered[n]; ADD(intact, n); sources[n] = 0; recovered[n] = 0; \
       lease_from_before[n] = 0; round_from_before[n] = 0 }

proctype world() {
end:
  do
  EACH(VANISH)
  EACH(REPAIR)
  EACH(RESTART)
  EACH(READS)
  EACH(REJOIN)
  od
}

init {
  atomic { run attempt(1); run attempt(2); run world() }
}
