/* Fenced Redlock: the order of tokens.
 *
 * Modelled   N independent nodes, each with a counter C; ATTEMPTS acquisitions, each with an id
 *            of its own and a token p that it proposes. A node that grants answers `fresh` (p >
 *            C, and it believes p: C := p) or `stale, C`. Fresh on a majority: the token is p.
 *            Granted on a majority, but not fresh on one: raise to q = the highest counter
 *            answered + 1 (where a node answered fresh, that is p), where C < q: C := q, ok. A
 *            majority of ok: the token is q. Refused: try once more, higher, or give up. A key
 *            that is already ours answers stale to a repeated acquire, and ok to a repeated raise
 *            if q is what it was raised to.
 * Adversary  chooses proposals, what the counters start from, and for every acquire that reaches
 *            a node whether the node believes the proposal: clocks are anywhere; loses, delays
 *            and repeats requests, also of attempts that are over; loses and delays replies. It
 *            also chooses, for every script, whether it finds the key free, its own, or
 *            another's: keys vanish and come back at will, so the order of tokens rests on no
 *            key, clock, pause or TTL. ("Busy" is a request lost; to a counter, a repair is a
 *            raise to the lease's token that nobody hears of.)
 * Asserted   if A's acquire returned before B's began, token(B) > token(A); no token twice. No
 *            raise goes above the highest counter that there was at the start, or proposal that a
 *            node believed, by more than the number of raises so far: a proposal that nobody
 *            believes moves nothing.
 *            That last one only with BOUNDED, which counts the raises.
 * Limits     with ALL_BELIEVED, in which no proposal is disbelieved, and TOKEN_MAX=3, exhaustive
 *            for N = 3 and two attempts: 2 GB. With proposals that are not believed, higher
 *            tokens, more attempts, and N = 5: bitstate hashing.
 *
 * Mutants    NO_WRITE_BACK      take the highest counter seen, plus one, without raising to it
 *            RAISE_EQUAL        raise if C <= q
 *            RAISE_UNCHECKED    raise without looking at C
 *            RAISED_WHATEVER    a key that was raised answers ok, whatever it was raised to
 *            KEEP_CONFIRMATIONS count what confirmed a lower q for the higher one
 *            RETRANSMIT_FRESH   a key that is already ours answers fresh
 *            REUSED_ID          the second attempt goes by the id of the first, which is over
 *            RAISE_TO_PROPOSAL  raise to max(C seen, p) + 1, whether a node believed p or not
 *            UNBELIEVED_TAKEN   a node that does not believe p answers as if it did: p is the token
 */
#ifndef N
#define N 3
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 2
#endif
#ifndef PROPOSAL_MAX
#define PROPOSAL_MAX 2
#endif
#ifndef COUNTER_START_MAX
#define COUNTER_START_MAX 2
#endif
#ifndef TOKEN_MAX
#define TOKEN_MAX 5 /* raising beyond it gives up, which is always allowed */
#endif
#define MAJORITY (N / 2 + 1)

#if N == 3
#define EACH(what) what(0) what(1) what(2)
#define COUNT(set) ((set & 1) + ((set >> 1) & 1) + ((set >> 2) & 1))
#else
#define EACH(what) what(0) what(1) what(2) what(3) what(4)
#define COUNT(set) \
  ((set & 1) + ((set >> 1) & 1) + ((set >> 2) & 1) + ((set >> 3) & 1) + ((set >> 4) & 1))
#endif
#define HAS(set, n) ((set >> n) & 1)
#define ADD(set, n) set = set | (1 << n)
#define SEE(n) if :: counter[n] > seen[id] -> seen[id] = counter[n] :: else fi

byte counter[N];

/* By attempt: sets of nodes, and the highest counter that an answer told. */
byte fresh[ATTEMPTS + 1];   /* said so */
byte granted[ATTEMPTS + 1]; /* said so, or that they are stale */
byte raised[ATTEMPTS + 1];  /* were raised to q */
byte ok[ATTEMPTS + 1];      /* said so */
byte seen[ATTEMPTS + 1];

/* For the assertions only. */
byte highest; /* of the tokens returned */
short tokens; /* the set of them */
byte over;    /* attempts that are */
#ifdef BOUNDED
byte bounded; /* the highest counter at the start, or proposal believed, plus the raises so far */
byte raises;
#define BELIEVED(p) if :: bounded < p + raises -> bounded = p + raises :: else fi
#define COUNT_RAISE raises++; bounded++; assert(q <= bounded)
#else
#define BELIEVED(p) skip
#define COUNT_RAISE skip
#endif

/* The acquire script where it finds the key free. Where C is not below p, or p is not believed, it
 * changes nothing but the key. A reply that is heard late counts as a client that is slow to
 * decide. */
#define ACQUIRE_UNHEARD(n) \
  :: d_step { p > counter[n] -> \
       counter[n] = p; BELIEVED(p); if :: q <= p -> ADD(took, n) :: else fi }
#define ACQUIRE_LATE(n) \
  :: d_step { p > counter[n] -> counter[n] = p; BELIEVED(p) }
#define ACQUIRE(n) \
  ACQUIRE_UNHEARD(n) \
  :: d_step { p > counter[n] -> \
       counter[n] = p; BELIEVED(p); ADD(granted[id], n); ADD(fresh[id], n); SEE(n) } \
  :: d_step { !HAS(granted[id], n) && MAY_DISBELIEVE(n) -> \
       ADD(granted[id], n); UNLESS_BELIEVED(n) } \
  AGAIN(n)
