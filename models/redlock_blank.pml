/* Fenced Redlock: a set of which every node lost everything.
 *
 * Modelled   three nodes with key, counter and marker; two attempts, one after another or at once,
 *            that take the lock with a fresh token on a majority, hold it, and end. Nodes lose
 *            everything, one by one, and refuse attempts. A client that has found each node blank,
 *            and each to have waited for max_ttl since, lets them vote, one by one, with no
 *            counters: there are none. If one of them kept its counter, nobody may (a person must,
 *            with `recover`). Or a person vouches that nothing is held (`init`), and nobody waits.
 *            Only a node that still is in the wait that the client saw is let in.
 * Time       max_ttl has passed: every attempt that this node ever granted anything to is over.
 * Adversary  LOSSES times, lets a node lose everything, also one that votes again; chooses
 *            proposals; delays requests, also of attempts that are over, and the client's; loses
 *            replies.
 * Asserted   at most one attempt holds the lock; tokens in real-time order, none twice, except
 *            from before all was lost to after: there, clients' clocks must do.
 * Limits     512 MB.
 *
 * Mutants    VOTES_AT_ONCE    a blank node votes
 *            NO_WAIT          the set begins again without waiting
 *            ONE_HAS_WAITED   it begins when the first of them has waited
 *            MOST_ARE_BLANK   it begins though one node has kept its counter
 *            ANOTHER_WAIT     a slow client lets in a node that lost everything again since
 *            NOBODY_VOUCHES   `init` while the lock is held
 */
#define N 3
#define MAJORITY 2
#define ATTEMPTS 2
#define ALL 7
#ifndef LOSSES
#define LOSSES 4
#endif
#define PROPOSAL_MAX 2

#define HAS(set, n) ((set >> n) & 1)
#define ADD(set, n) set = set | (1 << n)
#define DROP(set, n) set = set & ~(1 << n)
#define COUNT(set) (HAS(set, 0) + HAS(set, 1) + HAS(set, 2))
#define EACH(what) what(0) what(1) what(2)

byte key[N];
byte counter[N];
byte marked = ALL; /* nodes with a marker */
byte voters[N];    /* attempts that the node granted anything to, before and after */
byte losses;

byte over;   /* attempts that are */
byte holder; /* 0: nobody */
byte highest;
byte tokens;
byte lost;   /* nodes that lost their counters since the set began */
bool begun_again;

/* The client that lets them in. */
byte found;  /* nodes that it found blank, and still are in that wait */
byte waited; /* those of them that had waited */

#ifdef VOTES_AT_ONCE
#define VOTES(n) 1
#else
#define VOTES(n) HAS(marked, n)
#endif
#define LIFT(n) if :: p > counter[n] -> counter[n] = p :: else fi
#define ACQUIRE_UNHEARD(n) \
  :: d_step { VOTES(n) && key[n] == 0 -> key[n] = me; LIFT(n); ADD(voters[n], me) }
#define ACQUIRE(n) \
  :: d_step { VOTES(n) && key[n] == 0 && p > counter[n] -> \
       key[n] = me; counter[n] = p; ADD(voters[n], me); ADD(fresh, n) } \
  ACQUIRE_UNHEARD(n)

proctype attempt(byte me) {
  byte p;
  byte fresh;
  byte bound;
  bool began_after;
  atomic {
    bound = highest;
    began_after = begun_again;
    p = 1;
    do :: p < PROPOSAL_MAX -> p++ :: break od
  }
  do
  EACH(ACQUIRE)
  :: COUNT(fresh) >= MAJORITY ->
     d_step {
       assert(holder == 0);
       assert(p > bound || began_after != begun_again);
       assert(!HAS(tokens, p));
       holder = me;
       ADD(tokens, p);
       if :: p > highest -> highest = p :: else fi
     };
     break
  :: break
  od;
  atomic {
    if :: holder == me -> holder = 0 :: else fi;
    fresh = 0; bound = 0; began_after = false;
    ADD(over, me)
  };
end:
  do
  EACH(ACQUIRE_UNHEARD)
  od
}

#define VANISH(n) :: d_step { key[n] && HAS(over, key[n]) -> key[n] = 0 }
#ifdef ANOTHER_WAIT
#define FORGET(n) skip
#else
#define FORGET(n) DROP(found, n); DROP(waited, n)
#endif
#define LOSE(n) \
  :: d_step { losses < LOSSES -> \
       losses++; key[n] = 0; counter[n] = 0; DROP(marked, n); ADD(lost, n); FORGET(n) }

#define PASSED(n) ((voters[n] & ~over) == 0)
#define FIND(n) \
  :: d_step { !decided && !HAS(marked, n) && !HAS(waited, n) -> \
       ADD(found, n); if :: PASSED(n) -> ADD(waited, n) :: else fi }
#if defined(NO_WAIT)
#define HAVE_WAITED 1
#elif defined(ONE_HAS_WAITED)
#define HAVE_WAITED (waited != 0)
#else
#define HAVE_WAITED (waited == ALL)
#endif
#ifdef MOST_ARE_BLANK
#define MAY_BEGIN (COUNT(found) >= MAJORITY && COUNT(waited) >= MAJORITY)
#else
#define MAY_BEGIN (found == ALL && HAVE_WAITED)
#endif
#ifdef NOBODY_VOUCHES
#define VOUCHED 1
#else
#define VOUCHED (PASSED(0) && PASSED(1) && PASSED(2))
#endif
#define BEGIN \
  if \
  :: lost == ALL -> lost = 0; begun_again = true; highest = 0; tokens = 0 \
  :: else \
  fi
#define LET_IN(n) \
  :: d_step { decided && HAS(found, n) && !HAS(marked, n) -> ADD(marked, n); BEGIN }

proctype world() {
  bool decided;
end:
  do
  EACH(VANISH)
  EACH(LOSE)
  EACH(FIND)
  :: d_step { !decided && (MAY_BEGIN || (found == ALL && VOUCHED)) -> decided = true }
  EACH(LET_IN)
  :: d_step { decided -> decided = false; found = 0; waited = 0 }
  od
}

init {
  atomic { run attempt(1); run attempt(2); run world() }
}
