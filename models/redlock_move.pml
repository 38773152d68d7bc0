/* Fenced Redlock: another list of nodes. A node is replaced while clients of both lists ask, and
 * while nodes restart and rejoin.
 *
 * Modelled   the old list is nodes 0, 1 and 2, the new one 0, 1 and 3; two attempts, each of a
 *            client with either list, that take the lock with a fresh token on a majority of their
 *            list, renew it in rounds, and end. To move, step by step, and in any order where
 *            nothing else is said:
 *              nodes that join are told: their record says that they join, and are not complete;
 *              then each node that stays changes over, in one script, also one that waits: it keeps
 *                keys and counters, does nothing for clients of the old list from then on, and is
 *                not complete;
 *              nodes that leave are told, or never are;
 *              once a majority of the new list has changed over, nodes that joined begin their wait
 *                anew, and then `complete` is written to the nodes that carry the new list.
 *            A node that restarts, with its data, with those of before the move, or empty, waits.
 *            A client of either list lets it in, in one script, which refuses if the node is in
 *            another wait than the client saw, or carries the other list, by
 *              way 1: with the counters of N/2 + 1 intact nodes of its list. Of the new list, only
 *                nodes that are complete count;
 *              way 2: if a majority answers, nodes that carry the other list not counted; not if
 *                one of those answers, or one that is not complete, unless one that carries the new
 *                list and is complete does. (An old list that was moved to itself, and is complete,
 *                does not outvote the new one.) Its counters begin above all of before the wait, as
 *                in redlock_rejoin.pml. There counters are read one by one, and a node is let in
 *                later; here both are one step, with SLOW two.
 *            With ADDED, the lists are of three and of four nodes, with REMOVED of four and of
 *            three; with TWO_OF_FIVE, two of five are replaced at once.
 * Time       max_ttl has passed: whatever counts from before the wait began is over: attempts, and
 *            leases that have not been renewed since. A key that is relied on, or was granted or
 *            extended in the current round, stays until its attempt is over, or its node restarts.
 * Assumed    from when the wait of the first node that joins begins anew (or `complete` is first
 *            written), nodes of the old list that do not know of the move, because they were not
 *            told, or forgot, are fewer than a majority of that list. No client has the new list
 *            before nodes that join are told.
 * Adversary  moves the nodes when it likes, some of them perhaps never; restarts one, at any
 *            moment; chooses who answers, lists and proposals; delays requests, also of attempts
 *            that are over, and letting in; loses replies.
 * Asserted   at most one attempt holds the lock; tokens in real-time order, none twice.
 * Limits     2.5 GB; TWO_OF_FIVE, SLOW: bitstate hashing. One restart; none with ADDED, REMOVED.
 *
 * Mutants    MAJORITY_NOT_MOVED   `complete` is written when one node has changed over
 *            HALF_DONE            way 2 without looking at what nodes say of a move
 *            NOT_COMPLETE_COUNTS  way 1 counts nodes that are not complete
 *            WAIT_FROM_FIRST_SEEN the wait of nodes that join is not begun anew
 *            NOT_TOLD             nodes that join are not told before others change over
 *            NO_WAIT              a node is let in without waiting
 *            NO_COUNTERS          way 1 without counters
 *            NO_FLOOR             way 2 without them
 *            STILL_GRANTS         a node that changed over grants to clients of the old list
 *            STILL_EXTENDS        or extends their leases, which then outlive the wait
 *            DROPS_KEYS           changing over clears the node's keys
 *            DROPS_COUNTERS       or its counters, as deleting its record would
 *            FIVE_TO_THREE        two of five are removed at once: 3 + 2 nodes need not meet
 *            FORGOTTEN            no mutant of the rules, but without what is assumed: a majority
 *                                 of the old list does not know of a complete move, and goes on
 *            FORGOTTEN_BETWEEN    the same, after nodes began their wait anew, before `complete`:
 *                                 meanwhile the old list grants, and is changed over again
 */
