"""What is checked of locks whose waiters are served in the order in which they came."""

import time

from basics import LONG_MS, WAKES_S, expect, must_lock, took_about_a_ttl

JOINS_WITHIN_S = 10
QUEUE = "redisson_lock_queue:{%s}"


def await_waiters(pair, count):
    until = time.monotonic() + JOINS_WITHIN_S
    while pair.servers.ask("LLEN", QUEUE % pair.name) != f":{count}":
        expect(time.monotonic() < until, f"there are never {count} waiters in the queue")
        time.sleep(0.01)


def queue_up(pair, waiters, wait_ms=60000, ttl_ms=LONG_MS):
    """Each joins when the one before it has."""
    for number, (party, name) in enumerate(waiters, 1):
        party.send(f"lock {name} {ttl_ms} {wait_ms} fixed")
        await_waiters(pair, number)


def order(pair):
    theirs, mine = (lambda: (pair.theirs(), pair.name)), (lambda: (pair.ours(), pair.our_name))
    for first, second in ((theirs, mine), (mine, theirs)):
        (holder, held_as), *waiters = first(), second(), first(), first(), second(), second()
        must_lock(holder, held_as, "nobody has the lock, and it is not to be had")
        queue_up(pair, waiters)
        time.sleep(0.3)  # they listen
        for number, (party, _) in enumerate(waiters, 1):
            expect(holder.ask("unlock") == "ok", "the holder lost it")
            began = time.monotonic()
            expect(party.answer().startswith("ok"), f"waiter {number} does not get it in its turn")
            took = time.monotonic() - began
            expect(took < WAKES_S, f"waiter {number} is served after {took:.2f} s")
            holder = party
        expect(holder.ask("unlock") == "ok", "the last holder lost it")


def gone_waiters(pair):
    """Those that give up, and those that die, in front of one of the other side."""
    for front, behind in (((pair.theirs, pair.name), (pair.ours, pair.our_name)),
                          ((pair.ours, pair.our_name), (pair.theirs, pair.name))):
        holder, gives_up, waits = front[0](), front[0](), behind[0]()
        must_lock(holder, front[1], "nobody has the lock, and it is not to be had")
        gives_up.send(f"lock {front[1]} {LONG_MS} 1500 fixed")
        await_waiters(pair, 1)
        waits.send(f"lock {behind[1]} {LONG_MS} 60000 fixed")
        await_waiters(pair, 2)
        expect(gives_up.answer() == "busy", "a waiter got a lock that another holds")
        await_waiters(pair, 1)
        expect(holder.ask("unlock") == "ok", "the holder lost it")
        began = time.monotonic()
        expect(waits.answer().startswith("ok"), "the waiter behind does not get the lock")
        took = time.monotonic() - began
        expect(took < WAKES_S, f"the waiter behind one that gave up is served after {took:.2f} s")
        expect(waits.ask("unlock") == "ok", "the waiter lost it")

        # Of one that dies the place is kept for as long as the lock, and a time of its own: of
        # Redisson's that is how long it would have waited, of ours two TTLs.
        dies = front[0]()
        must_lock(holder, front[1], "the lock is not to be had", ttl=1500)
        began = time.monotonic()
        dies.send(f"lock {front[1]} 1000 2000 fixed")
        await_waiters(pair, 1)
        dies.kill()
        waits.send(f"lock {behind[1]} {LONG_MS} 60000 fixed")
        expect(waits.answer().startswith("ok"), "the waiter behind a dead one gets nothing")
        took_about_a_ttl(time.monotonic() - began, 3500, "the waiter behind a dead one")
        expect(waits.ask("unlock") == "ok", "the waiter lost it")
