/* Fenced Redlock: another list of nodes. One node is replaced, while clients of both lists ask.
 *
 * Modelled   the old set is nodes 0, 1 and 2, the new one 0, 1 and 3; two attempts, each of a
 *            client with either list, that take the lock with a fresh token on a majority of their
 *            list, renew it in rounds, and end. To move: each of 0 and 1, in any order, changes
 *            its marker in one script: it keeps keys and counters, and from then on does nothing
 *            for clients of the old list but release. Node 2 need not be there. When a majority of
 *            the old set has moved, node 3 begins to wait for max_ttl; then it votes, with the
 *            counters of a majority of the new set, which is 0 and 1, read at any time after they
 *            moved. Until then the only majority of the new set is 0 and 1, and that meets every
 *            old one in a node that has its keys and its counter still.
 * Time       max_ttl has passed: whatever counts from before the wait began is over: attempts, and
 *            leases that have not been renewed since. A key that is relied on, or was granted or
 *            extended in the current round, stays until its attempt is over.
 * Adversary  moves the nodes when it likes, one of them perhaps never; chooses lists and
 *            proposals; delays requests, also of attempts that are over; loses replies.
 * Asserted   at most one attempt holds the lock; tokens in real-time order, none twice.
 * Limits     512 MB.
 *
 * Mutants    MAJORITY_NOT_MOVED   node 3 begins to wait when one node of the old set has moved
 *            WAIT_FROM_FIRST_SEEN the wait began when a client with the new list first came by
 *            NO_WAIT              node 3 votes once the others have moved
 *            NO_COUNTERS          node 3 votes without the counters of others
 *            COUNTER_OF_ONE       or with those of one node
 *            STILL_GRANTS         a node that has moved grants to clients of the old list
 *            STILL_EXTENDS        or extends their leases, which then outlive the wait
 *            DROPS_KEYS           moving clears the node's keys
 *            DROPS_COUNTERS       moving clears its counters, as deleting its record would
 */
#define NODES 4
#define MAJORITY 2
#define ATTEMPTS 2
#define PROPOSAL_MAX 2
#define OLD 7  /* nodes 0, 1 and 2 */
#define NEW 11 /* nodes 0, 1 and 3 */
#define BOTH 3

#define HAS(set, n) ((set >> n) & 1)
#define ADD(set, n) set = set | (1 << n)
#define DROP(set, n) set = set & ~(1 << n)
#define COUNT(set) (HAS(set, 0) + HAS(set, 1) + HAS(set, 2) + HAS(set, 3))
#define EACH(what) what(0) what(1) what(2) what(3)

byte key[NODES];
byte counter[NODES];
byte moved; /* nodes that vote for the new list */

byte relied[ATTEMPTS + 1];  /* nodes that the lease stands on */
byte answered[ATTEMPTS + 1]; /* nodes that granted or extended, in the current round */
byte alive;                 /* attempts that have begun and are not over */
byte holder;                /* 0: nobody */
byte highest;
byte tokens;

/* The wait of node 3. */
bool waits;
byte lease_from_before; /* attempts whose lease counts from before it */
byte round_from_before; /* attempts whose current round began before it */
byte sources;
byte recovered;

#ifdef STILL_GRANTS
#define REFUSED_AFTER(n) 0
#else
#define REFUSED_AFTER(n) HAS(moved, n)
#endif
#ifdef STILL_EXTENDS
#define EXTENDED_AFTER(n) 1
#else
#define EXTENDED_AFTER(n) !HAS(moved, n)
#endif
#define GRANTS(n) (list == OLD -> HAS(OLD, n) && !REFUSED_AFTER(n) : HAS(moved, n))
#define EXTENDS(n) (list == OLD -> HAS(OLD, n) && EXTENDED_AFTER(n) : HAS(moved, n))

#define LIFT(n, to) if :: counter[n] < to -> counter[n] = to :: else fi
#define ACQUIRE_UNHEARD(n) \
  :: d_step { GRANTS(n) && key[n] == 0 -> key[n] = me; LIFT(n, p) }
