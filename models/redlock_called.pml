/* Fenced Redlock: votes that a node gives by itself, and who may rely on them.
 *
 * Modelled   An attempt, as quorum_machine.cpp and queue_place.hpp make it, and the scripts of its
 *            nodes. It asks. Answered busy, it stands in line, and remembers when that ask was sent
 *            and the node's counter. Whoever gives back votes for it: the key is its own, for the
 *            claim TTL, the counter goes up by one, and it is called with that. It believes a call
 *            above the counter that it remembers, for the claim TTL from when that ask was sent;
 *            before the first answer from the first ask, or from the release that put it in line.
 *            It asks again with the same id, once the latest ask to that node is answered or
 *            written off. A node that has its key extends it and answers with the token in it,
 *            which counts if it is the counter still. The same token on a majority: granted, for as
 *            long as the first of them is valid. Tokens that differ are raised. What is over is
 *            given back, and the id not used again. It is over after a TTL at the latest: its
 *            successor has another id.
 *            All other attempts are one: it takes keys that are free, raises, and gives back, or
 *            lets them expire, when it likes. Any attempt may be the one that is looked at.
 *            Of three nodes, 0 and 1 are to be its majority. Node 2 says what the others like, so
 *            that whatever they raise 0 or 1 to may have been granted. With ONE, only one node of
 *            the majority is looked at, for longer and with more tokens: the assertions are about
 *            each of them by itself, and only a token must be the same on both.
 * Time       goes in ticks, at one rate for all: see redlock_drift.pml.
 * Adversary  Any message takes any time, or is lost: a call may be heard after later ones, and
 *            before the answer that put the attempt in line. Asks, and what puts it in line, arrive
 *            late and more than once. Counters go up for other locks, too. With CLOCKLESS, any key
 *            vanishes at any time, and the attempt relies on what it has heard for ever. With
 *            RESTARTS, nodes start anew without keys, again and again, and vote again after a TTL.
 *            Their counters then begin at the highest token that was granted: the least that they
 *            get from the others. (They also begin at their clocks, which is not relied on here.)
 * Asserted   whoever is granted has its key on its majority, with its token (a renewal counts no
 *            other), and the keys outlast the reliance (so no two rely on the lock at once); its
 *            token is above all that were granted before, and below all that are granted later.
 *            With CLOCKLESS: it is above those granted before it began, below those granted later,
 *            and nobody else's.
 * Limits     1 GB.
 *
 * Mutants    STALE_CALL            a call is believed whatever the counter was
 *            FROM_ARRIVAL          it is valid from its arrival
 *            FROM_LATEST_ASK       it is valid from the latest ask, answered or not
 *            CLAIM_IS_NOT_TTL      it is believed for a whole TTL
 *            NOT_EXTENDED          a node that has its key answers stale, and does not extend it
 *            COUNTER_NOT_MOVED     a vote tells the counter plus one, and leaves it
 *            SAME_TOKEN_UNCHECKED  tokens that differ are granted, too: the highest of them
 *            CALL_KEPT             an answer keeps the token of a call, whatever it says
 *            BY_COUNTER            it does if the counter is the same: the key that it was called
 *                                  to may have run out, and this be another
 *            USED_AGAIN            the id is used again after it was given back
 *            ANY_ANSWER            a node is asked again while it owes an answer, which then counts
 *                                  as one to the latest ask
 *            RESTARTS STANDS_ON    an attempt stands for longer than it takes a node to forget
 *                                  and vote again: a call from before may be above its counter
 *            With ONE or CLOCKLESS, those of them that break something there.
 */
#ifdef ONE
#define NODES 1
#define ALL(what) what(0)
#define TOKENS 6
#define ALL_TO(what) what(0, 1) what(0, 2) what(0, 3) what(0, 4) what(0, 5) what(0, 6)
#define TTL 4
#define CLAIM 2
#else
#define NODES 2
#define ALL(what) what(0) what(1)
#define TOKENS 2
#define ALL_TO(what) what(0, 1) what(0, 2) what(1, 1) what(1, 2)
#define TTL 2
#define CLAIM 1
#endif
#define ME 1
#define OTHER 2

#define HAS(set, n) ((set >> (n)) & 1)
#define ADD(set, n) set = set | (1 << (n))
#define DROP(set, n) set = set & ~(1 << (n))
#define MIN(a, b) (a < b -> a : b)
#define AGE(what, most) if :: what < most -> what++ :: else fi

