/* Fenced Redlock: another list of nodes. A node is replaced while clients of both lists ask.
 *
 * Modelled   the old list is nodes 0, 1 and 2, the new one 0, 1 and 3; two attempts, each of a
 *            client with either list, that take the lock with a fresh token on a majority of their
 *            list, renew it in rounds, and end. To move: each node that is in both, in any order,
 *            changes its marker in one script: it keeps keys and counters, and from then on does
 *            nothing for clients of the old list but release. Nodes that leave need not be there.
 *            When as many have moved as are a majority of the new list, nodes that join begin to
 *            wait for max_ttl; then they vote, with the counters of that many nodes that moved,
 *            read at any time since. Until then, a majority of the new list is of nodes that moved,
 *            and meets every majority of the old list in one that has its keys and counter still.
 *            With ADDED, the lists are of three and of four nodes, with REMOVED of four and of
 *            three; with TWO_OF_FIVE, two of five are replaced at once.
 * Time       max_ttl has passed: whatever counts from before the wait began is over: attempts, and
 *            leases that have not been renewed since. A key that is relied on, or was granted or
 *            extended in the current round, stays until its attempt is over.
 * Adversary  moves the nodes when it likes, one of them perhaps never; chooses lists and
 *            proposals; delays requests, also of attempts that are over; loses replies.
 * Asserted   at most one attempt holds the lock; tokens in real-time order, none twice.
 * Limits     1 GB; TWO_OF_FIVE: bitstate hashing.
 *
 * Mutants    MAJORITY_NOT_MOVED   nodes that join wait and vote when one node has moved
 *            WAIT_FROM_FIRST_SEEN the wait began when a client with the new list first came by
 *            NO_WAIT              they vote once the others have moved
 *            NO_COUNTERS          they vote without the counters of others
 *            COUNTER_OF_ONE       or with those of one node
 *            STILL_GRANTS         a node that has moved grants to clients of the old list
 *            STILL_EXTENDS        or extends their leases, which then outlive the wait
 *            DROPS_KEYS           moving clears the node's keys
 *            DROPS_COUNTERS       moving clears its counters, as deleting its record would
 *            FIVE_TO_THREE        two of five are removed at once: 3 + 2 nodes need not meet
 */
#define ATTEMPTS 2
#define PROPOSAL_MAX 2
/* Sets of nodes, as bits. */
#if defined(ADDED)
#define OLD 7
#define NEW 15
#define OLD_MAJORITY 2
#define NEW_MAJORITY 3
#elif defined(REMOVED)
#define OLD 15
#define NEW 7
#define OLD_MAJORITY 3
#define NEW_MAJORITY 2
#elif defined(TWO_OF_FIVE)
#define OLD 31
#define NEW 103 /* 0, 1, 2, 5 and 6 */
#define OLD_MAJORITY 3
#define NEW_MAJORITY 3
#elif defined(FIVE_TO_THREE)
#define OLD 31
#define NEW 7
#define OLD_MAJORITY 3
#define NEW_MAJORITY 2
#else
#define OLD 7
#define NEW 11 /* 0, 1 and 3 */
#define OLD_MAJORITY 2
#define NEW_MAJORITY 2
#endif

#define HAS(set, n) ((set >> n) & 1)
#define ADD(set, n) set = set | (1 << n)
#define DROP(set, n) set = set & ~(1 << n)
#if (OLD | NEW) < 16
#define NODES 4
#define COUNT(set) (HAS(set, 0) + HAS(set, 1) + HAS(set, 2) + HAS(set, 3))
#define EACH(what) what(0) what(1) what(2) what(3)
#else
#define NODES 7
#define COUNT(set) \
  (HAS(set, 0) + HAS(set, 1) + HAS(set, 2) + HAS(set, 3) + HAS(set, 4) + HAS(set, 5) + HAS(set, 6))
#define EACH(what) what(0) what(1) what(2) what(3) what(4) what(5) what(6)
#endif
#define STAYS_IN(n) (HAS(OLD, n) && HAS(NEW, n))
#define JOINS(n) (HAS(NEW, n) && !HAS(OLD, n))

byte key[NODES];
byte counter[NODES];
byte moved; /* nodes that vote for the new list */

byte relied[ATTEMPTS + 1];  /* nodes that the lease stands on */
byte answered[ATTEMPTS + 1]; /* nodes that granted or extended, in the current round */
byte alive;                 /* attempts that have begun and are not over */
byte holder;                /* 0: nobody */
byte highest;
byte tokens;

/* The wait of nodes that join. */
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
  byte majority;
  byte bound;
  atomic {
    bound = highest;
    ADD(alive, me);
    if
    :: list = OLD; majority = OLD_MAJORITY
    :: list = NEW; majority = NEW_MAJORITY
    fi;
    p = 1;
    do :: p < PROPOSAL_MAX -> p++ :: break od
  }
  do
  EACH(ACQUIRE)
  :: COUNT(answered[me]) >= majority ->
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
  :: d_step { COUNT(answered[me]) >= majority ->
       relied[me] = answered[me]; answered[me] = 0;
       if :: HAS(round_from_before, me) :: else -> DROP(lease_from_before, me) fi;
       DROP(round_from_before, me) }
  :: d_step { COUNT(answered[me]) < majority -> answered[me] = 0; DROP(round_from_before, me) }
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

#define NEEDED(n) HAS((relied[key[n]] | answered[key[n]]), n)
#define VANISH(n) :: d_step { key[n] && !NEEDED(n) -> key[n] = 0 }

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
  :: d_step { STAYS_IN(n) && !HAS(moved, n) -> ADD(moved, n); CLEAR_KEY(n); CLEAR_COUNTER(n) }

#if defined(WAIT_FROM_FIRST_SEEN)
#define MAY_BEGIN 1
#elif defined(MAJORITY_NOT_MOVED)
#define MAY_BEGIN (COUNT(moved) >= 1)
#else
#define MAY_BEGIN (COUNT(moved) >= NEW_MAJORITY)
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
#define SOURCES_MIN NEW_MAJORITY
#endif
#if defined(WAIT_FROM_FIRST_SEEN) || defined(MAJORITY_NOT_MOVED)
#define MAY_JOIN WAITED
#else
#define MAY_JOIN (WAITED && COUNT(moved) >= NEW_MAJORITY)
#endif
#define READ(n) \
  :: d_step { HAS(OLD, n) && HAS(moved, n) && !HAS(sources, n) -> \
       ADD(sources, n); if :: counter[n] > recovered -> recovered = counter[n] :: else fi }
#define JOIN(n) \
  :: d_step { JOINS(n) && !HAS(moved, n) && MAY_JOIN && COUNT(sources) >= SOURCES_MIN -> \
       counter[n] = recovered; ADD(moved, n) }

proctype world() {
end:
  do
  EACH(VANISH)
  EACH(MOVE)
  :: d_step { !waits && MAY_BEGIN ->
       waits = true; lease_from_before = alive; round_from_before = alive }
#if (NEW & ~OLD) != 0
  EACH(READ)
  EACH(JOIN)
#endif
  od
}

init {
  atomic { run attempt(1); run attempt(2); run world() }
}
