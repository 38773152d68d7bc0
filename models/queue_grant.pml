/* The queue and direct hand-off of one Redis node: who may rely on a grant, and until when.
 *
 * Modelled   the scripts (queue_scripts.pmi), and attempts as redis_lock.cpp makes them: ask;
 *            answered "granted", rely on TTL from when that request was sent; answered "queued",
 *            remember when it was sent and the counter; sent a grant, ignore it unless its token
 *            is above that counter, and rely on the claim TTL from when that request was sent. A
 *            grant that is over on arrival is given back. Time goes in ticks, at one rate for all:
 *            see redlock_drift.pml. With RENEW, whoever relies on a lock, by a claim or by a whole
 *            TTL, also renews it, for a TTL or for less: compare and extend, never shorten.
 *            Answered "extended", it relies on what it asked for, from when that request was sent.
 *            (The answer may even come when the reliance is over, which the code does not use.)
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
 *            RENEW EXTENDS_ANY   a renewal does not look whose key it extends
 *            RENEW SHORTENS      a renewal that asks for less than what is left shortens it
 *            RENEW FROM_REPLY    what was renewed counts from the reply
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

#ifdef RENEW
byte renewing[ATTEMPTS + 1]; /* ticks that a renewal under way asks for; 0: none */
byte has_renewed;            /* attempts that may have one left in the network */
#ifdef EXTENDS_ANY
#define MAY_EXTEND(i) (key != 0)
#else
#define MAY_EXTEND(i) (key == i)
#endif
#ifdef SHORTENS
#define EXTEND(ticks) left = ticks
#else
#define EXTEND(ticks) if :: left < ticks -> left = ticks :: else fi
#endif
#ifdef FROM_REPLY
#define RENEWED_AGO 0
#else
#define RENEWED_AGO since[me]
#endif
#define RENEWALS \
  :: d_step { phase[me] == holds && renewing[me] == 0 -> \
       renewing[me] = TTL; ADD(has_renewed, me) } \
  :: d_step { phase[me] == holds && renewing[me] == 0 -> \
       renewing[me] = CLAIM; ADD(has_renewed, me) } \
  :: d_step { phase[me] == holds && renewing[me] != 0 && replied[me] == 0 -> \
       if \
       :: MAY_EXTEND(me) -> EXTEND(renewing[me]); replied[me] = GRANTED \
       :: else -> replied[me] = QUEUED \
       fi } \
  :: d_step { phase[me] == holds && replied[me] == GRANTED -> \
       if \
       :: renewing[me] > RENEWED_AGO + reliance[me] -> \
          reliance[me] = renewing[me] - RENEWED_AGO \
       :: else \
       fi; \
       NOT_RENEWING(me); if :: reliance[me] == 0 -> phase[me] = done; inbox[me] = 0 :: else fi; \
       ALL(SOUND) } \
  /* Refused, or no reply in time. */ \
  :: d_step { phase[me] == holds && renewing[me] != 0 -> \
       NOT_RENEWING(me); if :: reliance[me] == 0 -> phase[me] = done; inbox[me] = 0 :: else fi } \
  /* One that was sent before arrives only now, or again. */ \
  :: d_step { HAS(has_renewed, me) && MAY_EXTEND(me) -> EXTEND(TTL) } \
  :: d_step { HAS(has_renewed, me) && MAY_EXTEND(me) -> EXTEND(CLAIM) }
#define NOT_RENEWING(i) renewing[i] = 0; replied[i] = 0; since[i] = 0
#define IS_RENEWING(i) (renewing[i] != 0)
#else
#define RENEWALS
#define NOT_RENEWING(i) skip
#define IS_RENEWING(i) 0
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
  RENEWALS
  TAKE(1) TAKE(2) TAKE(3) TAKE(4) TAKE(5) TAKE(6)
  :: d_step { phase[me] == waits || phase[me] == holds ->
       phase[me] = done; reliance[me] = 0; base[me] = 0; known[me] = 0; inbox[me] = 0;
       NOT_RENEWING(me) }
  :: d_step { phase[me] == done && (key == me || HAS(waiters, me)) && ROOM ->
       release(me); inbox[me] = 0 }
  od
}

#define PASS(i) \
  if :: phase[i] == asks || IS_RENEWING(i) -> AGE(since[i]) :: else fi; \
  if :: phase[i] == asks || phase[i] == waits -> AGE(base[i]) :: else fi; \
  if :: HAS(waiters, i) -> AGE(heard[i]) :: else -> heard[i] = 0 fi; \
  if :: reliance[i] > 0 -> reliance[i]-- :: else fi; \
  if \
  :: phase[i] == holds && reliance[i] == 0 && !IS_RENEWING(i) -> phase[i] = done; inbox[i] = 0 \
  :: else \
  fi

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