/* Nodes. */
byte key[NODES];
byte expiry[NODES]; /* ticks until our key does */
byte has[NODES];    /* the token in our key; 0: the counter went up for nobody when it was set */
byte counter[NODES];
byte calls[NODES];  /* tokens that it calls us with: messages in the network */

/* The attempt. */
mtype = { fresh, kept, stale, busy, none, new, tries, relies, over };
mtype phase = new;
byte asked;                  /* nodes that were, or that it was put in line on */
byte owing;                  /* nodes that owe an answer */
mtype replied[NODES] = none; /* the answer, on its way */
byte told[NODES];            /* the counter in it */
byte since[NODES];           /* ticks since that ask was sent */
byte known[NODES];           /* the counter in the latest "busy" */
byte base[NODES];            /* ticks since the ask was sent that it answers, or the first one */
byte holds;                  /* nodes that have its key, as far as it knows */
byte token[NODES];           /* what the counter went up to for it; 0: it does not know */
byte valid[NODES];           /* ticks for which it may rely on that key */
byte reliance;               /* ticks for which it relies on the lock */

/* For the assertions only. */
byte mine;   /* its token, once granted */
byte others; /* their highest */
#ifdef CLOCKLESS
byte before; /* their highest when it began */
byte used;   /* their tokens */
#endif

#define IS_KEPT(n) (key[n] == ME && expiry[n] >= reliance && has[n] == mine)
#define LOSE_KEY(n) key[n] = 0; expiry[n] = 0; has[n] = 0
#define ALL_HOLD (holds == (1 << NODES) - 1)
#ifdef ONE
#define IS_SAME (token[0] != 0)
#define GRANTED token[0]
#define DIFFER 1
#define VALIDITY valid[0]
#define KEYS_OUTLAST OUTLASTS(0)
#else
#ifdef SAME_TOKEN_UNCHECKED
#define IS_SAME (token[0] && token[1])
#else
#define IS_SAME (token[0] && token[0] == token[1])
#endif
#define GRANTED (token[0] < token[1] -> token[1] : token[0])
#define DIFFER (token[0] != token[1])
#define VALIDITY MIN(valid[0], valid[1])
#define KEYS_OUTLAST (OUTLASTS(0) && OUTLASTS(1))
#endif
#ifdef RESTARTS
byte away[NODES]; /* ticks until it may vote */
#define VOTES(n) (away[n] == 0)
#define OUTLASTS(n) (IS_KEPT(n) || away[n] >= reliance)
byte age; /* of the attempt, in ticks */
#ifdef STANDS_ON
#define YOUNG 1
#define GROW_OLD skip
#else
#define YOUNG (age < TTL)
#define GROW_OLD \
  if \
  :: phase == tries -> age++; if :: age == TTL -> phase = AFTER_THAT; END :: else fi \
  :: else \
  fi
#endif
#define FORGET_AGE age = 0
#define COUNTER_AGAIN(n) counter[n] = (mine > others -> mine : others)
#define RESTART(n) \
  :: d_step { VOTES(n) -> LOSE_KEY(n); away[n] = TTL }
#define REJOIN(n) \
  if \
  :: away[n] > 0 -> away[n]--; if :: away[n] == 0 -> COUNTER_AGAIN(n) :: else fi \
  :: else \
  fi;
#else
#define YOUNG 1
#define GROW_OLD skip
#define FORGET_AGE skip
#define VOTES(n) 1
#define OUTLASTS(n) IS_KEPT(n)
#define RESTART(n)
#define REJOIN(n)
#endif

#ifdef CLOCKLESS
#define SOUND skip
#define IN_ORDER assert(GRANTED > before && !HAS(used, GRANTED))
#define NOTE_OTHER(to) ADD(used, to)
#else
#define SOUND assert(reliance == 0 || KEYS_OUTLAST)
#define IN_ORDER assert(GRANTED > others)
#define NOTE_OTHER(to) skip
#endif

#ifdef CALL_KEPT
#define KNOWN_TOKEN(n) token[n]
#elif defined(BY_COUNTER)
#define KNOWN_TOKEN(n) (told[n] == token[n] -> token[n] : 0)
#else
#define KNOWN_TOKEN(n) 0
#define FORGET_TOKEN(n) token[n] = 0
#endif
#ifndef FORGET_TOKEN
#define FORGET_TOKEN(n) skip
#endif

