/* Fenced Redlock: exclusion while clocks drift within a bound.
 *
 * Modelled   three nodes, each with the lock's key and a clock of its own that expires it after
 *            TTL ticks of *that* clock; two clients, each with a clock of its own. A client asks
 *            all nodes, needs a majority, and relies on the lock until its own clock has moved TTL
 *            - ALLOWANCE since before the first request left; it looks at its clock again after
 *            the last reply. It may give up, and try again.
 * Time       Clocks move in ticks, all at once; in any stretch of TTL ticks a clock may also gain
 *            one of its own, or miss one: a bound of 1 in TTL against true time, each way.
 *            ALLOWANCE is twice that, since our clock may be slow while the node's is fast.
 * Adversary  chooses the drift of every clock within the bound, how long requests and replies
 *            take, and when clients pause.
 * Asserted   no two clients rely on the lock at once.
 * Limits     1 GB.
 *
 * Mutants    NO_ALLOWANCE        nothing is taken off for drift
 *            HALF_ALLOWANCE      only one clock's drift is taken off
 *            FROM_REPLY          validity counts from the reply that made the majority
 *            NOT_LOOKED_AGAIN    the clock is not read again after the last reply
 */
#define N 3
#define MAJORITY 2
#ifndef TTL
#define TTL 4
#endif
#if defined(NO_ALLOWANCE)
#define ALLOWANCE 0
#elif defined(HALF_ALLOWANCE)
#define ALLOWANCE 1
#else
#define ALLOWANCE 2
#endif
#define VALIDITY (TTL - ALLOWANCE)

#define COUNT(set) ((set & 1) + ((set >> 1) & 1) + ((set >> 2) & 1))
#define HAS(set, n) ((set >> n) & 1)
#define ADD(set, n) set = set | (1 << n)
#define EACH(what) what(0) what(1) what(2)

byte key[N];
byte left[N];  /* ticks of the node's clock until the key expires */
bool fast[N];  /* it has run ahead since the key was set */

byte asking;        /* clients that are, or rely */
byte elapsed[3];    /* ticks of the client's clock since before its first request left */
byte slow[3];       /* does it miss a tick, since then? */
#define NEVER 0
#define NOW 1 /* the next one */
#define BEFORE 2
byte granted[3];    /* nodes that said so */
byte relies;        /* clients that do */

/* A node's clock only matters when it is fast, a client's when it is slow: the other way they are
 * on the safe side. */
#define NODE_MOVES(n) \
  if :: left[n] > 0 -> left[n]-- :: else fi; \
  if :: left[n] == 0 -> key[n] = 0; fast[n] = false :: else fi;
#define CLIENT_MOVES(c) \
  if \
  :: HAS(asking, c) && slow[c] == NOW -> slow[c] = BEFORE \
  :: HAS(asking, c) && slow[c] != NOW && elapsed[c] < TTL -> elapsed[c]++ \
  :: else \
  fi; \
  if :: HAS(relies, c) && elapsed[c] >= VALIDITY -> STOP(c) :: else fi;
#define RUN_FAST(n) \
  :: d_step { left[n] > 0 && !fast[n] -> fast[n] = true; NODE_MOVES(n) }
#define RUN_SLOW(c) \
  :: d_step { HAS(asking, c) && slow[c] == NEVER -> slow[c] = NOW }
#define STOP(c) \
  relies = relies & ~(1 << c); asking = asking & ~(1 << c); \
  elapsed[c] = 0; slow[c] = NEVER; granted[c] = 0

proctype time() {
end:
  do
  :: d_step { EACH(NODE_MOVES) CLIENT_MOVES(1) CLIENT_MOVES(2) }
  EACH(RUN_FAST)
  RUN_SLOW(1)
  RUN_SLOW(2)
  od
}

#ifdef NOT_LOOKED_AGAIN
#define IN_TIME 1
#else
#define IN_TIME (elapsed[me] < VALIDITY)
#endif
#ifdef FROM_REPLY
#define COUNT_FROM elapsed[me] = 0; slow[me] = NEVER;
#else
#define COUNT_FROM
#endif
#define ACQUIRE(n) \
  :: d_step { HAS(asking, me) && !HAS(relies, me) && key[n] == 0 -> \
       key[n] = me; left[n] = TTL; fast[n] = false; ADD(granted[me], n) }

proctype client(byte me) {
end:
  do
  :: d_step { !HAS(asking, me) -> ADD(asking, me) }
  EACH(ACQUIRE)
  :: d_step { HAS(asking, me) && !HAS(relies, me) && COUNT(granted[me]) >= MAJORITY && IN_TIME ->
       COUNT_FROM
       ADD(relies, me);
       assert(relies != 6) }
  /* Releases, gives up, or finds that it is too late; its keys go when they expire. */
  :: d_step { HAS(asking, me) -> STOP(me) }
  od
}

init {
  atomic { run time(); run client(1); run client(2) }
}
