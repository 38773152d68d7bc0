/* Fenced Redlock: renewing a lease, and repairing a node that lost its key.
 *
 * Modelled   three nodes; a holder with token 1, whose key is on two or three of them, that renews
 *            in rounds; a contender with token 2. A round extends the key where it is still the
 *            holder's; a majority of extensions is success. A node where the key is missing is
 *            repaired (the key is set again), but only once the round has succeeded, and it does
 *            not count in that round: of two answers of a node, the first is the one. A round that
 *            fails may be tried again. A key that was set by a stale vote counts as missing. So
 *            does one with a token above the lease's: the lease was raised to a token below what
 *            its attempt had proposed, because some nodes did not believe the proposal, and its
 *            acquire comes late to a node that does.
 * Adversary  Node 0 loses keys at any time, again and again; the other two keep a key until its
 *            owner gives it back. Requests, repairs above all, arrive late and more than once, the
 *            holder's acquires too; replies are lost. The holder's proposal is the lease's token,
 *            or above it: then it may be above or below the contender's, and each node that an
 *            acquire comes to late believes it or not. No clock: the holder may be as slow as it
 *            likes. With STRICT, every node loses keys at any time.
 * Asserted   When a round succeeds, no contender that was granted before the round began still
 *            holds the lock: otherwise there are two holders, both of which were just told so.
 *            With STRICT, none was granted at all, that is: a lease that was interrupted is not
 *            renewed, whatever keys get lost. That takes one rule more: a repair is refused by a
 *            node whose counter is above the lease's token, because somebody was granted there
 *            since.
 * Limits     512 MB.
 *
 * Mutants    REPAIR_COUNTED      "extend, or set if missing" in one go, counted in the round
 *            REPAIR_WITHOUT_MAJORITY  repaired although the round has not succeeded
 *            LATE_ANSWER         an extension of an earlier round counts in this one
 *            BOTH_ANSWERS        a node that extended, and when asked again has lost the key,
 *                                counts and is repaired in the same round
 *            STALE_COUNTS        a stale vote's key is extended and counts: an acquire that comes
 *                                late is a repair that nobody checks
 *            HIGHER_COUNTS       a key with a token above the lease's is extended and counts: the
 *                                same, by a vote that was fresh
 *            STRICT UNGUARDED    the counter is not looked at: a repair that lands after a
 *                                contender came and went brings the lease back
 *            STRICT LATE_ANSWER, STRICT STALE_COUNTS, STRICT HIGHER_COUNTS  as above
 */
#define N 3
#define MAJORITY 2
#define HOLDER 1 /* ids, and tokens as well */
#define CONTENDER 3
#define STALE 5  /* the holder's id, set by an acquire that was answered stale */
#define HIGHER 6 /* the holder's id, with a token above the lease's */

#define COUNT(set) ((set & 1) + ((set >> 1) & 1) + ((set >> 2) & 1))
#define HAS(set, n) ((set >> n) & 1)
#define ADD(set, n) set = set | (1 << n)
#define EACH(what) what(0) what(1) what(2)

byte key[N];
byte counter[N];
byte repairs; /* in the network, for ever: nodes */

bool granted; /* the contender was */
bool over;    /* it gave the lock back, or gave up */

#if defined(STRICT) && !defined(UNGUARDED)
#define MAY_REPAIR(n) ((key[n] == 0 || key[n] == STALE) && counter[n] <= HOLDER)
#else
#define MAY_REPAIR(n) (key[n] == 0 || key[n] == STALE)
#endif
#define NOT_COUNTED(n) (key[n] == 0 || key[n] == STALE || key[n] == HIGHER)
#ifdef STALE_COUNTS
#define STALE_KEY HOLDER
#else
#define STALE_KEY STALE
#endif
#ifdef HIGHER_COUNTS
#define HIGHER_KEY HOLDER
#else
#define HIGHER_KEY HIGHER
#endif
byte proposal; /* the holder's attempt's: the lease's token, or above it */
/* An acquire of the holder that arrives only now, or again: believed, or not believed or not above
 * the counter. */
