/* Fenced Redlock: amnesia. A node that may have forgotten refuses, until it has rejoined.
 *
 * Modelled   three nodes with key, counter and marker; ATTEMPTS acquisitions, one after another or
 *            at once, that take the lock with a fresh token on a majority, or with one that they
 *            raise a majority to (once), hold it, and end. A node restarts with its counter, with
 *            an older one or with none; it refuses attempts. It rejoins in one script, which checks
 *            that it is still the same wait, after max_ttl and then, read one by one,
 *              way 1: with the highest counter of two (N/2 + 1) nodes that are intact, as rejoined
 *                nodes are, either way;
 *              way 2: with the highest counter of a majority that answers, itself included, intact
 *                or waiting, and at least the floor: the highest of their clocks, and some. It is
 *                above every counter from before the wait, if one of those clocks is right:
 *                redlock_floor.pml. The clock of node 0 may be behind, and its floor is nothing.
 *            Way 2 is allowed even where way 1 would do: order does not rest on having looked well.
 *            With CLOCKLESS there is no floor at all, and way 2 is only gone where a majority that
 *            answers has not lost its counters, whether it knows that or not, or by mistake. What
 *            holds then rests on no clock.
 *            With INIT, a person may let in all nodes that wait, one by one, without waiting, each
 *            if it is still in the wait that was seen; all nodes answer; the floor is above every
 *            counter of before. The person vouches that no attempt which any node ever granted
 *            anything to is held, or under way.
 * Time       max_ttl has passed: every attempt that this node ever granted anything to is over
 *            (its validity counts from before the request left, and is at most max_ttl). Whose
 *            clocks tell: redlock_wait.pml. A key vanishes only when its attempt is over. One that
 *            a node kept over a restart is such a key before the node votes again, so it may as
 *            well be gone at once. Renewal: redlock_lasting.pml.
 * Adversary  LOSSES times, restarts one node, or all three at once, at any moment, also while they
 *            wait or are read; chooses who answers, proposals, and which of them a node believes;
 *            delays requests, also of attempts that are over; loses replies.
 * Asserted   at most one attempt holds the lock; tokens in real-time order, none twice.
 * Limits     2.5 GB. Two losses; with INIT, one. That nodes do not believe a proposal:
 *            redlock_tokens.pml.
 *
 * Mutants    NO_QUARANTINE       the node that may have forgotten votes on
 *            NO_WAIT             it rejoins without waiting
 *            NO_COUNTERS         way 1, without counters
 *            COUNTER_OF_ONE      way 1, with those of one intact node
 *            COUNTERS_OF_WAITING way 1 counts nodes that wait as intact
 *            READ_BEFORE_WAIT    the counters are read first, and the wait ends then
 *            WAIT_UNCHECKED      a slow client, who waited and read in an earlier wait, lets it in
 *            NO_FLOOR            way 2, with the highest counter only
 *            MINORITY            way 2, though only the node itself answers
 *            OWN_COUNTERS        way 2, with its own counters (CLOCKLESS)
 *            ONE_LOOK            way 2, though enough intact nodes are there: one was away when
 *                                they were looked at (CLOCKLESS)
 *            HELD                `init` while the lock is held (INIT)
 *            UNDER_WAY           `init` while nothing is held, but an attempt is under way (INIT)
 */
#define N 3
#define MAJORITY 2
#define ALL 7
#ifndef ATTEMPTS
#define ATTEMPTS 2
#endif
#ifndef LOSSES
#define LOSSES 2
#endif
#ifndef PROPOSAL_MAX
#define PROPOSAL_MAX 2
#endif

#define COUNT(set) ((set & 1) + ((set >> 1) & 1) + ((set >> 2) & 1))
#define HAS(set, n) ((set >> n) & 1)
#define ADD(set, n) set = set | (1 << n)
#define DROP(set, n) set = set & ~(1 << n)
#define LIFT(what, to) if :: what < to -> what = to :: else fi
#define EACH(what) what(0) what(1) what(2)
#define EACH_DO(what) what(0); what(1); what(2)

byte key[N];
byte counter[N];
byte intact = ALL; /* nodes that vote */
byte voters[N];    /* attempts that it granted anything to, in any of its lives, and are not over */
byte losses;
byte alone;         /* nodes that were lost alone */

byte over;   /* attempts that are */
byte holder; /* 0: nobody */
byte highest;
byte tokens;
byte begun;
byte done; /* attempts of which nothing more is asserted */