#define ACQUIRE(n) \
  :: d_step { GRANTS(n) && key[n] == 0 && p > counter[n] -> \
       key[n] = me; counter[n] = p; ADD(answered[me], n) } \
  ACQUIRE_UNHEARD(n)
#define EXTEND(n) \
  :: d_step { EXTENDS(n) && key[n] == me && !HAS(answered[me], n) -> ADD(answered[me], n) }

proctype attempt(byte me) {
  byte p;
  byte list;
  byte bound;
  atomic {
    bound = highest;
    ADD(alive, me);
    if :: list = OLD :: list = NEW fi;
    p = 1;
    do :: p < PROPOSAL_MAX -> p++ :: break od
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
       relied[me] = answered[me]; answered[me] = 0;
       if :: HAS(round_from_before, me) :: else -> DROP(lease_from_before, me) fi;
       DROP(round_from_before, me) }
  :: d_step { COUNT(answered[me]) < MAJORITY -> answered[me] = 0; DROP(round_from_before, me) }
  EACH(EXTEND)
  :: break
  od;
ends:
  atomic {
    if :: holder == me -> holder = 0 :: else fi;
    answered[me] = 0; relied[me] = 0; bound = 0;
    DROP(lease_from_before, me); DROP(round_from_before, me);
    DROP(alive, me)
  };
end:
  do
  EACH(ACQUIRE_UNHEARD)
  od
}

#define STAYS(n) HAS((relied[key[n]] | answered[key[n]]), n)
#define VANISH(n) :: d_step { key[n] && !STAYS(n) -> key[n] = 0 }

#ifdef DROPS_KEYS
#define CLEAR_KEY(n) key[n] = 0
#else
#define CLEAR_KEY(n) skip
#endif
#ifdef DROPS_COUNTERS
#define CLEAR_COUNTER(n) counter[n] = 0
#else
#define CLEAR_COUNTER(n) skip
#endif
#define MOVE(n) \
  :: d_step { HAS(BOTH, n) && !HAS(moved, n) -> ADD(moved, n); CLEAR_KEY(n); CLEAR_COUNTER(n) }

#if defined(WAIT_FROM_FIRST_SEEN)
#define MAY_BEGIN 1
#elif defined(MAJORITY_NOT_MOVED)
#define MAY_BEGIN (COUNT(moved) >= 1)
#else
#define MAY_BEGIN (COUNT(moved) >= MAJORITY)
#endif
#ifdef NO_WAIT
#define WAITED MAY_BEGIN
#else
#define WAITED (waits && (lease_from_before | round_from_before) == 0)
#endif
#if defined(NO_COUNTERS)
#define SOURCES_MIN 0
#elif defined(COUNTER_OF_ONE) || defined(MAJORITY_NOT_MOVED)
#define SOURCES_MIN 1
#else
#define SOURCES_MIN MAJORITY
#endif
#if defined(WAIT_FROM_FIRST_SEEN) || defined(MAJORITY_NOT_MOVED)
#define MAY_JOIN WAITED
#else
#define MAY_JOIN (WAITED && COUNT(moved) >= MAJORITY)
#endif
#define READ(n) \
  :: d_step { !HAS(moved, 3) && HAS(moved, n) && !HAS(sources, n) -> \
       ADD(sources, n); if :: counter[n] > recovered -> recovered = counter[n] :: else fi }

proctype world() {
end:
  do
  EACH(VANISH)
  EACH(MOVE)
  :: d_step { !waits && !HAS(moved, 3) && MAY_BEGIN ->
       waits = true; lease_from_before = alive; round_from_before = alive }
  EACH(READ)
  :: d_step { !HAS(moved, 3) && MAY_JOIN && COUNT(sources) >= SOURCES_MIN ->
       counter[3] = recovered; ADD(moved, 3); sources = 0; recovered = 0;
       waits = false; lease_from_before = 0; round_from_before = 0 }
  od
}

init {
  atomic { run attempt(1); run attempt(2); run world() }
}
