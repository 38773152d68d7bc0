/* The queue and direct hand-off of one Redis node: nobody who keeps asking is forgotten.
 *
 * Modelled   the scripts (queue_scripts.pmi); attempt 1, a waiter that asks again at least every
 *            ASK_WITHIN ticks and gives the lock back at once when it has it; attempts 2 and 3,
 *            each a row of attempts of another process. Liveness is asserted as a bound on how
 *            long attempt 1 waits, in ticks; a script runs without delay.
 * Adversary  loses or delays any grant that is sent. Attempts 2 and 3 join, hold (without
 *            renewing), cancel, pause and die at any moment, or forget to release; each attempt
 *            leaves one ask behind in the network that may arrive when it is over: a ghost.
 *            Attempt 1's inbox may be closed once while it waits, so that it is passed over.
 *            With PROMPT, attempts 2 and 3 are well: they ask in time, take up grants, release
 *            after one tick, and give back at once a grant that nobody knows; only asks are late.
 * Asserted   attempt 1 waits for at most BOUND ticks. Without PROMPT that is, for each of four
 *            tenures (who holds and who is in front, and the same again once it was passed over):
 *            nearly a claim TTL until the grant is taken up, nearly a TTL until a ghost extends
 *            it, and that TTL. With PROMPT: a ghost's TTL, an ask, and a tick for the one in
 *            front.
 * Limits     1 GB.
 *
 * Mutants    FREE_BUT_QUEUED     an ask that finds the lock free and others queued only queues
 *            POPPED_STAYS_KNOWN  whoever is taken off the queue stays in the hash of waiters, so
 *                                that its next ask does not join again
 *            CLAIM_IS_TTL        a grant that is sent carries the whole TTL
 *            PROMPT STRAY_KEPT   a grant that nobody knows is left to expire
 *            PROMPT CANCEL_KEEPS a waiter that cancels leaves the queue, but keeps what it was
 *                                granted meanwhile
 *            PROMPT FREE_BUT_QUEUED  as above
 */
#define ATTEMPTS 3
#define TOKENS 1
#ifdef PROMPT
#define TTL 3 /* as short as a claim, so that it does not hide what a claim costs */
#else
#define TTL 4
#endif
#define CLAIM 3
#define ASK_WITHIN 1
#ifndef BOUND
#ifdef PROMPT
#define BOUND (TTL + ASK_WITHIN + 1)
#else
#define BOUND (4 * (CLAIM - 1 + TTL - 1 + TTL))
#endif
#endif
#include "queue_scripts.pmi"

/* Attempt 1. */
bool waits;
byte waited; /* ticks */
byte silent; /* ticks since it asked */
bool was_deaf;

/* Attempts 2 and 3. */
mtype = { idle, waiting, holding };
mtype phase[ATTEMPTS + 1] = idle;
byte held[ATTEMPTS + 1]; /* ticks */
byte late;               /* those with an ask left in the network */

#define SERVED waits = false; waited = 0; silent = 0; was_deaf = false; inbox[1] = 0; DROP(deaf, 1)
#define AFTER_ASKING \
  if :: answer == GRANTED -> SERVED; release(1) :: else fi; answer = 0

proctype patient() {
end:
  do
  :: d_step { !waits -> waits = true; acquire(1); AFTER_ASKING }
  :: d_step { waits && silent > 0 -> silent = 0; DROP(deaf, 1); acquire(1); AFTER_ASKING }
  :: d_step { waits && inbox[1] != 0 && key == 1 -> SERVED; release(1) }
  :: d_step { inbox[1] != 0 -> inbox[1] = 0 }
#ifndef PROMPT
  :: d_step { waits && !was_deaf -> was_deaf = true; ADD(deaf, 1) }
#endif
  od
}

#define GOES_ON(i) phase[i] = (answer == GRANTED -> holding : waiting); held[i] = 0; answer = 0
#define END(i) phase[i] = idle; held[i] = 0

proctype other(byte me) {
end:
  do
  :: d_step { phase[me] == idle && key != me && !HAS(waiters, me) && !HAS(deaf, me) ->
       ADD(late, me); acquire(me); GOES_ON(me) }
  :: d_step { phase[me] == waiting && (heard[me] > 0 || key == me) -> acquire(me); GOES_ON(me) }
  :: d_step { phase[me] == waiting && inbox[me] != 0 && key == me ->
       inbox[me] = 0; phase[me] = holding; held[me] = 0 }
  :: d_step { phase[me] == holding -> END(me); release(me) }
  /* Cancels. */
  :: d_step { phase[me] == waiting ->
       END(me); inbox[me] = 0;
#ifdef CANCEL_KEEPS
       if :: key != me -> release(me) :: else fi
#else
       release(me)
#endif
     }
  /* A ghost arrives, and is told. */
  :: d_step { phase[me] == idle && HAS(late, me) -> DROP(late, me); acquire(me); answer = 0 }
#ifndef STRAY_KEPT
  :: d_step { phase[me] == idle && inbox[me] != 0 -> inbox[me] = 0; release(me) }
#endif
#ifndef PROMPT
  :: d_step { inbox[me] != 0 -> inbox[me] = 0 }
  :: d_step { phase[me] == holding -> END(me) }
  /* Dies, and comes back as another. */
  :: d_step { !HAS(deaf, me) -> END(me); ADD(deaf, me); inbox[me] = 0 }
  :: d_step { HAS(deaf, me) -> DROP(deaf, me) }
#endif
  od
}

#ifdef STRAY_KEPT
#define STRAY(i) 0
#else
#define STRAY(i) (phase[i] == idle && inbox[i] != 0)
#endif
#ifdef PROMPT
#define MUST_ACT(i) \
  (STRAY(i) || (phase[i] == holding && held[i] > 0) || \
   (phase[i] == waiting && (inbox[i] != 0 || (HAS(waiters, i) && heard[i] >= ASK_WITHIN))))
#else
#define MUST_ACT(i) 0
#endif
#define PASS(i) \
  if :: HAS(waiters, i) -> AGE(heard[i]) :: else -> heard[i] = 0 fi; \
  if :: phase[i] == holding && held[i] < TTL -> held[i]++ :: else fi; \
  if :: phase[i] == holding && key != i -> END(i) :: else fi

proctype clock() {
end:
  do
  :: d_step { !(waits && silent >= ASK_WITHIN) && !MUST_ACT(2) && !MUST_ACT(3) ->
       node_tick();
       if :: HAS(waiters, 1) -> AGE(heard[1]) :: else -> heard[1] = 0 fi;
       PASS(2); PASS(3);
       if :: waits -> waited++; silent++ :: else fi;
       assert(waited <= BOUND) }
  od
}

init {
  atomic { run patient(); run other(2); run other(3); run clock() }
}