/* What others do on a node. */
#define TAKE(n) :: d_step { VOTES(n) && key[n] == 0 -> key[n] = OTHER }
#define GRANT_OTHER(n, to) \
  :: d_step { key[n] == OTHER && counter[n] < to -> \
       counter[n] = to; NOTE_OTHER(to); \
       assert(to > mine); \
       if :: to > others -> others = to :: else fi }
#define LET_GO(n) :: d_step { key[n] == OTHER -> key[n] = 0 }
#define OTHER_LOCK(n) :: d_step { key[n] == ME && counter[n] < TOKENS -> counter[n]++ }
#ifdef COUNTER_NOT_MOVED
#define CALL(n) has[n] = counter[n] + 1; ADD(calls[n], has[n])
#else
#define CALL(n) counter[n]++; has[n] = counter[n]; ADD(calls[n], has[n])
#endif
#define VOTE(n) \
  :: d_step { key[n] == OTHER && HAS(asked, n) && counter[n] < TOKENS -> \
       key[n] = ME; expiry[n] = CLAIM; CALL(n) }

/* An ask arrives: its answer is on its way, or nobody hears of it. That it is in line is not noted:
 * what puts it there may arrive again. */
#ifdef NOT_EXTENDED
#define EXTEND(n) skip
#else
#define EXTEND(n) expiry[n] = TTL
#endif
#define SET(n) key[n] = ME; expiry[n] = TTL; has[n] = 0
#define ANSWER(n, what) replied[n] = what; told[n] = counter[n]
#define ARRIVES(n) (VOTES(n) && HAS(owing, n) && replied[n] == none)
#define ARRIVE(n) \
  :: d_step { ARRIVES(n) && key[n] == OTHER -> ANSWER(n, busy) } \
  :: d_step { ARRIVES(n) && key[n] == ME -> \
       EXTEND(n); \
       if :: has[n] == counter[n] -> ANSWER(n, kept) :: else -> ANSWER(n, stale) fi } \
  :: d_step { ARRIVES(n) && key[n] == 0 -> SET(n); ANSWER(n, stale) } \
  :: d_step { HAS(asked, n) && key[n] == ME -> EXTEND(n) } \
  :: d_step { VOTES(n) && HAS(asked, n) && key[n] == 0 -> SET(n) }
#define ARRIVE_FRESH(n, to) \
  :: d_step { ARRIVES(n) && key[n] == 0 && counter[n] < to -> \
       SET(n); has[n] = to; counter[n] = to; ANSWER(n, fresh) }

#ifdef FROM_LATEST_ASK
#define COUNT_FROM_FIRST(n) base[n] = 0
#else
#define COUNT_FROM_FIRST(n) if :: !HAS(asked, n) -> base[n] = 0 :: else fi
#endif
#ifdef ANY_ANSWER
#define MAY_ASK(n) 1
/* "Fresh" means that the counter went up to what was proposed, and more is proposed now. */
#define PROPOSE(n) if :: replied[n] == fresh && told[n] < TOKENS -> told[n]++ :: else fi
#else
#define MAY_ASK(n) !HAS(owing, n)
#define PROPOSE(n) skip
#endif
#define ASK(n) \
  :: d_step { phase == tries && !HAS(holds, n) && MAY_ASK(n) -> \
       COUNT_FROM_FIRST(n); PROPOSE(n); ADD(asked, n); ADD(owing, n); since[n] = 0 } \
  /* It is put in line by the release of the one before. */ \
  :: d_step { phase == tries && !HAS(asked, n) -> ADD(asked, n); base[n] = 0 } \
  /* No answer in time. */ \
  :: d_step { HAS(owing, n) -> OWES_NO_MORE(n) }
#define OWES_NO_MORE(n) DROP(owing, n); replied[n] = none; told[n] = 0; since[n] = 0

#define HOLD(n, with, ticks) \
  token[n] = with; \
  if :: (ticks) > 0 -> ADD(holds, n); valid[n] = ticks :: else -> HOLD_NO_MORE(n) fi
#define HOLD_NO_MORE(n) DROP(holds, n); valid[n] = 0; FORGET_TOKEN(n)
#define HEAR_ANSWER(n) \
  :: d_step { HAS(owing, n) && replied[n] != none -> \
       if \
       :: replied[n] == busy -> \
          base[n] = MIN(since[n], CLAIMED); known[n] = told[n]; FORGET_STALE_CALLS(n) \
       :: else \
       fi; \
       if \
       /* It was called or raised since, which was heard of first. */ \
       :: HAS(holds, n) && token[n] > told[n] \
       :: else -> \
          if \
          :: replied[n] == fresh || replied[n] == kept -> HOLD(n, told[n], TTL - since[n]) \
          :: replied[n] == stale -> HOLD(n, KNOWN_TOKEN(n), TTL - since[n]) \
          :: else -> HOLD_NO_MORE(n) \
          fi \
       fi; \
       OWES_NO_MORE(n) }

