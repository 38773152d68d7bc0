/* Fenced Redlock: votes that are split, and the line that ends it.
 *
 * Modelled   three nodes with key and line (the waiters' tickets); three waiters who ask at once,
 *            the lowest ticket being the lowest number. A node that is held puts the waiter in
 *            line; one that finds the waiter's own key says so. A waiter that is busy on a majority
 *            and has nothing stands: it asks again with the same id. One that has something gives
 *            back wherever it asked, and the same request puts its next id in its place there. A
 *            node that is given back votes for the lowest ticket in its line there and then: the
 *            key is that waiter's, and it is called. Where a release is still on its way the vote
 *            goes to an id that is given up, and the release passes it on. Calls count when the
 *            waiter asks again, or when they make a majority. Requests of one waiter to one node
 *            stay in order. Who is granted gives back, leaves the line, and does not come again.
 * Time       A tick is the longest between two asks of one waiter, and each asks once in it. With
 *            UNEVEN, it may ask twice, until somebody is granted. Messages take about equally long:
 *            nobody asks twice while another's message is under way. No claim expires: it is
 *            longer than many ticks. A majority of keys is enough here: raising is no new ask.
 * Adversary  chooses every order of messages and asks within that, and whether node 2 is down. It
 *            loses nothing: with losses, timers must do, and their jitter, which is chance and no
 *            proof.
 * Asserted   from the moment when all have asked at once, and while the lock is free, nobody asks
 *            more than BOUND times before somebody is granted: no livelock. The bound is exact.
 *            Whoever is granted has its key on a majority, and nobody else is.
 * Limits     1 GB.
 *
 * Mutants    TELLS_ALL    a node that is given back votes for nobody, and tells all in its line
 *            NOT_IN_LINE  who gives back does not put its next id in line
 *            ANY_TICKET   each node votes for whom it likes
 *            OLD_STAYS    who gives back does so where it may have the key, and stays in line
 *                         elsewhere: nodes vote for an id that nobody has any more
 *            OLD_CALLED   a call of the id that was given up counts for the next one
 *            UNEVEN NOT_IN_LINE, UNEVEN ANY_TICKET  as above
 */
#define N 3
#define MAJORITY 2
#define WAITERS 3
#define NOBODY 4 /* the key of an id that nobody has any more */
#ifndef BOUND
#ifdef UNEVEN
#define BOUND 6
#else
#define BOUND 3
#endif
#endif

#define HAS(set, n) ((set >> (n)) & 1)
#define ADD(set, n) set = set | (1 << (n))
#define DROP(set, n) set = set & ~(1 << (n))
#define COUNT(set) (HAS(set, 0) + HAS(set, 1) + HAS(set, 2))
#define EACH(what) what(0) what(1) what(2)

byte up;
byte key[N];
byte line[N]; /* sets of waiters */

mtype = { idle, asking, holding, served };
mtype phase[WAITERS + 1] = idle;
byte asked[WAITERS + 1];  /* nodes that an ask is on its way to */
byte got[WAITERS + 1];    /* nodes that have its key, as far as it knows */
byte giving[WAITERS + 1]; /* nodes that a release is on its way to, behind the ask */
byte calls[WAITERS + 1];  /* nodes that call it: messages on their way */
byte votes[WAITERS + 1];  /* its asks since the lock is free */
byte has_asked;           /* waiters that have, in this tick */
#ifdef UNEVEN
byte has_twice; /* the same, twice */
#define MAY_ASK !HAS(has_twice, me)
#define NOTE_ASK if :: HAS(has_asked, me) -> ADD(has_twice, me) :: else -> ADD(has_asked, me) fi
#define NEXT_TICK has_asked = 0; has_twice = 0
#define UNTIL_GRANTED provided (!HELD)
#else
#define MAY_ASK !HAS(has_asked, me)
#define NOTE_ASK ADD(has_asked, me)
#define NEXT_TICK has_asked = 0
#define UNTIL_GRANTED
#endif

#ifdef ANY_TICKET
#define CHOOSE(n) \
  :: HAS(line[n], 1) -> first = 1 \
  :: HAS(line[n], 2) -> first = 2 \
  :: HAS(line[n], 3) -> first = 3
#else
#define CHOOSE(n) \
  :: line[n] && !OLDER(n) -> first = LOWEST(line[n])
#endif
#define LOWEST(set) (HAS(set, 1) -> 1 : (HAS(set, 2) -> 2 : 3))
#ifdef OLD_STAYS
byte old[N]; /* in line by an id that was given up */
#define OLDER(n) (old[n] && (!line[n] || LOWEST(old[n]) <= LOWEST(line[n])))
#define CHOOSE_OLD(n) \
  :: OLDER(n) -> first = LOWEST(old[n]); DROP(old[n], first); first = 0; key[n] = NOBODY
