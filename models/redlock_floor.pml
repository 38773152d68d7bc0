/* Fenced Redlock: how high the counters begin of nodes that rejoin by way 2, or by `init`.
 *
 * Modelled   three nodes, each with a counter and a clock. An attempt is granted in one step: a
 *            majority that votes is asked for a proposal, each node takes it if it is above its
 *            counter and at most AHEAD above its clock; fresh on all: that is the token; otherwise
 *            they are raised to the highest counter that was answered, plus one. A node that is
 *            lost has no counter, and waits until its own clock is MAX_TTL past where it was. Then
 *            it rejoins with the counters of two that vote (way 1), or of another node that
 *            answers, and at least the higher of their two clocks + max(0, 2 AHEAD - MAX_TTL) (way
 *            2). With INIT, nodes that wait are let in at once, with the highest counter of all,
 *            and at least the highest clock of all + max(AHEAD, 2 AHEAD - MAX_TTL).
 * Time       the unit of tokens and of clocks is the same. A raise takes one unit of every clock.
 *            (In truth it takes many: a unit is a microsecond. The protocol adds a second to each
 *            of these floors, for what happens in the same moment.)
 * Assumed    nodes' clocks do not go back, and are never apart by more than AHEAD, or by MAX_TTL if
 *            that is less.
 * Adversary  moves each clock within that; loses nodes LOSSES times; chooses proposals, who votes,
 *            and who answers.
 * Asserted   tokens rise.
 * Limits     1 GB. Attempts one at a time: redlock_rejoin.pml has them at once, and relies on
 *            what is shown here: a floor is above every counter from before the wait.
 *
 * Mutants    NO_SLACK       way 2 begins at the highest clock
 *            OWN_CLOCK_HALF way 2 begins at the clock + max(0, AHEAD - MAX_TTL)
 *            NO_BOUND       a node takes a proposal however far it is ahead of its clock
 *            CLOCKS_APART   clocks are apart by one unit more
 *            CLOCKS_GO_BACK a node's clock is set back by one unit while it waits
 *            INIT_AT_CLOCK  `init` begins at the highest clock
 *            INIT_HIGHER    `init` begins at the highest clock + 2 AHEAD + 1, which way 2 after it
 *                           does not reach
 */
#define N 3
#ifndef MAX_TTL
#define MAX_TTL 2
#endif
#define AHEAD 2
#ifdef CLOCKS_APART
#define MORE_APART 1
#else
#define MORE_APART 0
#endif
#define MINIMUM(a, b) (a < b -> a : b)
#define MAXIMUM(a, b) (a > b -> a : b)
#define APART (MINIMUM(AHEAD, MAX_TTL) + MORE_APART)
#ifndef LOSSES
#define LOSSES 3
#endif
#define CLOCK_MAX (2 * MAX_TTL + 4)
#define ALL 7

#define HAS(set, n) ((set >> n) & 1)
#define ADD(set, n) set = set | (1 << n)
#define DROP(set, n) set = set & ~(1 << n)
#define LIFT(what, to) if :: what < to -> what = to :: else fi

byte clock[N];
byte counter[N];
byte since[N]; /* its clock, when it was lost */
byte intact = ALL;
byte losses;
byte highest;

#define NOT_APART(a, b) (a <= b + APART && b <= a + APART)
#define HIGHEST_CLOCK MAXIMUM(clock[0], MAXIMUM(clock[1], clock[2]))
#define TICK(n, m, o) \
  :: d_step { clock[n] < CLOCK_MAX && NOT_APART((clock[n] + 1), clock[m]) && \
              NOT_APART((clock[n] + 1), clock[o]) -> clock[n]++ }

#ifdef NO_BOUND
#define BELIEVES(n) 1
#else
#define BELIEVES(n) (p <= clock[n] + AHEAD)
#endif
#define TAKES(n) (p > counter[n] && BELIEVES(n))
#define ANSWERED(n) (TAKES(n) -> p : counter[n])
#define GRANT(n, m) \
  :: atomic { HAS(intact, n) && HAS(intact, m) && HIGHEST_CLOCK < CLOCK_MAX -> \
       p = 0; \
       do :: p < CLOCK_MAX + 2 * AHEAD -> p++ :: break od; \
       d_step { \
         if \
         :: TAKES(n) && TAKES(m) -> q = p \
         :: else -> \
            q = MAXIMUM(ANSWERED(n), ANSWERED(m)) + 1; \
            clock[0]++; clock[1]++; clock[2]++ \
         fi; \
         assert(q > highest); \
         highest = q; counter[n] = q; counter[m] = q; p = 0; q = 0 \
       } }

#define LOSE(n) \
  :: d_step { losses < LOSSES -> \
       losses++; DROP(intact, n); counter[n] = 0; since[n] = clock[n]; AND_SET_BACK(n) }
#ifdef CLOCKS_GO_BACK
#define AND_SET_BACK(n) if :: clock[n] > 0 -> clock[n]--; since[n]-- :: else fi
#else
#define AND_SET_BACK(n) skip
#endif
#define WAITED(n) (!HAS(intact, n) && clock[n] >= since[n] + MAX_TTL)
#define VOTE(n) ADD(intact, n); since[n] = 0
#define WAY_1(n, m, o) \
  :: d_step { WAITED(n) && HAS(intact, m) && HAS(intact, o) -> \
       counter[n] = MAXIMUM(counter[m], counter[o]); VOTE(n) }
#if defined(NO_SLACK)
#define SLACK 0
#elif defined(OWN_CLOCK_HALF)
#define SLACK (AHEAD > MAX_TTL -> AHEAD - MAX_TTL : 0)
#else
#define SLACK (2 * AHEAD > MAX_TTL -> 2 * AHEAD - MAX_TTL : 0)
#endif
#define WAY_2(n, m) \
  :: d_step { WAITED(n) -> \
       counter[n] = MAXIMUM(counter[m], MAXIMUM(clock[n], clock[m]) + SLACK); VOTE(n) }

#if defined(INIT_AT_CLOCK)
#define INIT_SLACK 0
#elif defined(INIT_HIGHER)
#define INIT_SLACK (2 * AHEAD + 1)
#else
#define INIT_SLACK MAXIMUM(AHEAD, SLACK)
#endif
#define LET_IN(n) \
  if \
  :: !HAS(intact, n) -> \
     counter[n] = MAXIMUM(MAXIMUM(counter[0], MAXIMUM(counter[1], counter[2])), \
                          HIGHEST_CLOCK + INIT_SLACK); \
     VOTE(n) \
  :: else \
  fi

init {
  byte p;
  byte q;
  /* Clocks begin anywhere, but not apart; nodes are alike. */
  atomic { do :: clock[0] < APART -> clock[0]++ :: break od }
  atomic { do :: clock[1] < clock[0] -> clock[1]++ :: break od }
end:
  do
  TICK(0, 1, 2)
  TICK(1, 0, 2)
  TICK(2, 0, 1)
  GRANT(0, 1)
  GRANT(0, 2)
  GRANT(1, 2)
  LOSE(0)
  LOSE(1)
  LOSE(2)
  WAY_1(0, 1, 2)
  WAY_1(1, 0, 2)
  WAY_1(2, 0, 1)
  WAY_2(0, 1)
  WAY_2(0, 2)
  WAY_2(1, 0)
  WAY_2(1, 2)
  WAY_2(2, 0)
  WAY_2(2, 1)
#ifdef INIT
  :: d_step { intact != ALL -> LET_IN(0); LET_IN(1); LET_IN(2) }
#endif
  od
}