/* How far the rejoining of a node is; any client takes a step. */
byte by_way_2;     /* nodes whose counters are read for way 2 */
byte sources[N];   /* nodes whose counters were read */
byte recovered[N]; /* the highest of them */
#ifdef CLOCKLESS
byte remember = ALL; /* nodes that have not lost their counters, whether they know it or not */
byte remembered[N];  /* sources that had not */
#define LOSE_COUNTERS(n) DROP(remember, n)
#define FORGET_REMEMBERED(n) remembered[n] = 0
#define NOTE_SOURCE(n, m) if :: HAS(remember, m) -> ADD(remembered[n], m) :: else fi
#define REMEMBER(n) ADD(remember, n)
#else
byte floor[N]; /* by node that waits */
#define CLOCK_IS_BEHIND 1 /* of node 0 */
#define LOSE_COUNTERS(n) skip
#define FORGET_REMEMBERED(n) skip
#define NOTE_SOURCE(n, m) skip
#define REMEMBER(n) floor[n] = 0
#endif

#ifdef NO_QUARANTINE
#define VOTES(n) 1
#else
#define VOTES(n) HAS(intact, n)
#endif
#define FREE(n) VOTES(n) && key[n] == 0
#define SET(n) key[n] = me; if :: HAS(over, me) :: else -> ADD(voters[n], me) fi
#define ACQUIRE_UNHEARD(n) \
  :: d_step { FREE(n) -> SET(n); LIFT(counter[n], p) }
#define ACQUIRE(n) \
  :: d_step { FREE(n) -> \
       SET(n); \
       if :: p > counter[n] -> counter[n] = p; ADD(fresh, n) :: else -> ADD(stale, n) fi; \
       LIFT(seen, counter[n]) } \
  ACQUIRE_UNHEARD(n)
#define MAY_RAISE(n) VOTES(n) && key[n] == me && counter[n] < q
#define RAISE(n) \
  :: d_step { MAY_RAISE(n) -> counter[n] = q; ADD(fresh, n) } \
  :: d_step { MAY_RAISE(n) -> counter[n] = q }

#define NOT_FOR_ME(n) DROP(voters[n], me)
#define BOTH ((1 << (ATTEMPTS + 1)) - 2)

proctype attempt(byte me) provided (done != BOTH) {
  byte p;     /* proposed */
  byte q;     /* the token, perhaps raised */
  byte fresh; /* nodes that moved their counters to it, and said so */
  byte stale; /* nodes that granted, but did not */
  byte seen;  /* the highest counter that was answered */
  byte bound;
  atomic {
    begun == me - 1 -> begun = me; /* attempts are alike: let them begin in order */
    bound = highest;
    p = 1;
    do :: p < PROPOSAL_MAX -> p++ :: break od
  }
  do
  EACH(ACQUIRE)
  :: d_step { COUNT(fresh) >= MAJORITY -> q = p } goto granted
  :: d_step { COUNT(fresh) < MAJORITY && COUNT((fresh | stale)) >= MAJORITY ->
       q = seen + 1; fresh = 0; stale = 0; seen = 0 }
     break
  :: goto ends
  od;
  do
  EACH(RAISE)
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
    LIFT(highest, q);
    fresh = 0; stale = 0; seen = 0; bound = 0; q = 0;
    ADD(done, me)
  };
ends:
  atomic {
    if :: holder == me -> holder = 0 :: else fi;
    fresh = 0; stale = 0; seen = 0; bound = 0; q = 0;
    EACH_DO(NOT_FOR_ME);
    ADD(done, me); ADD(over, me)
  };
end:
  do
  EACH(ACQUIRE_UNHEARD)
  od
}

#define VANISH(n) :: d_step { key[n] && HAS(over, key[n]) -> key[n] = 0 }

#ifdef WAIT_UNCHECKED
#define FORGET_REJOINING(n) skip
#else
#define FORGET_REJOINING(n) \
  DROP(by_way_2, n); sources[n] = 0; recovered[n] = 0; FORGET_REMEMBERED(n)
#endif
#ifdef CLOCKLESS
#define NOTE_FLOOR(n) skip
#else
#define NOTE_FLOOR(n) LIFT(floor[n], counter[n])
#endif
#define LOSE(n) \
  key[n] = 0; DROP(intact, n); NOTE_FLOOR(n); FORGET_REJOINING(n); SEEN_BY_INIT(n); \
  do :: counter[n] > 0 -> counter[n]--; LOSE_COUNTERS(n) :: break od
/* Nodes are alike: let them be lost in order. */
#define LOSE_ONE(n) \
  :: atomic { losses < LOSSES && n <= alone -> \
       losses++; if :: n == alone -> alone++ :: else fi; LOSE(n) }