#define ATTEMPTS 2
#define PROPOSAL_MAX 2
#ifndef LOSSES
#define LOSSES 1
#endif
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
#define EACH_DO(what) what(0); what(1); what(2); what(3)
#else
#define NODES 7
#define COUNT(set) \
  (HAS(set, 0) + HAS(set, 1) + HAS(set, 2) + HAS(set, 3) + HAS(set, 4) + HAS(set, 5) + HAS(set, 6))
#define EACH(what) what(0) what(1) what(2) what(3) what(4) what(5) what(6)
#define EACH_DO(what) what(0); what(1); what(2); what(3); what(4); what(5); what(6)
#endif
#define LIFT(what, to) if :: what < to -> what = to :: else fi
#define STAYS_IN(n) (HAS(OLD, n) && HAS(NEW, n))
#define JOINS(n) (HAS(NEW, n) && !HAS(OLD, n))

byte key[NODES];
byte counter[NODES];
/* Sets of nodes. */
byte intact = OLD;    /* vote, for the list that they carry */
byte carry_old = OLD; /* their record says that they are of the old list */
#define NEWCOMERS (NEW & ~OLD)
#ifdef NOT_TOLD
byte carry_new;
#else
byte carry_new = NEWCOMERS; /* that they are of the new one, or that it follows theirs */
#endif
byte complete;        /* and that the move is complete */

/* Of those that do not vote. */
byte lease_from_before[NODES]; /* attempts whose lease counts from before the wait */
byte round_from_before[NODES]; /* attempts whose current round began before it */
byte floor[NODES];
byte let_in_to[NODES];         /* the list that a client has found it may be let in to; 0: none */
byte recovered[NODES];         /* with which counter */
byte losses;

/* The move. */
byte changed; /* nodes that stay, and have been seen to have changed over */
byte begun;   /* nodes that join, and have begun their wait anew */

byte relied[ATTEMPTS + 1];   /* nodes that the lease stands on */
byte answered[ATTEMPTS + 1]; /* nodes that granted or extended, in the current round */
byte alive;                  /* attempts that have begun and are not over */
byte holder;                 /* 0: nobody */
byte highest;
byte tokens;
byte ever;    /* the highest counter that any node has had */
byte started; /* attempts are alike: let them begin in order */
byte done;    /* attempts of which nothing more is asserted */
#define BOTH 6

#ifdef STILL_GRANTS
#define REFUSED_AFTER(n) 0
#else
#define REFUSED_AFTER(n) HAS(carry_new, n)
#endif
#ifdef STILL_EXTENDS
#define EXTENDED_AFTER(n) 1
#else
#define EXTENDED_AFTER(n) !HAS(carry_new, n)
#endif
#define GRANTS(n) \
  (HAS(intact, n) && HAS(list, n) && (list == OLD -> !REFUSED_AFTER(n) : HAS(carry_new, n)))
#define EXTENDS(n) \
  (HAS(intact, n) && HAS(list, n) && (list == OLD -> EXTENDED_AFTER(n) : HAS(carry_new, n)))

#define ACQUIRE_UNHEARD(n) \
  :: d_step { GRANTS(n) && key[n] == 0 -> key[n] = me; LIFT(counter[n], p); LIFT(ever, p) }
#define ACQUIRE(n) \
  :: d_step { GRANTS(n) && key[n] == 0 && p > counter[n] -> \
       key[n] = me; counter[n] = p; LIFT(ever, p); ADD(answered[me], n) } \
  ACQUIRE_UNHEARD(n)
#define EXTEND(n) \
  :: d_step { EXTENDS(n) && key[n] == me && !HAS(answered[me], n) -> ADD(answered[me], n) }
#define RENEWED(n) \
  if :: HAS(round_from_before[n], me) :: else -> DROP(lease_from_before[n], me) fi
#define NEW_ROUND(n) DROP(round_from_before[n], me)
#define NOT_ALIVE(n) DROP(lease_from_before[n], me); DROP(round_from_before[n], me)

