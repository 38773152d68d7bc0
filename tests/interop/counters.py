"""What is checked of Redisson's counters, a semaphore and a latch, always in both directions."""

import time

from basics import WAKES_S, expect

KEPT_OUT_S = 0.7  # a waiter that is let go too early is so by then


def both_ways(pair):
    theirs, mine = pair.theirs(), pair.ours()
    return ((theirs, mine, "it", "Holdfast"), (mine, theirs, "Holdfast", "it"))


def value_is(parties, name, expected):
    for party in parties:
        said = party.ask(f"value {name}")
        expect(said == f"ok {expected}", f"{party.name} reads {said}, not {expected}")


def is_let_go(waiter, began, text):
    expect(waiter.answer().startswith("ok"), f"{text} is not let go")
    took = time.monotonic() - began
    expect(took < WAKES_S, f"{text} is let go after {took:.2f} s")


def semaphore_counts(pair):
    """Either side's changes are read by the other."""
    for one, other, _, _ in both_ways(pair):
        name = f"slots-{one.process.pid}"
        parties = (one, other)
        expect(one.ask(f"set {name} 5") == "ok true", "it cannot be set")
        expect(other.ask(f"set {name} 9") == "ok false", "it is set twice")
        value_is(parties, name, 5)
        expect(other.ask(f"take {name} 3 0") == "ok", "three of five are not to be had")
        expect(one.ask(f"take {name} 3 0") == "busy", "three of two are to be had")
        value_is(parties, name, 2)
        expect(one.ask(f"give {name} 3") == "ok", "permits of the other cannot be given back")
        expect(other.ask(f"add {name} -2") == "ok", "permits cannot be taken away")
        value_is(parties, name, 3)
        expect(one.ask(f"drain {name}") == "ok 3", "not all that there were")
        value_is(parties, name, 0)


def most_inside(path):
    inside, most = 0, 0
    with open(path) as file:
        for line in file:
            inside += 1 if line.startswith("enter") else -1
            most = max(most, inside)
    return most


def semaphore_bounds(pair, contest):
    """With two permits there are never three inside, and sometimes two."""
    parties = [pair.theirs() for _ in range(3)] + [pair.ours() for _ in range(3)]
    expect(parties[0].ask(f"set {pair.name} 2") == "ok true", "it cannot be set")
    for one in parties:
        contest.begin(one, pair.name, 30, 40)
    for one in parties:
        expect(int(one.answer(100).split()[1]) > 0, "one party never got in")
    most = most_inside(contest.ledger)
    expect(most == 2, f"{most} were inside at once, of two that may be")


def semaphore_waiters_wake(pair):
    for one, other, _, who in both_ways(pair):
        name = f"slots-{one.process.pid}"
        expect(one.ask(f"set {name} 2") == "ok true", "it cannot be set")
        expect(one.ask(f"take {name} 2 0") == "ok", "free permits are not to be had")
        other.send(f"take {name} 2 25000")
        time.sleep(KEPT_OUT_S)
        expect(one.ask(f"give {name} 1") == "ok", "permits cannot be given back")
        time.sleep(KEPT_OUT_S)
        began = time.monotonic()
        expect(one.ask(f"give {name} 1") == "ok", "permits cannot be given back")
        is_let_go(other, began, who)
        value_is((one,), name, 0)


def dead_holders_permits_are_gone(pair):
    """No lease: for both sides alike, until a program adds them again."""
    for victim, other in ((pair.theirs(), pair.ours()), (pair.ours(), pair.theirs())):
        name = f"slots-{victim.process.pid}"
        expect(other.ask(f"set {name} 1") == "ok true", "it cannot be set")
        expect(victim.ask(f"take {name} 1 0") == "ok", "a free permit is not to be had")
        victim.kill()
        expect(other.ask(f"take {name} 1 1000") == "busy", "a dead holder's permit came back")
        expect(other.ask(f"add {name} 1") == "ok", "permits cannot be added")
        expect(other.ask(f"take {name} 1 0") == "ok", "an added permit is not to be had")


def latch_counts(pair):
    for one, other, _, _ in both_ways(pair):
        name = f"tested-{one.process.pid}"
        parties = (one, other)
        value_is(parties, name, 0)
        expect(other.ask(f"await {name} 0") == "ok", "a latch that was never set is closed")
        expect(one.ask(f"set {name} 3") == "ok true", "it cannot be set")
        expect(other.ask(f"set {name} 9") == "ok false", "it is set twice")
        value_is(parties, name, 3)
        expect(other.ask(f"down {name}").startswith("ok"), "it cannot be counted down")
        value_is(parties, name, 2)
        expect(one.ask(f"await {name} 100") == "busy", "it is open, though two are left")
        expect(one.ask(f"down {name}").startswith("ok"), "it cannot be counted down")
        expect(other.ask(f"down {name}").startswith("ok"), "it cannot be counted down")
        value_is(parties, name, 0)
        expect(one.ask(f"await {name} 0") == "ok", "it is closed, though nothing is left")
        expect(one.ask(f"set {name} 1") == "ok true", "it cannot be set again")


def latch_waiters_wake(pair):
    """The last count of either side lets all waiters of both go, also when it was set anew."""
    for one, other, _, _ in both_ways(pair):
        waiters = ((pair.theirs(), "it"), (pair.theirs(), "it"), (pair.ours(), "Holdfast"))
        name = f"tested-{one.process.pid}"
        for _ in range(2):
            expect(other.ask(f"set {name} 2") == "ok true", "it cannot be set")
            for waiter, _ in waiters:
                waiter.send(f"await {name} 25000")
            time.sleep(KEPT_OUT_S)
            expect(other.ask(f"down {name}").startswith("ok"), "it cannot be counted down")
            time.sleep(KEPT_OUT_S)
            began = time.monotonic()
            expect(one.ask(f"down {name}").startswith("ok"), "it cannot be counted down")
            for waiter, who in waiters:
                is_let_go(waiter, began, who)


def dead_ones_count_stays(pair):
    for victim, other in ((pair.theirs(), pair.ours()), (pair.ours(), pair.theirs())):
        name = f"tested-{victim.process.pid}"
        expect(other.ask(f"set {name} 2") == "ok true", "it cannot be set")
        expect(victim.ask(f"down {name}").startswith("ok"), "it cannot be counted down")
        victim.kill()
        value_is((other,), name, 1)
        expect(other.ask(f"down {name}").startswith("ok"), "it cannot be counted down")
        expect(other.ask(f"await {name} 0") == "ok", "it is closed, though nothing is left")
