/* Fenced Redlock: amnesia. A node that restarted empty refuses, until it has rejoined.
 *
 * Modelled   three nodes with key, counter and marker; ATTEMPTS acquisitions, one after another or
 *            at once, that take the lock with a fresh token on a majority, or with one that they
 *            raise a majority to (once), hold it, and end. A node restarts empty: key, counter
 *            and marker are gone together, its run id is new, it refuses attempts. To rejoin: wait
 *            until max_ttl has passed since that restart; then read the counters of two (N/2 + 1)
 *            intact nodes; then, in one script, if it still is that wait: C := max(C, what was
 *            read), set the marker.
 * Time       max_ttl has passed: every attempt that this node ever granted anything to is over
 *            (its validity counts from before the request left, and is at most max_ttl). A key
 *            vanishes only when its attempt is over. Renewal: see redlock_lasting.pml; attempts
 *            that wait: redlock_called.pml, RESTARTS.
 * Adversary  restarts nodes RESTARTS times, at any moment, also while they rejoin or are read;
 *            chooses proposals; delays requests, also of attempts that are over; loses replies.
 * Asserted   at most one attempt holds the lock; tokens in real-time order, none twice.
 * Limits     512 MB.
 *
 * Mutants    NO_QUARANTINE       the node that lost everything votes on
 *            NO_WAIT             it rejoins without waiting
 *            NO_RECOVERY         it rejoins without the counters of others
 *            READ_BEFORE_WAIT    it reads them first, and waits then
 *            RECOVER_FROM_ONE    it asks one node only
 *            RECOVER_FROM_BLANK  it also asks nodes that are not intact
 *            RUN_ID_UNCHECKED    somebody slow, who waited after an earlier restart, finishes it
 */
#define N 3
#define MAJORITY 2
#ifndef ATTEMPTS
#define ATTEMPTS 2
#endif
#ifndef RESTARTS
#define RESTARTS 2
#endif
#ifndef PROPOSAL_MAX
#define PROPOSAL_MAX 2
#endif
#ifdef RECOVER_FROM_ONE
#define SOURCES_MIN 1
#else
#define SOURCES_MIN 2
#endif

#define COUNT(set) ((set & 1) + ((set >> 1) & 1) + ((set >> 2) & 1))
#define HAS(set, n) ((set >> n) & 1)
#define ADD(set, n) set = set | (1 << n)
#define EACH(what) what(0) what(1) what(2)

byte key[N];
byte counter[N];
byte intact = 7; /* nodes with a marker */
byte voters[N];  /* attempts that the node granted anything to, in any of its lives */

byte over;       /* attempts that are */
byte holder;     /* 0: nobody */
byte highest;
byte tokens;
byte restarts;

/* How far the rejoining of a node is; any client takes a step. */
byte waited;        /* nodes that have waited since their latest restart */
byte sources[N];       /* nodes whose counters were read */
byte recovered[N];  /* the highest of them */

#ifdef NO_QUARANTINE
#define VOTES(n) 1
#else
#define VOTES(n) HAS(intact, n)
#endif
#define GRANT(n) key[n] = me; counter[n] = p; ADD(voters[n], me)
#define ACQUIRE_UNHEARD(n) \
  :: d_step { VOTES(n) && key[n] == 0 && p > counter[n] -> GRANT(n) } \
  :: d_step { VOTES(n) && key[n] == 0 && p <= counter[n] -> key[n] = me; ADD(voters[n], me) }
#define ACQUIRE(n) \
  :: d_step { VOTES(n) && key[n] == 0 && p > counter[n] -> GRANT(n); ADD(fresh, n) } \
  ACQUIRE_STALE(n) \
  ACQUIRE_UNHEARD(n)
#define ACQUIRE_STALE(n) \
  :: d_step { VOTES(n) && key[n] == 0 && p <= counter[n] -> \
       key[n] = me; ADD(voters[n], me); ADD(stale, n); \
       if :: counter[n] > seen -> seen = counter[n] :: else fi }
#define RAISE_ONE(n) \
  :: d_step { VOTES(n) && key[n] == me && counter[n] < q -> counter[n] = q; ADD(fresh, n) } \
  :: d_step { VOTES(n) && key[n] == me && counter[n] < q -> counter[n] = q }

