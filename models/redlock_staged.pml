/* Fenced Redlock: asking a bare majority first, and filling in the rest.
 *
 * Modelled   three nodes; two attempts, each of which asks two nodes of its choice, and the third
 *            when it likes, that is: when one of the two is slow, busy or refuses. Fresh on two: it
 *            holds the lock, and a node that it has not asked is filled in: the repair script sets
 *            the key there if it is free and the counter is not above the token, and lifts the
 *            counter. To end, granted or not, it sends releases to all nodes. What it sends to one
 *            node arrives in the order in which it was sent, because it goes by one connection.
 *            Renewal of a lease that is being filled in: see redlock_renew.pml; what filling in
 *            does to the order of tokens when keys get lost: see redlock_tokens.pml.
 * Adversary  chooses which nodes are asked, the proposals, the order of everything on different
 *            connections; loses replies. No key gets lost.
 * Asserted   at most one attempt holds the lock, and it has its key on a majority; tokens in
 *            real-time order, none twice; where a release has arrived, the key is not set again.
 * Limits     512 MB.
 *
 * Mutants    FILLED_AFTER_RELEASE  it is filled in though the lock was given back
 *            OTHER_CONNECTION      filling in and releases go by different connections
 *            FILLED_BLINDLY        neither the key nor the counter is looked at
 *            BARE_MINORITY         the nodes that were filled in count as votes
 */
#define N 3
#define MAJORITY 2
#define ATTEMPTS 2
#define PROPOSAL_MAX 2
#define ALL 7

#define HAS(set, n) ((set >> n) & 1)
#define ADD(set, n) set = set | (1 << n)
#define DROP(set, n) set = set & ~(1 << n)
#define COUNT(set) (HAS(set, 0) + HAS(set, 1) + HAS(set, 2))
#define EACH(what) what(0) what(1) what(2)

byte key[N];
byte counter[N];
byte holder; /* 0: nobody */
byte highest;
byte tokens;

#define HAS_KEY(n) (key[n] == me)
#define LIFT(n) if :: p > counter[n] -> counter[n] = p :: else fi
#define SET(n) key[n] = me; LIFT(n); assert(!HAS(released, n))

#define ACQUIRE(n) \
  :: d_step { HAS(asking, n) -> \
       DROP(asking, n); \
       if \
       :: key[n] == 0 && p > counter[n] -> SET(n); ADD(fresh, n) \
       :: key[n] == 0 && p <= counter[n] -> SET(n) \
       :: else \
       fi } \
  /* The same, and the reply is lost. */ \
  :: d_step { HAS(asking, n) && key[n] == 0 -> DROP(asking, n); SET(n) }
#ifdef FILLED_BLINDLY
#define MAY_FILL(n) 1
#else
#define MAY_FILL(n) (key[n] == 0 && counter[n] <= p)
#endif
#define FILL(n) \
  :: d_step { HAS(filling, n) -> DROP(filling, n); if :: MAY_FILL(n) -> SET(n) :: else fi }
#ifdef OTHER_CONNECTION
#define BEFORE(n) HAS(asking, n)
#else
#define BEFORE(n) (HAS(asking, n) || HAS(filling, n))
#endif
#define RELEASE(n) \
  :: d_step { HAS(releasing, n) && !BEFORE(n) -> \
       DROP(releasing, n); ADD(released, n); \
       if :: key[n] == me -> key[n] = 0 :: else fi }
#ifdef BARE_MINORITY
#define ENOUGH (COUNT(fresh) + COUNT((ALL & ~asked)) >= MAJORITY)
#else
#define ENOUGH (COUNT(fresh) >= MAJORITY)
#endif
#ifdef FILLED_AFTER_RELEASE
#define MAY_SEND_FILL granted
#else
#define MAY_SEND_FILL (granted && !gives_back)
#endif

proctype attempt(byte me) {
  byte p;
  byte bound;
  byte asked;     /* nodes */
  byte asking;    /* nodes that a request is on its way to, and so on */
  byte filling;
  byte releasing;
  byte released;  /* nodes that a release has arrived at */
  byte fresh;
  bool granted;
  bool gives_back;
  atomic {
    bound = highest;
    if :: asked = 3 :: asked = 5 :: asked = 6 fi;
    asking = asked;
    p = 1;
    do :: p < PROPOSAL_MAX -> p++ :: break od
  }
end:
  do
  :: d_step { !granted && !gives_back && asked != ALL ->
       asking = asking | (ALL & ~asked); asked = ALL }
  EACH(ACQUIRE)
  :: d_step { ENOUGH && !granted && !gives_back ->
       granted = true;
       assert(holder == 0);
       assert(HAS_KEY(0) + HAS_KEY(1) + HAS_KEY(2) >= MAJORITY);
       assert(p > bound);
       assert(!HAS(tokens, p));
       holder = me;
       ADD(tokens, p);
       if :: p > highest -> highest = p :: else fi }
  :: d_step { MAY_SEND_FILL && asked != ALL -> filling = ALL & ~asked; asked = ALL }
  EACH(FILL)
  :: d_step { !gives_back ->
       gives_back = true; releasing = ALL;
       if :: holder == me -> holder = 0 :: else fi }
  EACH(RELEASE)
  od
}

init {
  atomic { run attempt(1); run attempt(2) }
}