#ifdef STALE_CALL
#define IS_NEW(n, t) 1
#else
#define IS_NEW(n, t) (t > known[n])
#endif
#if defined(STALE_CALL) || defined(RESTARTS)
#define FORGET_STALE_CALLS(n) skip
#else
#define FORGET_STALE_CALLS(n) calls[n] = (calls[n] >> (known[n] + 1)) << (known[n] + 1)
#endif
#ifdef FROM_ARRIVAL
#define PASSED(n) 0
#else
#define PASSED(n) base[n]
#endif
#ifdef CLAIM_IS_NOT_TTL
#define CLAIMED TTL
#else
#define CLAIMED CLAIM
#endif
#define HEAR_CALL(n, t) \
  :: d_step { phase == tries && HAS(asked, n) && HAS(calls[n], t) -> \
       DROP(calls[n], t); \
       if \
       :: IS_NEW(n, t) && (!HAS(holds, n) || (token[n] && t > token[n])) -> \
          HOLD(n, t, CLAIMED - PASSED(n)) \
       :: else \
       fi }
/* Answers come in order: what a node answered before it was raised is heard before that. */
#define RAISE(n, to) \
  :: d_step { phase == tries && ALL_HOLD && DIFFER && replied[n] == none && \
       key[n] == ME && counter[n] < to -> \
       counter[n] = to; has[n] = to; token[n] = to }

#ifdef USED_AGAIN
#define AFTER_THAT new
#define FORGET_CALLS(n) skip
#else
#define AFTER_THAT over
#define FORGET_CALLS(n) calls[n] = 0
#endif
#define FORGET(n) \
  OWES_NO_MORE(n); HOLD_NO_MORE(n); token[n] = 0; known[n] = 0; base[n] = 0; FORGET_CALLS(n);
#define END ALL(FORGET) FORGET_AGE; asked = 0
#define GIVE_BACK(n) \
  :: d_step { phase == AFTER_THAT && key[n] == ME -> LOSE_KEY(n) }

#ifdef CLOCKLESS
#define LOSE(n) \
  :: d_step { key[n] == ME -> LOSE_KEY(n) } \
  :: d_step { HAS(holds, n) -> HOLD_NO_MORE(n) }
#define CLOCK ALL(LOSE)
#define BEGIN before = others
#else
#define PASS(n) \
  REJOIN(n) \
  if :: expiry[n] > 0 -> expiry[n]--; if :: expiry[n] == 0 -> LOSE_KEY(n) :: else fi :: else fi; \
  if :: HAS(owing, n) -> AGE(since[n], TTL) :: else fi; \
  if :: HAS(asked, n) -> AGE(base[n], CLAIMED) :: else fi; \
  if \
  :: valid[n] > 0 -> valid[n]--; if :: valid[n] == 0 -> HOLD_NO_MORE(n) :: else fi \
  :: else \
  fi;
#define CLOCK \
  :: d_step { ALL(PASS) GROW_OLD; if :: reliance > 0 -> reliance-- :: else fi; SOUND }
#define BEGIN skip
#endif

init {
end:
  do
  ALL(TAKE)
  ALL_TO(GRANT_OTHER)
  ALL(LET_GO)
  ALL(OTHER_LOCK)
  ALL(VOTE)
  ALL(RESTART)
  :: d_step { phase == new -> BEGIN; phase = tries }
  ALL(ASK)
  ALL(ARRIVE)
  ALL_TO(ARRIVE_FRESH)
  ALL(HEAR_ANSWER)
  ALL_TO(HEAR_CALL)
  ALL_TO(RAISE)
  :: d_step { phase == tries && ALL_HOLD && IS_SAME && YOUNG ->
       IN_ORDER;
       mine = GRANTED; reliance = VALIDITY; phase = relies;
       SOUND;
       END }
  :: d_step { phase == tries || phase == relies -> phase = AFTER_THAT; reliance = 0; END }
  ALL(GIVE_BACK)
  CLOCK
  od
}
