/* Fenced Redlock: whose clocks end the wait of a node that may have forgotten.
 *
 * Modelled   one node that is lost, and two clients (of any number that live as short as they like:
 *            they carry numbers only). A client that finds the node waits begins the wait, if there
 *            is none since the loss: the node keeps a new wait id, its own clock, and the client's
 *            wall clock. If there is one, whichever of the two starts is above the clock as it is
 *            now moves down to it. The wait is over when both clocks are MAX_TTL past their starts.
 *            Then the client reads the counters of others, and lets the node in, in one script,
 *            which checks both again, and that the node is in the wait that the client saw.
 * Time       ticks of true time. Clocks advance with it, and are as far off as they like.
 * Adversary  loses the node LOSSES times; lets clients come by when it likes; delays a client
 *            between its steps. The node's clock is wrong from its start on and is set STEPS times,
 *            forward or back; and the second client's is as far ahead or behind as it likes.
 * Asserted   a wait is cut short by no more than the smaller of two numbers: how far the node's
 *            clock was set forward during it, and how far the clocks of two clients that came by
 *            are apart. So it takes both to cut it short: a client's clock that is ahead, or behind
 *            that of the others, is not enough, nor a step of the node's. That is the wait from the
 *            latest loss to the reading of the counters, hence also to the letting in.
 *            If the first client, whose clock is right, comes by at each tick, then the wait is
 *            over MAX_TTL after the first time, or after the node's clock was last set.
 * Limits     512 MB.
 *
 * Mutants    NODE_ONLY      only the node's clock must be past its start
 *            CLIENT_ONLY    only the client's
 *            WAIT_UNCHECKED the wait id is not checked
 *            READ_BEFORE    the counters are read before the wait is over
 *            RAN_ON         the start of the wait is kept over a loss
 *            NODE_STAYS     a node's clock below its start does not move that start
 *            CLIENT_STAYS   a client's clock below its start does not move that start
 *            CUT_AT_ALL     no mutant of the rule, but asserted is that nothing cuts it short
 */
#ifndef MAX_TTL
#define MAX_TTL 2
#endif
#ifndef LOSSES
#define LOSSES 2
#endif
#ifndef STEPS
#define STEPS 1
#endif
#define TIME_MAX 6
/* Clocks are told by what they are ahead of true time, plus OFF: nothing is below zero. */
#define OFF 2
#define AHEAD_MAX 5

byte now;
byte node = OFF;       /* how far ahead its clock is */
byte client[2] = OFF;  /* and those of the clients */
byte losses;
byte steps;

/* What the node keeps. */
byte wait;             /* which wait it is in; 0: none that has begun */
byte node_start;
byte client_start;

/* What a client knows. */
byte seen[2];          /* the wait that it saw, over; 0: none */
byte read_at[2];       /* when it read the counters; 0: it did not */

/* For the assertions. */
byte cut[2];           /* by how much the wait may have been cut short when it was over for it */
byte lost_at;
byte node_lowest;      /* of how far ahead its clock was, since the loss */
byte client_lowest;    /* of how far ahead the clocks of those were who came by, since the loss */
byte prompt;           /* ticks since the first client has come by at each, and no clock was set */
#define NOT_PROMPT 255

#define LOWER(what, to) if :: what > to -> what = to :: else fi
#define SMALLER(a, b) (a < b -> a : b)
#define ABOVE(a, b) (a > b -> a - b : 0)

#define NODE_OVER (now + node >= node_start + MAX_TTL)
#define CLIENT_OVER(c) (now + client[c] >= client_start + MAX_TTL)
#if defined(NODE_ONLY)
#define OVER(c) (wait && NODE_OVER)
#elif defined(CLIENT_ONLY)
#define OVER(c) (wait && CLIENT_OVER(c))
#else
#define OVER(c) (wait && NODE_OVER && CLIENT_OVER(c))
#endif
#ifdef NODE_STAYS
#define NODE_FOUND skip
#else
#define NODE_FOUND LOWER(node_start, now + node)
#endif
#ifdef CLIENT_STAYS
#define CLIENT_FOUND(c) skip
#else
#define CLIENT_FOUND(c) LOWER(client_start, now + client[c])
#endif
/* The wait's id is unlike any other: here, the number of the loss that it follows. */
#define LOOK(c) \
  if \
  :: wait == 0 -> wait = losses; node_start = now + node; client_start = now + client[c] \
  :: else -> NODE_FOUND; CLIENT_FOUND(c) \
  fi; \
  LOWER(node_lowest, node); \
  LOWER(client_lowest, client[c])
#ifdef READ_BEFORE
#define MAY_READ(c) 1
#else
#define MAY_READ(c) OVER(c)
#endif
#ifdef WAIT_UNCHECKED
#define MAY_LET_IN(c) 1
#else
#define MAY_LET_IN(c) (seen[c] == wait && OVER(c))
#endif
#ifdef RAN_ON
#define FORGET_WAIT skip
#else
#define FORGET_WAIT wait = 0; node_start = 0; client_start = 0
#endif
#ifdef CUT_AT_ALL
#define CUT_BY(c) 0
#else
#define CUT_BY(c) SMALLER(ABOVE(node, node_lowest), ABOVE(client[c], client_lowest))
#endif
#define COMES_BY(c) \
  :: d_step { losses && let_in == 0 -> LOOK(c) } \
  :: d_step { losses && let_in == 0 && wait && MAY_READ(c) -> \
       seen[c] = wait; read_at[c] = now; cut[c] = CUT_BY(c) } \
  :: d_step { losses && let_in == 0 && read_at[c] && MAY_LET_IN(c) -> \
       assert(read_at[c] + cut[c] >= lost_at + MAX_TTL); \
       let_in = true; prompt = NOT_PROMPT }


init {
  bool let_in = true;
  prompt = NOT_PROMPT;
  atomic { do :: client[1] > 0 -> client[1]-- :: break od }
  atomic { do :: client[1] < AHEAD_MAX -> client[1]++ :: break od }
  now = 1;
end:
  do
  :: d_step { now < TIME_MAX -> now++; prompt = NOT_PROMPT }
  :: d_step { now < TIME_MAX && losses && let_in == 0 ->
       now++;
       LOOK(0);
       if :: prompt == NOT_PROMPT -> prompt = 0 :: else -> prompt++ fi;
       assert(prompt < MAX_TTL || OVER(0)) }
  /* It is lost, and its clock is anything when it is back. */
  :: atomic { losses < LOSSES ->
       losses++; let_in = false; FORGET_WAIT; lost_at = now; prompt = NOT_PROMPT;
       do :: node > 0 -> node-- :: break od;
       do :: node < AHEAD_MAX -> node++ :: break od;
       node_lowest = node; client_lowest = 255 }
  :: atomic { steps < STEPS && let_in == 0 ->
       steps++; prompt = NOT_PROMPT;
       if
       :: do :: node > 0 -> node-- :: break od
       :: do :: node < AHEAD_MAX -> node++ :: break od
       fi;
       LOWER(node_lowest, node) }
  COMES_BY(0)
  COMES_BY(1)
  od
}