#define LEAVE_OLD(n) \
  if \
  :: HAS(line[n], me) && !HAS(giving[me], n) -> DROP(line[n], me); ADD(old[n], me) \
  :: else \
  fi;
#define GIVE_BACK_AT (got[me] | asked[me])
#else
#define OLDER(n) 0
#define CHOOSE_OLD(n)
#define LEAVE_OLD(n)
#define GIVE_BACK_AT up
#endif
#ifdef TELLS_ALL
#define VOTE(n) has_asked = has_asked & ~line[n]
#else
/* The call is heard unless it is of an id that a release is on its way for. */
#define VOTE(n) \
  if \
  CHOOSE(n) \
  CHOOSE_OLD(n) \
  :: !line[n] && !OLDER(n) \
  fi; \
  if \
  :: first -> \
     DROP(line[n], first); key[n] = first; \
     if :: !HAS(giving[first], n) && WAITS(first) -> ADD(calls[first], n) :: else fi \
  :: else \
  fi; \
  first = 0
#endif
#define WAITS(i) (phase[i] == idle || phase[i] == asking)

#define ASK(n) \
  :: d_step { HAS(asked[me], n) -> \
       DROP(asked[me], n); \
       if \
       :: key[n] == 0 -> key[n] = me; DROP(line[n], me) \
       :: key[n] != 0 && key[n] != me -> ADD(line[n], me) \
       :: else \
       fi; \
       if \
       :: key[n] == me && WAITS(me) && !HAS(giving[me], n) -> ADD(got[me], n) \
       :: else \
       fi }
#ifdef NOT_IN_LINE
#define STAY(n) DROP(line[n], me)
#else
#define STAY(n) if :: HAS(line[n], me) || key[n] == me -> ADD(line[n], me) :: else fi
#endif
#define GIVE_BACK(n) \
  :: atomic { HAS(giving[me], n) && !HAS(asked[me], n) -> \
       DROP(giving[me], n); \
       if :: phase[me] == served -> DROP(line[n], me) :: else -> STAY(n) fi; \
       if :: key[n] == me -> key[n] = 0; VOTE(n) :: else fi }
#define HEAR(n) \
  :: d_step { phase[me] == idle && HAS(calls[me], n) -> DROP(calls[me], n); ADD(got[me], n) }
#ifdef OLD_CALLED
#define FORGET_CALLS skip
#else
#define FORGET_CALLS calls[me] = 0
#endif

#define UNDER_WAY(i) ((asked[i] | giving[i]) != 0 || phase[i] == asking)
/* Messages take about equally long: nobody asks twice more while another's one is under way. */
#define HURRIES(i) (votes[i] < votes[me] && (UNDER_WAY(i) || (calls[i] && phase[i] == idle)))
#define HELD (phase[1] == holding || phase[2] == holding || phase[3] == holding)
#define KEYS ((key[0] == me) + (key[1] == me) + (key[2] == me))

proctype waiter(byte me) UNTIL_GRANTED {
  byte first;
end:
  do
  :: d_step { phase[me] == idle && MAY_ASK && !UNDER_WAY(me) &&
              !HURRIES(1) && !HURRIES(2) && !HURRIES(3) ->
       phase[me] = asking; NOTE_ASK;
       asked[me] = up & ~got[me];
       if :: !HELD -> votes[me]++; assert(votes[me] <= BOUND) :: else fi }
  EACH(ASK)
  EACH(GIVE_BACK)
  EACH(HEAR)
  :: d_step { WAITS(me) && COUNT(got[me]) >= MAJORITY ->
       assert(!HELD && KEYS >= MAJORITY);
       phase[me] = holding; calls[me] = 0; votes[1] = 0; votes[2] = 0; votes[3] = 0 }
  :: d_step { phase[me] == asking && COUNT(got[me]) + COUNT(asked[me]) < MAJORITY ->
       phase[me] = idle;
       if
       :: got[me] -> giving[me] = GIVE_BACK_AT; EACH(LEAVE_OLD) got[me] = 0; FORGET_CALLS
       :: else
       fi }
  :: d_step { phase[me] == holding ->
       phase[me] = served; giving[me] = up; got[me] = 0 }
  od
}

#define QUIET(i) \
  (asked[i] == 0 && giving[i] == 0 && \
   (phase[i] == served || (phase[i] == idle && calls[i] == 0 && HAS(has_asked, i))))
#define SERVED(i) (phase[i] == served)

proctype clock() {
end:
  do
  :: d_step { QUIET(1) && QUIET(2) && QUIET(3) && !(SERVED(1) && SERVED(2) && SERVED(3)) ->
       NEXT_TICK }
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
