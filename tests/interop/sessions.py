"""What is checked of locks that are held by a session: they last as long as it is kept alive."""

import time

import read_write
from basics import HELD_S, LATE_S, expect, lock, must_lock

SESSION_MS = 2000  # the least that etcd gives


def sides_of(pair):
    sides = ((pair.theirs, pair.name, "it"), (pair.ours, pair.our_name, "Holdfast"))
    return sides, sides[::-1]


def release(pair):
    """Who waits in vain leaves nothing behind, and what was given back is the next one's."""
    for (start, name, who), (start_other, other_name, other_who) in sides_of(pair):
        holder, other = start(), start_other()
        must_lock(holder, name, f"{who} does not get a free lock", ttl=SESSION_MS, how="renew")
        for _ in range(3):
            expect(not lock(other, other_name, ttl=SESSION_MS, wait=300),
                   f"{other_who} got what {who} holds")
        expect(holder.ask("unlock") == "ok", f"{who} lost it")
        must_lock(holder, name, f"{who} does not get it again", ttl=SESSION_MS, wait=1000,
                  how="renew")
        expect(holder.ask("unlock") == "ok", f"{who} lost it")
        must_lock(other, other_name, f"{other_who} does not get it", ttl=SESSION_MS, wait=1000,
                  how="renew")
        expect(other.ask("unlock") == "ok", f"{other_who} lost it")


def keeping_alive(pair):
    for (start, name, who), (start_other, other_name, other_who) in sides_of(pair):
        holder, other = start(), start_other()
        must_lock(holder, name, f"{who} does not get a free lock", ttl=SESSION_MS, how="renew")
        until = time.monotonic() + HELD_S + SESSION_MS / 1000
        while time.monotonic() < until:
            expect(not lock(other, other_name, ttl=SESSION_MS),
                   f"{other_who} got what {who} keeps alive")
            time.sleep(0.2)
        expect(holder.ask("unlock") == "ok", f"{who} lost what it keeps alive")


def kill9(pair):
    """A dead holder's lock is the waiter's when its session ends, and not before."""
    for (start, name, who), (start_other, other_name, other_who) in sides_of(pair):
        victim, waiter = start(), start_other()
        must_lock(victim, name, f"{who} does not get a free lock", ttl=SESSION_MS, how="renew")
        waiter.send(f"lock {other_name} {SESSION_MS} 20000 renew")
        time.sleep(0.5)
        victim.kill()
        began = time.monotonic()
        expect(waiter.answer().startswith("ok"), f"{other_who} does not get a dead holder's lock")
        took = time.monotonic() - began
        expect(SESSION_MS / 4000 < took < SESSION_MS / 1000 + LATE_S,
               f"{other_who} has a dead holder's lock after {took:.2f} s")
        expect(waiter.ask("unlock") == "ok", f"{other_who} lost it")


def dead_waiter(pair):
    """One that dies in the queue holds up those behind it for the end of its session at most."""
    for (start, name, who), (start_other, other_name, other_who) in sides_of(pair):
        holder, victim, behind = start(), start_other(), start()
        must_lock(holder, name, f"{who} does not get a free lock", ttl=SESSION_MS, how="renew")
        victim.send(f"lock {other_name} {SESSION_MS} 20000 renew")
        time.sleep(0.5)
        behind.send(f"lock {name} {SESSION_MS} 20000 renew")
        time.sleep(0.5)
        victim.kill()
        expect(holder.ask("unlock") == "ok", f"{who} lost it")
        began = time.monotonic()
        expect(behind.answer().startswith("ok"), f"{who} stays behind a dead {other_who}")
        took = time.monotonic() - began
        expect(took < SESSION_MS / 1000 + LATE_S, f"{who} is held up for {took:.2f} s")
        expect(behind.ask("unlock") == "ok", f"{who} lost it")


def order(pair):
    """Waiters of both sides have the lock in the order in which they came."""
    (start, name, who), (start_other, other_name, _) = sides_of(pair)[0]
    holder = start()
    must_lock(holder, name, f"{who} does not get a free lock", ttl=SESSION_MS, how="renew")
    waiters = []
    for begin, called in ((start_other, other_name), (start, name)) * 2:
        waiter = begin()
        waiter.send(f"lock {called} {SESSION_MS} 20000 renew")
        waiters.append(waiter)
        time.sleep(0.7)  # until it stands in the queue
    for waiter in waiters:
        expect(holder.ask("unlock") == "ok", "the holder lost it")
        expect(waiter.answer().startswith("ok"), "a waiter does not get the lock")
        holder = waiter
    expect(holder.ask("unlock") == "ok", "the last one lost it")


def readers(pair):
    """They read together, and no writer comes in or is seen at work."""
    for one, other in sides_of(pair):
        read_write.together(one, other)
        read_write.wake_each_other(one, other)
    read_write.no_writer_is_seen(pair)
