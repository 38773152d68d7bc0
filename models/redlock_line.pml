/* Fenced Redlock: votes that are split, and the line that ends it.
 *
 * Modelled   three nodes with key, line (the waiters' tickets) and whom they keep the lock for;
 *            three waiters who ask at once, the lowest ticket being the lowest number. A node that
 *            is held, or kept for another, puts the waiter in line; a waiter that cannot have a
 *            majority any more gives back what it may have, and stays in line there; a node that
 *            is given back is kept for the lowest ticket in its line, and tells that waiter. Who
 *            is told asks at once; everybody asks again in every tick, by his own timer, too.
 *            Requests of one waiter to one node stay in order. Who is granted gives back, leaves
 *            the line, and does not come again.
 * Time       A tick is the longest between two asks of one waiter. Messages take about equally
 *            long: nobody asks twice while another's message is under way. A node keeps the lock
 *            until the one whom it told has asked: in the code, for node_timeout.
 * Adversary  chooses every order of messages and asks within that, and whether node 2 is down. It
 *            loses nothing: with losses, timers must do, and their jitter, which is chance and no
 *            proof.
 * Asserted   from the moment when all have asked at once, and while the lock is free, nobody asks
 *            more than BOUND times before somebody is granted: no livelock. The bound is exact.
 * Limits     1 GB.
 *
 * Mutants    TELLS_ALL    a node that is given back tells everybody in line, and keeps nothing
 *            NOT_IN_LINE  who gives back leaves the line there
 *            ANY_TICKET   each node keeps the lock for whom it likes
 */
#define N 3
#define MAJORITY 2
#define WAITERS 3
#ifndef BOUND
#define BOUND 8
#endif

#define HAS(set, n) ((set >> (n)) & 1)
#define ADD(set, n) set = set | (1 << (n))
#define DROP(set, n) set = set & ~(1 << (n))
#define COUNT(set) (HAS(set, 0) + HAS(set, 1) + HAS(set, 2))
#define EACH(what) what(0) what(1) what(2)

byte up;
byte key[N];
byte line[N]; /* sets of waiters */
byte next[N]; /* the lock is kept for; 0: nobody */

mtype = { idle, asking, holding, served };
mtype phase[WAITERS + 1] = idle;
byte asked[WAITERS + 1];  /* nodes that an ask is on its way to */
byte got[WAITERS + 1];    /* nodes that granted it */
byte giving[WAITERS + 1]; /* nodes that a release is on its way to, behind the ask */
byte votes[WAITERS + 1];  /* its asks since the lock is free */
byte told;                /* waiters that were told that it is their turn */
byte has_asked;           /* waiters that have, in this tick */

#ifdef ANY_TICKET
#define CHOOSE(n) \
  :: HAS(line[n], 1) -> first = 1 \
  :: HAS(line[n], 2) -> first = 2 \
  :: HAS(line[n], 3) -> first = 3
#else
#define CHOOSE(n) \
  :: line[n] -> first = (HAS(line[n], 1) -> 1 : (HAS(line[n], 2) -> 2 : 3))
#endif
#ifdef TELLS_ALL
#define PASS_ON(n) told = told | line[n]
#else
#define PASS_ON(n) \
  if \
  CHOOSE(n) \
  :: !line[n] \
  fi; \
  if :: first -> DROP(line[n], first); ADD(told, first); next[n] = first :: else fi; \
  first = 0
#endif

#define ASK(n) \
  :: d_step { HAS(asked[me], n) -> \
       DROP(asked[me], n); \
       if \
       :: key[n] == 0 && (next[n] == 0 || next[n] == me) -> \
          key[n] = me; DROP(line[n], me); next[n] = 0; \
          if :: phase[me] == asking -> ADD(got[me], n) :: else fi \
       :: else -> ADD(line[n], me) \
       fi }
#ifdef NOT_IN_LINE
#define STAY(n) DROP(line[n], me)
#else
#define STAY(n) ADD(line[n], me)
#endif
#define GIVE_BACK(n) \
  :: atomic { HAS(giving[me], n) && !HAS(asked[me], n) -> \
       DROP(giving[me], n); \
       if \
       :: phase[me] == served -> \
          DROP(line[n], me); passes = next[n] == me && key[n] == 0; \
          if :: next[n] == me -> next[n] = 0 :: else fi \
       :: else -> STAY(n) \
       fi; \
       if :: key[n] == me -> key[n] = 0; passes = true :: else fi; \
       if :: passes -> PASS_ON(n) :: else fi; \
       passes = false }

#define UNDER_WAY(i) ((asked[i] | giving[i]) != 0 || phase[i] == asking)
/* Messages take about equally long: nobody asks twice more while another's one is under way. */
#define HURRIES(i) (votes[i] < votes[me] && (UNDER_WAY(i) || (HAS(told, i) && phase[i] == idle)))
#define HELD (phase[1] == holding || phase[2] == holding || phase[3] == holding)

proctype waiter(byte me) {
  byte first;
  bool passes;
end:
  do
  /* By its timer, or because it was told. */
  :: d_step { phase[me] == idle && (HAS(told, me) || !HAS(has_asked, me)) && !UNDER_WAY(me) &&
              !HURRIES(1) && !HURRIES(2) && !HURRIES(3) ->
       phase[me] = asking; DROP(told, me); ADD(has_asked, me);
       asked[me] = up;
       if :: !HELD -> votes[me]++; assert(votes[me] <= BOUND) :: else fi }
  EACH(ASK)
  EACH(GIVE_BACK)
  :: d_step { phase[me] == asking && COUNT(got[me]) >= MAJORITY ->
       phase[me] = holding; votes[1] = 0; votes[2] = 0; votes[3] = 0 }
  :: d_step { phase[me] == asking && COUNT(got[me]) + COUNT(asked[me]) < MAJORITY ->
       phase[me] = idle; giving[me] = got[me] | asked[me]; got[me] = 0 }
  :: d_step { phase[me] == holding ->
       phase[me] = served; giving[me] = up; got[me] = 0 }
  od
}

/* Whoever is told asks before it is kept no more. */
#define EXPIRE(n) \
  :: d_step { next[n] && !HAS(told, next[n]) && phase[next[n]] != asking -> next[n] = 0 }
#define QUIET(i) \
  (asked[i] == 0 && giving[i] == 0 && \
   (phase[i] == served || (phase[i] == idle && !HAS(told, i) && HAS(has_asked, i))))
#define SERVED(i) (phase[i] == served)

proctype clock() {
end:
  do
  :: d_step { QUIET(1) && QUIET(2) && QUIET(3) && !(SERVED(1) && SERVED(2) && SERVED(3)) ->
       has_asked = 0 }
  EACH(EXPIRE)
  od
}

#define ALL_ASK(i) phase[i] = asking; asked[i] = up; votes[i] = 1
init {
  atomic {
    if :: up = 7 :: up = 3 fi;
    ALL_ASK(1); ALL_ASK(2); ALL_ASK(3); has_asked = 14;
    run waiter(1); run waiter(2); run waiter(3); run clock()
  }
}
