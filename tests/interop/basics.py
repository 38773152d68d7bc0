"""What all checks are made of: locks, contests, and what is expected of them."""

import os
import time

TTL_MS = 700  # of locks that are to end by themselves
RENEWED_TTL_MS = 900
HELD_S = 2.5  # several TTLs, for what is renewed
LATE_S = 4.0  # beyond a TTL: a machine that is busy
WAKES_S = 1.0  # far from any TTL, or pause of a client that polls
LONG_MS = 30000


class Failed(Exception):
    pass


def expect(fact, text):
    if not fact:
        raise Failed(text)


def lock(party, name, ttl=LONG_MS, wait=0, how="fixed"):
    return party.ask(f"lock {name} {ttl} {wait} {how}").startswith("ok")


def must_lock(party, name, text, **how):
    began = time.monotonic()
    expect(lock(party, name, **how), text)
    return time.monotonic() - began


def took_about_a_ttl(took, ttl_ms, text):
    expect(0.3 * ttl_ms / 1000 < took < ttl_ms / 1000 + LATE_S,
           f"{text}: after {took:.2f} s of {ttl_ms} ms")


def wakes(holder, held_as, waiter, waits_as, text):
    must_lock(holder, held_as, "nobody has the lock, and it is not to be had")
    waiter.send(f"lock {waits_as} {LONG_MS} 25000 fixed")
    time.sleep(0.7)
    expect(holder.ask("unlock") == "ok", "the holder lost it")
    began = time.monotonic()
    expect(waiter.answer().startswith("ok"), text + " does not get the lock")
    took = time.monotonic() - began
    expect(took < WAKES_S, f"{text} is woken after {took:.2f} s")
    expect(waiter.ask("unlock") == "ok", "the waiter lost it")


# ---- contests ----------------------------------------------------------------------------------


def overlaps(path):
    """Where a ledger shows somebody coming in while another is inside."""
    inside, found = None, []
    with open(path) as file:
        for number, line in enumerate(file, 1):
            what, who = line.split()
            if what == "enter":
                if inside is not None:
                    found.append(f"line {number}: {who} while {inside}")
                inside = who
            elif inside == who:
                inside = None
    return found


class Contest:
    """Several parties that take turns with one counter and one ledger."""

    def __init__(self, folder):
        stem = os.path.join(folder, f"contest-{time.monotonic_ns()}")
        self.counter, self.ledger = stem + ".count", stem + ".ledger"
        for path in (self.counter, self.ledger):
            with open(path, "w"):
                pass
        with open(self.counter, "w") as file:
            file.write("0")
        self.parties = []

    def begin(self, party, name, turns, seconds):
        who = f"{len(self.parties)}"
        self.parties.append(party)
        party.send(f"count {name} 10000 20000 {turns} {seconds} {self.counter} {self.ledger} {who}")

    def end(self, seconds):
        """How many turns each had; raises if two were inside at once, or an update was lost."""
        turns = [int(one.answer(seconds + 60).split()[1]) for one in self.parties]
        found = overlaps(self.ledger)
        expect(not found, f"{len(found)} overlaps, the first at {found[0] if found else ''}")
        with open(self.counter) as file:
            value = int(file.read())
        expect(value == sum(turns), f"the counter says {value} after {sum(turns)} turns")
        return turns