proctype attempt(byte me) provided (done != BOTH) {
  byte p;
  byte list;
  byte majority;
  byte bound;
  atomic {
    started == me - 1 -> started = me;
    if
    :: list = OLD; majority = OLD_MAJORITY
    :: list = NEW; majority = NEW_MAJORITY
    fi;
    bound = highest;
    ADD(alive, me);
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
       LIFT(highest, p);
       ADD(done, me);
       bound = 0
     };
     goto holds
  :: goto ends
  od;
holds:
  do
  /* A round is over, and the next begins. */
  :: d_step { COUNT(answered[me]) >= majority ->
       relied[me] = answered[me]; answered[me] = 0; EACH_DO(RENEWED); EACH_DO(NEW_ROUND) }
  :: d_step { COUNT(answered[me]) < majority -> answered[me] = 0; EACH_DO(NEW_ROUND) }
  EACH(EXTEND)
  :: break
  od;
ends:
  atomic {
    if :: holder == me -> holder = 0 :: else fi;
    answered[me] = 0; relied[me] = 0; bound = 0;
    EACH_DO(NOT_ALIVE);
    ADD(done, me);
    DROP(alive, me)
  };
end:
  do
  EACH(ACQUIRE_UNHEARD)
  od
}

#define NEEDED(n) HAS((relied[key[n]] | answered[key[n]]), n)
#define VANISH(n) :: d_step { key[n] && !NEEDED(n) -> key[n] = 0 }

/* Nodes that wait. */
#define BEGIN_WAIT(n) \
  lease_from_before[n] = alive; round_from_before[n] = alive; floor[n] = ever; \
  let_in_to[n] = 0; recovered[n] = 0
#ifdef NO_WAIT
#define WAITED(n) !HAS(intact, n)
#else
#define WAITED(n) (!HAS(intact, n) && (lease_from_before[n] | round_from_before[n]) == 0)
#endif
#define LOST(n) losses++; key[n] = 0; DROP(intact, n); BEGIN_WAIT(n)
#define FORGETS(n) \
  LOST(n); counter[n] = 0; DROP(carry_old, n); DROP(carry_new, n); DROP(complete, n)
#ifdef MAJORITY_NOT_MOVED
#define KNOWN(knows) 1
#else
#define KNOWN(knows) (COUNT((OLD & ~(knows))) < OLD_MAJORITY)
#endif
/* Nodes that stay are alike. */
#define MAY_LOSE(n) (losses < LOSSES && HAS((OLD | NEW), n) && (n == 0 || !STAYS_IN(n)))
#if defined(FORGOTTEN)
#define FREELY (begun == 0 || complete)
#elif defined(FORGOTTEN_BETWEEN)
#define FREELY (complete == 0)
#else
#define FREELY ((begun | complete) == 0)
#endif
#define MAY_FORGET(n) (MAY_LOSE(n) && (FREELY || KNOWN(carry_new & ~(1 << n))))
#define LOSE(n) \
  :: d_step { MAY_LOSE(n) && HAS(intact, n) -> LOST(n) } \
  :: d_step { MAY_FORGET(n) -> FORGETS(n) } \
  :: d_step { MAY_FORGET(n) && HAS(OLD, n) && HAS(carry_new, n) -> FORGETS(n); ADD(carry_old, n) }

#ifdef NO_COUNTERS
#define SOURCE(n) skip
#else
#define SOURCE(n) if :: HAS(sources, n) -> LIFT(found, counter[n]) :: else fi
#endif
#ifdef NO_FLOOR
#define FLOOR(n) 0
#else
#define FLOOR(n) floor[n]
#endif
#ifdef NOT_COMPLETE_COUNTS
#define MAY_BE_SOURCE(list) (list == OLD -> carry_old : carry_new)
#else
#define MAY_BE_SOURCE(list) (list == OLD -> carry_old : carry_new & complete)
#endif
#define OTHERS(list) (list == OLD -> carry_new : carry_old)
#ifdef HALF_DONE
#define OBJECTS(list) 0
#else
#define OBJECTS(list) \
  ((answers & (carry_old | carry_new) & ~(list == OLD -> carry_old : carry_new & complete)) && \
   (list == OLD || (answers & carry_new & complete) == 0))