#ifdef RETRANSMIT_FRESH
#define AGAIN(n) \
  :: d_step { p <= counter[n] && !HAS(fresh[id], n) -> ADD(granted[id], n); ADD(fresh[id], n) }
#else
#define AGAIN(n) /* answered stale, as above */
#endif

#ifdef ALL_BELIEVED
#define MAY_DISBELIEVE(n) (p <= counter[n])
#else
#define MAY_DISBELIEVE(n) 1
#endif
#ifdef UNBELIEVED_TAKEN
#define UNLESS_BELIEVED(n) if :: p > counter[n] -> ADD(fresh[id], n) :: else -> SEE(n) fi
#else
#define UNLESS_BELIEVED(n) SEE(n)
#endif

#ifdef RAISE_TO_PROPOSAL
#define ANSWERED (seen[id] > p -> seen[id] : p)
#else
#define ANSWERED seen[id]
#endif

#if defined(RAISE_UNCHECKED)
#define MAY_RAISE(n, to) 1
#elif defined(RAISE_EQUAL)
#define MAY_RAISE(n, to) (counter[n] <= to)
#else
#define MAY_RAISE(n, to) (counter[n] < to)
#endif
#define LIFT(n, to) if :: counter[n] < to -> counter[n] = to :: else fi

/* The raise script where the key is ours; `previous` is in the network still. */
#define RAISE_UNHEARD(n) \
  :: d_step { q && !HAS(raised[id], n) && MAY_RAISE(n, q) -> LIFT(n, q); ADD(raised[id], n) } \
  :: d_step { previous > counter[n] -> counter[n] = previous }
#define RAISE(n) \
  RAISE_UNHEARD(n) \
  :: d_step { HAS(raised[id], n) && !HAS(ok[id], n) -> ADD(ok[id], n) } \
  /* The key says p already, and p is what it is to be raised to. */ \
  :: d_step { q == p && HAS(took, n) && !HAS(ok[id], n) -> ADD(ok[id], n) } \
  /* Refused: somebody was here, or the key is gone. Only a higher counter is news. */ \
  :: d_step { counter[n] >= q && counter[n] > seen[id] -> seen[id] = counter[n] }

#ifdef REUSED_ID
#define FORGET(what)
#else
#define FORGET(what) what[id] = 0
#endif
#ifdef KEEP_CONFIRMATIONS
#define FORGET_OK
#else
#define FORGET_OK ok[id] = 0;
#endif
#ifdef RAISED_WHATEVER
#define FORGET_RAISED
#else
#define FORGET_RAISED raised[id] = 0;
#endif

proctype attempt(byte me) {
  byte id;
  byte p;        /* proposed */
  byte q;        /* raised to */
  byte previous; /* what was tried before q */
  byte took;     /* nodes that believed p, unheard: a raise may go to p as well */
  byte bound;    /* no token was returned above it before we began */
#ifdef REUSED_ID
  me == 1 || over;
#endif
  atomic {
    bound = highest;
#ifdef REUSED_ID
    id = 1;
#else
    id = me;
#endif
    p = 1;
    do
    :: p < PROPOSAL_MAX -> p++
    :: break
    od
  }
  do
  EACH(ACQUIRE)
  :: d_step { COUNT(fresh[id]) >= MAJORITY -> q = p }
     goto returns
  :: d_step { COUNT(granted[id]) >= MAJORITY && COUNT(fresh[id]) < MAJORITY ->
       q = ANSWERED + 1; COUNT_RAISE; FORGET(fresh); FORGET(granted) }
#ifdef NO_WRITE_BACK
     goto returns
#else
     break
#endif
  :: goto ends
  od;
  do
  EACH(RAISE)
  EACH(ACQUIRE_UNHEARD)
  :: COUNT(ok[id]) >= MAJORITY -> break
  :: d_step { !previous && seen[id] >= q && seen[id] < TOKEN_MAX ->
       FORGET_OK FORGET_RAISED previous = q; q = seen[id] + 1; COUNT_RAISE }
  :: goto ends
  od;
returns:
  atomic {
    assert(q > bound);       /* later is higher */
    assert(!HAS(tokens, q)); /* and nobody else has it */
    ADD(tokens, q);
    if :: q > highest -> highest = q :: else fi
  };
ends:
  atomic {
    bound = 0; took = 0; FORGET(fresh); FORGET(granted); FORGET(ok); FORGET(seen);
    over++
  };
  /* What is still in the network arrives. */
end:
  do
  EACH(RAISE_UNHEARD)
  EACH(ACQUIRE_LATE)
  od
}

init {
  byte i;
  atomic {
    /* Nodes are alike: counters in ascending order are all there is to try. */
    do
    :: i < N ->
       if :: i > 0 -> counter[i] = counter[i - 1] :: else fi;
       do :: counter[i] < COUNTER_START_MAX -> counter[i]++ :: break od;
       i++
    :: else -> break
    od;
#ifdef BOUNDED
    bounded = counter[N - 1];
#endif
    i = 1;
    do :: i <= ATTEMPTS -> run attempt(i); i++ :: else -> break od;
    i = 0
  }
}