#ifdef NO_WAIT
#define PASSED(n) 1
#else
#define PASSED(n) (voters[n] == 0)
#endif
/* No attempt is granted anything by a node that waits: once over, its wait stays so. */
#ifdef READ_BEFORE_WAIT
#define MAY_READ(n) !HAS(intact, n)
#else
#define MAY_READ(n) (!HAS(intact, n) && PASSED(n))
#endif
#ifdef WAIT_UNCHECKED
#define MAY_REJOIN(n) !HAS(intact, n)
#else
#define MAY_REJOIN(n) (!HAS(intact, n) && PASSED(n))
#endif
#ifdef COUNTERS_OF_WAITING
#define IS_SOURCE(m) 1
#else
#define IS_SOURCE(m) HAS(intact, m)
#endif
#if defined(NO_COUNTERS)
#define SOURCES_MIN 0
#elif defined(COUNTER_OF_ONE)
#define SOURCES_MIN 1
#else
#define SOURCES_MIN MAJORITY
#endif
#define READ(n, m) \
  :: d_step { MAY_READ(n) && n != m && IS_SOURCE(m) && !HAS(sources[n], m) && !HAS(by_way_2, n) -> \
       ADD(sources[n], m); LIFT(recovered[n], counter[m]) } \
  :: d_step { MAY_READ(n) && n != m && MAY_READ_FOR_WAY_2(n, m) -> \
       ADD(by_way_2, n); ADD(sources[n], m); LIFT(recovered[n], counter[m]); NOTE_SOURCE(n, m) }
#define READS(n) READ(n, 0) READ(n, 1) READ(n, 2)
/* With the node itself, one other is a majority, and a second one would only add to what it has. */
#ifdef CLOCKLESS
#define MAY_READ_FOR_WAY_2(n, m) \
  ((HAS(by_way_2, n) || sources[n] == 0) && !HAS(sources[n], m))
#else
#define MAY_READ_FOR_WAY_2(n, m) (sources[n] == 0)
#endif

#define VOTE(n) ADD(intact, n); REMEMBER(n); FORGET_REJOINING(n)
#define WAY_1(n) \
  :: d_step { MAY_REJOIN(n) && !HAS(by_way_2, n) && COUNT(sources[n]) >= SOURCES_MIN -> \
       LIFT(counter[n], recovered[n]); VOTE(n) }

#ifdef MINORITY
#define ANSWERED(n) (sources[n] == 0)
#else
#define ANSWERED(n) HAS(by_way_2, n)
#endif
#ifdef CLOCKLESS
/* Without ONE_LOOK it is only gone by where there are too few intact nodes. Whether there are then
 * enough that remember is what this variant assumes. */
#ifdef ONE_LOOK
#define MISTAKEN (COUNT(intact) >= MAJORITY)
#else
#define MISTAKEN 0
#endif
#define MAY_GO_WAY_2(n) (COUNT((remembered[n] | (remember & (1 << n)))) >= MAJORITY || MISTAKEN)
#else
#define MAY_GO_WAY_2(n) 1
#endif
#ifdef OWN_COUNTERS
#define HIGHEST_READ(n) skip
#else
#define HIGHEST_READ(n) LIFT(counter[n], recovered[n])
#endif
#if defined(CLOCKLESS) || defined(NO_FLOOR)
#define FLOOR(n) skip
#else
#define FLOOR(n) \
  if \
  :: ((sources[n] | (1 << n)) & ~CLOCK_IS_BEHIND) -> LIFT(counter[n], floor[n]) \
  :: else \
  fi
#endif
#define WAY_2(n) \
  :: d_step { MAY_REJOIN(n) && ANSWERED(n) && MAY_GO_WAY_2(n) -> \
       HIGHEST_READ(n); FLOOR(n); VOTE(n) }

#ifdef INIT
byte vouched;       /* nodes that waited when it was vouched, and are in that wait still */
byte vouched_floor;
#define SEEN_BY_INIT(n) DROP(vouched, n)
#if defined(HELD)
#define NOTHING_IS_HELD 1
#elif defined(UNDER_WAY)
#define NOTHING_IS_HELD (holder == 0)
#else
#define NOTHING_IS_HELD ((voters[0] | voters[1] | voters[2]) == 0)
#endif
#define INCLUDE(n) LIFT(vouched_floor, counter[n]); LIFT(vouched_floor, floor[n])
#define LET_IN(n) \
  :: d_step { HAS(vouched, n) && !HAS(intact, n) -> \
       LIFT(counter[n], vouched_floor); VOTE(n); DROP(vouched, n) }
#define VOUCH \
  :: d_step { vouched == 0 && intact != ALL && NOTHING_IS_HELD -> \
       vouched = ALL & ~intact; vouched_floor = 0; EACH_DO(INCLUDE) }
#else
#define SEEN_BY_INIT(n) skip
#define LET_IN(n)
#define VOUCH
#endif

proctype world() provided (done != BOTH) {
end:
  do
  EACH(VANISH)
  EACH(LOSE_ONE)
  :: atomic { losses < LOSSES -> losses++; EACH_DO(LOSE) }
#ifndef NO_QUARANTINE
  EACH(READS)
  EACH(WAY_1)
  EACH(WAY_2)
  EACH(LET_IN)
  VOUCH
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