#endif
#define ANSWER(list) COUNT((answers & ~OTHERS(list)))
#define MAY_CARRY(n, list) !HAS(OTHERS(list), n)
#define FORGET(n) \
  floor[n] = 0; let_in_to[n] = 0; recovered[n] = 0; \
  lease_from_before[n] = 0; round_from_before[n] = 0
#define ENTER(n) \
  LIFT(counter[n], recovered[n]); \
  if \
  :: let_in_to[n] == OLD -> ADD(carry_old, n); DROP(carry_new, n); DROP(complete, n) \
  :: else -> ADD(carry_new, n); DROP(carry_old, n); ADD(complete, n) \
  fi; \
  ADD(intact, n); FORGET(n)
#ifdef SLOW
#define LET_IN(n) \
  :: d_step { let_in_to[n] && WAITED(n) && MAY_CARRY(n, let_in_to[n]) -> ENTER(n) }
#define AT_ONCE(n) skip
#else
#define LET_IN(n)
#define AT_ONCE(n) if :: let_in_to[n] -> ENTER(n) :: else fi
#endif
#define MAY_LOOK(n, list) (WAITED(n) && let_in_to[n] == 0 && HAS(list, n) && !HAS(OTHERS(list), n))
/* The nodes that answer, or are read, are any: what is found is what these say. */
#define LOOK(n) \
  LOOK_OF(n, OLD) \
  LOOK_OF(n, NEW)
#define LOOK_OF(n, its_list) \
  :: atomic { MAY_LOOK(n, its_list) -> \
       list = its_list; \
       majority = (list == OLD -> OLD_MAJORITY : NEW_MAJORITY); \
       answers = 1 << n; \
       EACH_DO(PERHAPS); \
       d_step { \
         sources = answers & intact & MAY_BE_SOURCE(list); \
         if \
         :: COUNT(sources) >= majority -> EACH_DO(SOURCE); let_in_to[n] = list \
         :: COUNT(sources) < majority && ANSWER(list) >= majority && !OBJECTS(list) -> \
            found = FLOOR(n); let_in_to[n] = list \
         :: else \
         fi; \
         recovered[n] = found; AT_ONCE(n); \
         answers = 0; sources = 0; found = 0; list = 0; majority = 0 \
       } }
#define PERHAPS(n) if :: HAS(list, n) -> ADD(answers, n) :: skip fi
/* The move. */
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
  :: d_step { STAYS_IN(n) && !HAS(carry_new, n) -> \
       DROP(carry_old, n); ADD(carry_new, n); ADD(changed, n); CLEAR_KEY(n); CLEAR_COUNTER(n) } \
  :: d_step { HAS(OLD, n) && !HAS(NEW, n) && !HAS(carry_new, n) -> \
       DROP(carry_old, n); ADD(carry_new, n); DROP(intact, n) }
#ifdef MAJORITY_NOT_MOVED
#define HAVE_CHANGED (COUNT(changed) >= 1)
#else
#define HAVE_CHANGED (COUNT(changed) >= NEW_MAJORITY)
#endif
#ifdef WAIT_FROM_FIRST_SEEN
#define WAIT_ANEW(n) skip
#else
#define WAIT_ANEW(n) BEGIN_WAIT(n)
#endif
#define BEGIN_ANEW(n) \
  :: d_step { HAVE_CHANGED && JOINS(n) && !HAS(begun, n) && !HAS(intact, n) && \
              KNOWN(carry_new) -> \
       ADD(begun, n); ADD(carry_new, n); WAIT_ANEW(n) }
#define COMPLETE(n) \
  :: d_step { HAVE_CHANGED && begun == NEWCOMERS && HAS(NEW, n) && HAS(carry_new, n) && \
              !HAS(complete, n) && KNOWN(carry_new) -> ADD(complete, n) }

proctype world() provided (done != BOTH) {
  byte list;
  byte majority;
  byte answers;
  byte sources;
  byte found;
end:
  do
  EACH(VANISH)
  EACH(MOVE)
  EACH(BEGIN_ANEW)
  EACH(COMPLETE)
  EACH(LOSE)
  EACH(LOOK)
  EACH(LET_IN)
  od
}

init {
  atomic { run attempt(1); run attempt(2); run world() }
}