#define ACQUIRE_LATE(n) \
  :: d_step { key[n] == 0 && counter[n] < proposal -> \
       key[n] = (proposal == HOLDER -> HOLDER : HIGHER_KEY); counter[n] = proposal } \
  :: d_step { key[n] == 0 -> key[n] = STALE_KEY }

#if defined(REPAIR_COUNTED)
#define RENEW(n) \
  :: d_step { key[n] == HOLDER && !HAS(extended, n) -> ADD(extended, n) } \
  :: d_step { MAY_REPAIR(n) -> key[n] = HOLDER; ADD(extended, n) }
#else
#define RENEW(n) \
  :: d_step { key[n] == HOLDER && !HAS(extended, n) && !HAS(missing, n) -> ADD(extended, n) } \
  :: d_step { NOT_COUNTED(n) && FIRST_ANSWER(n) && !HAS(missing, n) -> \
       ADD(missing, n); REPAIR_AT_ONCE(n) }
#endif
#ifdef BOTH_ANSWERS
#define FIRST_ANSWER(n) 1
#else
#define FIRST_ANSWER(n) !HAS(extended, n)
#endif
#ifdef REPAIR_WITHOUT_MAJORITY
#define REPAIR_AT_ONCE(n) ADD(repairs, n)
#else
#define REPAIR_AT_ONCE(n) skip
#endif

#ifdef LATE_ANSWER
#define NEXT(then) repairs = then; missing = 0; granted_before = granted
#else
#define NEXT(then) repairs = then; missing = 0; granted_before = granted; extended = 0
#endif

proctype holder() {
  byte extended; /* nodes that said so, in this round */
  byte missing;
  bool granted_before;
#ifdef STRICT
#define INTERRUPTED granted_before
#else
#define INTERRUPTED (granted_before && !over)
#endif
end:
  do
  EACH(RENEW)
  :: d_step { COUNT(extended) >= MAJORITY -> assert(!INTERRUPTED); NEXT(repairs | missing) }
  :: d_step { NEXT(repairs) } /* it failed */
  od
}

#define REPAIR(n) :: d_step { HAS(repairs, n) && MAY_REPAIR(n) -> key[n] = HOLDER }
#ifdef STRICT
#define MAY_LOSE(n) (key[n] != 0)
#else
#define MAY_LOSE(n) (key[n] != 0 && (n == 0 || (key[n] == CONTENDER && over)))
#endif
#define LOSE(n) :: d_step { MAY_LOSE(n) -> key[n] = 0 }

proctype network() {
end:
  do
  EACH(REPAIR)
  EACH(ACQUIRE_LATE)
  EACH(LOSE)
  od
}

#define FREE(n) (key[n] == 0)
#define ACQUIRE_UNHEARD(n) \
  :: d_step { FREE(n) -> \
       key[n] = CONTENDER; if :: counter[n] < CONTENDER -> counter[n] = CONTENDER :: else fi }
#define ACQUIRE(n) \
  :: d_step { FREE(n) && counter[n] < CONTENDER -> \
       key[n] = CONTENDER; counter[n] = CONTENDER; ADD(fresh, n) } \
  ACQUIRE_UNHEARD(n)

proctype contender() {
  byte fresh;
  do
  EACH(ACQUIRE)
  :: d_step { COUNT(fresh) >= MAJORITY && !granted -> granted = true }
  :: d_step { fresh = 0; over = true } -> break
  od;
end:
  do
  EACH(ACQUIRE_UNHEARD)
  od
}

#define HELD(n) key[n] = HOLDER; counter[n] = HOLDER
init {
  atomic {
    HELD(0);
    if
    :: HELD(1)
    :: HELD(2)
    :: HELD(1); HELD(2)
    fi;
    /* Raised to the token, below the proposal; between the two tokens, or above both. */
    if
    :: proposal = HOLDER
    :: proposal = HOLDER + 1
    :: proposal = CONTENDER + 1
    fi;
    run holder(); run network(); run contender()
  }
}