proctype attempt(byte me) {
  byte p;     /* proposed */
  byte q;     /* the token, perhaps raised */
  byte fresh; /* nodes that moved their counters to it, and said so */
  byte stale; /* nodes that granted, but were above it */
  byte seen;
  byte bound;
  atomic {
    bound = highest;
    p = 1;
    do :: p < PROPOSAL_MAX -> p++ :: break od
  }
  do
  EACH(ACQUIRE)
  :: d_step { COUNT(fresh) >= MAJORITY -> q = p } goto granted
  :: d_step { COUNT(fresh) < MAJORITY && COUNT((fresh | stale)) >= MAJORITY ->
       q = (seen > p -> seen : p) + 1; fresh = 0; stale = 0; seen = 0 }
     break
  :: goto ends
  od;
  do
  EACH(RAISE_ONE)
  EACH(ACQUIRE_UNHEARD)
  :: COUNT(fresh) >= MAJORITY -> goto granted
  :: goto ends
  od;
granted:
  atomic {
    assert(holder == 0);
    assert(q > bound);
    assert(!HAS(tokens, q));
    holder = me;
    ADD(tokens, q);
    if :: q > highest -> highest = q :: else fi
  };
ends:
  atomic {
    if :: holder == me -> holder = 0 :: else fi;
    fresh = 0; bound = 0; q = 0; stale = 0; seen = 0;
    ADD(over, me)
  };
end:
  do
  EACH(ACQUIRE_UNHEARD)
  od
}

#define VANISH(n) :: d_step { key[n] && HAS(over, key[n]) -> key[n] = 0 }

#ifdef RUN_ID_UNCHECKED
#define FORGET_REJOINING(n) skip
#else
#define FORGET_REJOINING(n) waited = waited & ~(1 << n); sources[n] = 0; recovered[n] = 0
#endif
#define RESTART(n) \
  :: d_step { restarts < RESTARTS -> \
       restarts++; key[n] = 0; counter[n] = 0; intact = intact & ~(1 << n); FORGET_REJOINING(n) }

#ifdef NO_WAIT
#define WAITED(n) 1
#else
#define WAITED(n) ((voters[n] & ~over) == 0)
#endif
#ifdef READ_BEFORE_WAIT
#define MAY_READ(n) 1
#define MAY_REJOIN(n) WAITED(n)
#else
#define MAY_READ(n) HAS(waited, n)
#define MAY_REJOIN(n) HAS(waited, n)
#endif
#ifdef RECOVER_FROM_BLANK
#define IS_SOURCE(m) 1
#else
#define IS_SOURCE(m) HAS(intact, m)
#endif
#define WAIT(n) :: d_step { !HAS(intact, n) && !HAS(waited, n) && WAITED(n) -> ADD(waited, n) }
#define READ(n, m) \
  :: d_step { !HAS(intact, n) && MAY_READ(n) && IS_SOURCE(m) && !HAS(sources[n], m) -> \
       ADD(sources[n], m); \
       if :: counter[m] > recovered[n] -> recovered[n] = counter[m] :: else fi }
#define READS(n) READ(n, 0) READ(n, 1) READ(n, 2)
#ifdef NO_RECOVERY
#define RECOVERED(n) 1
#else
#define RECOVERED(n) (COUNT(sources[n]) >= SOURCES_MIN)
#endif
#define REJOIN(n) \
  :: d_step { !HAS(intact, n) && MAY_REJOIN(n) && RECOVERED(n) -> \
       if :: recovered[n] > counter[n] -> counter[n] = recovered[n] :: else fi; \
       ADD(intact, n); FORGET_REJOINING(n) }

proctype world() {
end:
  do
  EACH(VANISH)
  EACH(RESTART)
#ifndef NO_QUARANTINE
  EACH(WAIT)
  EACH(READS)
  EACH(REJOIN)
#endif
  od
}

init {
  byte i = 1;
  atomic {
    do :: i <= ATTEMPTS -> run attempt(i); i++ :: else -> break od;
    i = 0;
    run world()
  }
}
