/* The queue and direct hand-off of one Redis node: who may rely on a grant, and until when.
 *
 * Modelled   the scripts (queue_scripts.pmi), and attempts as redis_lock.cpp makes them: ask;
 *            answered "granted", rely on TTL from when that request was sent; answered "queued",
 *            remember when it was sent and the counter; sent a grant, ignore it unless its token
 *            is above that counter, and rely on the claim TTL from when that request was sent. A
 *            grant that is over on arrival is given back. Time goes in ticks, at one rate for all:
 *            see redlock_drift.pml. Renewal, which is a compare and extend, is left out.
 * Adversary  any message takes any time, or is lost; an ask or a release that was sent once
 *            arrives as often as it likes, also when its attempt is over; clients pause for as
 *            long as they like; waiters give up at any moment. At most TOKENS grants in all.
 * Asserted   whoever relies on the lock has the key, and the key outlasts the reliance (so no two
 *            rely on it at once).
 * Limits     2 GB.
 *
 * Mutants    STALE_GRANT         the token is not compared with the counter
 *            FROM_ARRIVAL        a grant that was sent counts from its arrival
 *            FROM_LATEST_ASK     it counts from the latest ask, answered or not
 *            NOT_EXTENDED        a repeated ask that finds its key does not extend it
 *            RELEASE_UNCHECKED   release does not look whose key it is
 *            CLAIM_IS_NOT_TTL    the receiver relies on the whole TTL
 */
#ifndef ATTEMPTS
#define ATTEMPTS 2
#endif
#ifndef TOKENS
#define TOKENS 4
#endif
#define TTL 3
#define CLAIM 2
#include "queue_scripts.pmi"

mtype = { fresh, asks, waits, holds, done };
mtype phase[ATTEMPTS + 1] = fresh;
byte replied[ATTEMPTS + 1];  /* the answer to the current ask, on its way */
byte told[ATTEMPTS + 1];     /* the counter in it */
byte known[ATTEMPTS + 1];    /* the counter in the latest "queued" that arrived */
byte since[ATTEMPTS + 1];    /* ticks since the current ask was sent */
byte base[ATTEMPTS + 1];     /* ticks since the ask was sent that was answered "queued" last */
byte reliance[ATTEMPTS + 1]; /* ticks for which it relies on the lock */

#define SOUND(i) assert(reliance[i] == 0 || (key == i && left >= reliance[i]))
#if ATTEMPTS == 2
#define ALL(what) what(1); what(2)
#else
#define ALL(what) what(1); what(2); what(3)
#endif

#ifdef STALE_GRANT
#define IS_NEW(token) 1
#else
#define IS_NEW(token) (token > known[me])
#endif
#ifdef CLAIM_IS_NOT_TTL
#define RELIED TTL
#else
#define RELIED CLAIM
#endif
#ifdef FROM_ARRIVAL
#define PASSED 0
#else
#define PASSED base[me]
#endif

inline rely(ticks, passed) {
  if
  :: ticks > passed -> reliance[me] = ticks - passed; phase[me] = holds; ALL(SOUND)
  :: else -> phase[me] = done
  fi;
  replied[me] = 0; told[me] = 0; known[me] = 0; since[me] = 0; base[me] = 0
}

#define ROOM (counter + ATTEMPTS <= TOKENS)
#define TAKE(token) \
  :: d_step { phase[me] == waits && HAS(inbox[me], token) -> \
       DROP(inbox[me], token); \
       if :: IS_NEW(token) -> rely(RELIED, PASSED) :: else fi }

proctype attempt(byte me) {
end:
  do
  :: d_step { phase[me] == fresh || phase[me] == waits ->
       if :: phase[me] == fresh -> base[me] = LONG_AGO :: else fi;
       phase[me] = asks; since[me] = 0;
#ifdef FROM_LATEST_ASK
       base[me] = 0
#endif
     }
  :: d_step { phase[me] == asks && replied[me] == 0 && ROOM ->
       acquire(me); replied[me] = answer; told[me] = counter; answer = 0 }
  /* One that was sent before arrives only now, or again. */
  :: d_step { phase[me] != fresh && ROOM -> acquire(me); answer = 0 }
  :: d_step { phase[me] == asks && replied[me] == GRANTED -> rely(TTL, since[me]) }
  :: d_step { phase[me] == asks && replied[me] == QUEUED ->
       phase[me] = waits; base[me] = since[me]; known[me] = told[me];
       replied[me] = 0; told[me] = 0; since[me] = 0 }
  /* No reply in time. */
  :: d_step { phase[me] == asks -> phase[me] = waits; replied[me] = 0; told[me] = 0; since[me] = 0 }
  TAKE(1) TAKE(2) TAKE(3) TAKE(4) TAKE(5) TAKE(6)
  :: d_step { phase[me] == waits || phase[me] == holds ->
       phase[me] = done; reliance[me] = 0; base[me] = 0; known[me] = 0; inbox[me] = 0 }
  :: d_step { phase[me] == done && (key == me || HAS(waiters, me)) && ROOM ->
       release(me); inbox[me] = 0 }
  od
}

#define PASS(i) \
  if :: phase[i] == asks -> AGE(since[i]) :: else fi; \
  if :: phase[i] == asks || phase[i] == waits -> AGE(base[i]) :: else fi; \
  if :: HAS(waiters, i) -> AGE(heard[i]) :: else -> heard[i] = 0 fi; \
  if :: reliance[i] > 0 -> reliance[i]-- :: else fi; \
  if :: phase[i] == holds && reliance[i] == 0 -> phase[i] = done; inbox[i] = 0 :: else fi

proctype clock() {
end:
  do
  :: d_step { node_tick(); ALL(PASS); ALL(SOUND) }
  od
}

init {
  byte i = 1;
  atomic {
    do :: i <= ATTEMPTS -> run attempt(i); i++ :: else -> break od;
    i = 0;
    run clock()
  }
}
