"""What is checked of each client beside Holdfast, always in both directions."""

import os
import subprocess
import time

import counters
import ensembles
import queueing
import read_write
import sessions
from basics import (HELD_S, LONG_MS, RENEWED_TTL_MS, TTL_MS, Contest, Failed, expect, lock,
                    must_lock, overlaps, took_about_a_ttl, wakes)
from parties import Party, Servers, Trouble, ours

# ---- exclusion ---------------------------------------------------------------------------------


def control(programs, folder):
    """The negative control: without a lock the ledger must show overlaps."""
    print("== control: two that take no lock", flush=True)
    with Servers(1, folder) as servers:
        contest = Contest(folder)
        with Party(ours(programs, "mutex", servers.url()), folder) as one, \
                Party(ours(programs, "mutex", servers.url()), folder) as other:
            for party in (one, other):
                contest.begin(party, "-", 300, 20)
            for party in (one, other):
                party.answer()
        found = overlaps(contest.ledger)
        expect(found, "two that take no lock were never inside at once: the check proves nothing")
        print(f"   {len(found)} overlaps, as there must be", flush=True)


def contend(pair, turns=40, each=3):
    contest = Contest(pair.folder)
    theirs = [pair.theirs() for _ in range(each)]
    mine = [pair.ours() for _ in range(each)]
    for one in theirs:
        contest.begin(one, pair.name, turns, 40)
    for one in mine:
        contest.begin(one, pair.our_name, turns, 40)
    had = contest.end(40)
    expect(min(had) > 0, f"somebody never had the lock: {had}")


def exclude_each_other(pair):
    """Plainly: who holds it keeps the other out, and the other has it afterwards."""
    theirs, mine = pair.theirs(), pair.ours()
    parties = ((theirs, pair.name, "it"), (mine, pair.our_name, "Holdfast"))
    for (holder, held_as, who), (other, asks_as, loser) in (parties, parties[::-1]):
        must_lock(holder, held_as, f"{who} does not get a free lock", wait=5000)
        expect(not lock(other, asks_as), f"{loser} got what {who} holds")
        expect(holder.ask("unlock") == "ok", f"{who} lost it")


def exclusion(pair):
    exclude_each_other(pair)
    contend(pair)


def five_nodes(pair):
    exclude_each_other(pair)
    contend(pair, turns=15, each=2)


# ---- time --------------------------------------------------------------------------------------


def expiry(pair):
    theirs, mine = pair.theirs(), pair.ours()
    must_lock(theirs, pair.name, "it does not get a free lock", ttl=TTL_MS)
    took = must_lock(mine, pair.our_name, "Holdfast waits for an expired lock", wait=15000)
    took_about_a_ttl(took, TTL_MS, "Holdfast gets what expired")
    expect(mine.ask("unlock") == "ok", "Holdfast cannot give it back")
    must_lock(mine, pair.our_name, "Holdfast does not get a free lock", ttl=TTL_MS)
    took = must_lock(theirs, pair.name, "it waits for an expired lock", wait=15000)
    took_about_a_ttl(took, TTL_MS, "it gets what expired")


def foreign_release(pair):
    """A release that comes too late leaves the next holder's lock alone."""
    theirs, mine = pair.theirs(), pair.ours()
    must_lock(theirs, pair.name, "it does not get a free lock", ttl=TTL_MS)
    must_lock(mine, pair.our_name, "Holdfast waits for an expired lock", wait=15000)
    said = theirs.ask("unlock")
    expect(said == "lost" or not pair.client.tells_loss, f"its late unlock says {said}")
    expect(mine.ask("extend") == "ok", "its late unlock took Holdfast's lock")
    expect(mine.ask("unlock") == "ok", "its late unlock took Holdfast's lock")

    must_lock(mine, pair.our_name, "Holdfast does not get a free lock", ttl=TTL_MS)
    how = "renew" if pair.client.renews else "fixed"
    must_lock(theirs, pair.name, "it waits for an expired lock", wait=15000, ttl=5000, how=how)
    expect(mine.ask("unlock") == "lost", "Holdfast's late unlock does not say that it was lost")
    expect(theirs.ask("extend 5000") == "ok", "Holdfast's late unlock took its lock")
    expect(not lock(pair.ours(), pair.our_name), "Holdfast's late unlock took its lock")
    expect(theirs.ask("unlock") == "ok", "it cannot give back what it holds")


def renewal(pair):
    theirs, mine = pair.theirs(), pair.ours()
    how = "renew" if pair.client.renews else "fixed"
    must_lock(theirs, pair.name, "it does not get a free lock", ttl=RENEWED_TTL_MS, how=how)
    until = time.monotonic() + HELD_S
    while time.monotonic() < until:
        if pair.client.extends:
            expect(theirs.ask(f"extend {RENEWED_TTL_MS}") == "ok", "it lost what it extends")
        expect(not lock(mine, pair.our_name), "Holdfast got a lock that is renewed")
        time.sleep(0.2)
    expect(theirs.ask("unlock") == "ok", "it lost what it renews")
    must_lock(mine, pair.our_name, "Holdfast does not get what was given back",
              ttl=RENEWED_TTL_MS, wait=5000, how="renew")
    until = time.monotonic() + HELD_S
    while time.monotonic() < until:
        expect(not lock(theirs, pair.name), "it got a lock that Holdfast renews")
        time.sleep(0.2)
    expect(mine.ask("unlock") == "ok", "Holdfast lost what it renews")
    must_lock(theirs, pair.name, "it does not get what Holdfast gave back", wait=5000)


def kill9(pair):
    victim, mine = pair.theirs(), pair.ours()
    how = "renew" if pair.client.renews else "fixed"
    must_lock(victim, pair.name, "it does not get a free lock", ttl=1500, how=how)
    victim.kill()
    took = must_lock(mine, pair.our_name, "Holdfast waits for a dead holder", wait=15000)
    took_about_a_ttl(took, 1500, "Holdfast gets a dead holder's lock")
    expect(mine.ask("unlock") == "ok", "Holdfast cannot give it back")

    victim, theirs = pair.ours(), pair.theirs()
    must_lock(victim, pair.our_name, "Holdfast does not get a free lock", ttl=1500, how="renew")
    victim.kill()
    took = must_lock(theirs, pair.name, "it waits for a dead holder", wait=15000)
    took_about_a_ttl(took, 1500, "it gets a dead holder's lock")


# ---- Redisson's own ----------------------------------------------------------------------------


def wake_up(pair):
    theirs, mine = pair.theirs(), pair.ours()
    for _ in range(5):
        wakes(theirs, pair.name, mine, pair.our_name, "Holdfast")
        wakes(mine, pair.our_name, theirs, pair.name, "it")


def reentry(pair):
    theirs, mine = pair.theirs(), pair.ours()
    must_lock(theirs, pair.name, "it does not get a free lock")
    must_lock(theirs, pair.name, "it does not get its lock again")
    expect(theirs.ask("holds") == "ok 2", "it does not count two holds")
    expect(theirs.ask("unlock") == "ok", "it cannot unlock once")
    expect(not lock(mine, pair.our_name), "Holdfast got what it still holds once")
    expect(theirs.ask("unlock") == "ok", "it cannot unlock the second time")
    must_lock(mine, pair.our_name, "Holdfast does not get what it gave back")
    expect(mine.ask("unlock") == "ok", "Holdfast cannot give it back")

    expect(mine.ask(f"enter {pair.our_name} {LONG_MS} 0") == "ok 1", "Holdfast does not get it")
    expect(mine.ask(f"enter {pair.our_name} {LONG_MS} 0") == "ok 2", "Holdfast is not re-entrant")
    expect(mine.ask("leave") == "ok 1", "Holdfast does not count")
    expect(not lock(theirs, pair.name), "it got what Holdfast still holds once")
    expect(mine.ask("leave") == "ok 0", "Holdfast does not count")
    must_lock(theirs, pair.name, "it does not get what Holdfast gave back", wait=5000)
    expect(mine.ask(f"force {pair.our_name}") == "ok true", "Holdfast cannot force it")
    must_lock(mine, pair.our_name, "Holdfast does not get what it forced open")
    expect(theirs.ask(f"force {pair.name}") == "ok true", "it cannot force Holdfast's lock")
    must_lock(theirs, pair.name, "it does not get what it forced open")


def tokens(pair):
    """Counted 1, 2, 3 by whoever takes the lock."""
    theirs, mine = pair.theirs(), pair.ours()
    for expected in range(1, 11):
        party, name = (theirs, pair.name) if expected % 2 else (mine, pair.our_name)
        said = party.ask(f"lock {name} {LONG_MS} 5000 fixed")
        expect(said == f"ok {expected}", f"token {expected} is said to be: {said}")
        expect(party.ask("unlock") == "ok", "the holder lost it")


# ---- all of it ---------------------------------------------------------------------------------


class Check:
    def __init__(self, column, does, wanted=lambda client: True, nodes=1):
        self.column, self.does, self.wanted, self.nodes = column, does, wanted, nodes


CHECKS = (
    Check("exclusion", exclusion, lambda client: client.locks),
    Check("wake-up", wake_up, lambda client: client.notifies),
    Check("expiry", expiry, lambda client: client.leases),
    Check("foreign release", foreign_release, lambda client: client.leases),
    Check("renewal", renewal, lambda client: client.leases),
    Check("re-entry", reentry, lambda client: client.reenters),
    Check("tokens", tokens, lambda client: client.counts_tokens),
    Check("order", queueing.order, lambda client: client.queues and client.leases),
    Check("gone waiter", queueing.gone_waiters, lambda client: client.queues and client.leases),
    Check("readers", read_write.readers, lambda client: client.shares and client.leases),
    Check("downgrade", read_write.downgrade, lambda client: client.shares),
    Check("kill -9", kill9, lambda client: client.leases),
    Check("five nodes", five_nodes, lambda client: client.votes, nodes=5),
)


# Of what has no lease. In the columns of those that say the same of locks.
CHECKS += (
    Check("counts", counters.semaphore_counts, lambda client: client.ours == "rsemaphore"),
    Check("bound", lambda pair: counters.semaphore_bounds(pair, Contest(pair.folder)),
          lambda client: client.ours == "rsemaphore"),
    Check("wake-up", counters.semaphore_waiters_wake, lambda client: client.ours == "rsemaphore"),
    Check("kill -9", counters.dead_holders_permits_are_gone,
          lambda client: client.ours == "rsemaphore"),
    Check("counts", counters.latch_counts, lambda client: client.ours == "rlatch"),
    Check("wake-up", counters.latch_waiters_wake, lambda client: client.ours == "rlatch"),
    Check("kill -9", counters.dead_ones_count_stays, lambda client: client.ours == "rlatch"),
)

# Of what is held by a session.
CHECKS += (
    Check("release", sessions.release, lambda client: client.sessions),
    Check("renewal", sessions.keeping_alive, lambda client: client.sessions),
    Check("order", sessions.order, lambda client: client.sessions and client.queues),
    Check("gone waiter", sessions.dead_waiter, lambda client: client.sessions),
    Check("readers", sessions.readers, lambda client: client.sessions and client.shares),
    Check("kill -9", sessions.kill9, lambda client: client.sessions),
)

SERVERS = {"redis": Servers, "zookeeper": ensembles.Zookeeper, "etcd": ensembles.Etcd}


def of(client):
    return [one for one in CHECKS if one.wanted(client)]


class Pair:
    """One client and Holdfast, with one lock."""

    def __init__(self, client, servers, programs, folder):
        self.client, self.servers, self.programs, self.folder = client, servers, programs, folder
        self.alone = programs is None
        self.name = "orders"
        self.our_name = self.name if self.alone else client.key("orders")
        self.all = []

    def started(self, argv):
        party = Party(argv, self.folder)
        self.all.append(party)
        return party.ready()

    def theirs(self):
        # Its watchdog's time is that of the checks in which it renews.
        return self.started(self.client.argv(self.servers, RENEWED_TTL_MS))

    def ours(self):
        if self.alone:
            return self.theirs()
        return self.started(ours(self.programs, self.client.ours, self.servers.url()))


def let_nodes_vote(servers, programs):
    """A new set would wait for max_ttl."""
    done = subprocess.run(
        [os.path.join(programs, "holdfast"), "redlock", "init", "--store", servers.url()],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    expect(done.returncode == 0, "the nodes do not vote: " + done.stdout.strip())


def run(check, client, programs, folder):
    with SERVERS[client.store](check.nodes, folder) as servers:
        if check.nodes > 1:
            let_nodes_vote(servers, programs)
        pair = Pair(client, servers, programs, folder)
        try:
            check.does(pair)
        except Trouble as why:
            raise Failed(str(why)) from None
        finally:
            for party in pair.all:
                party.kill()


def together(clients, programs, folder, seconds, report):
    """All that can share a key, at once: the string family on one, Redisson on another."""
    groups = {}
    for client in filter(lambda one: one.locks, clients):
        kind = "string" if client.ours == "mutex" else client.ours
        groups.setdefault(kind if client.store == "redis" else f"{client.store} {kind}",
                          []).append(client)
    for kind, members in groups.items():
        print(f"== together: {', '.join(one.name for one in members)} and two Holdfasts on one "
              f"lock, for {seconds} s", flush=True)
        # The prefixes of some are part of the key of all.
        longest = max((one.prefix for one in members), key=len)
        key = longest + "orders"
        with SERVERS[members[0].store](1, folder) as servers:
            parties = [Party(one.argv(servers), folder) for one in members]
            names = [one.name for one in members]
            calls = [key[len(one.prefix):] for one in members]
            for _ in range(2):
                parties.append(Party(ours(programs, members[0].ours, servers.url()), folder))
                names.append("holdfast")
                calls.append(key)
            contest = Contest(folder)
            try:
                for party in parties:
                    party.ready()
                for party, name in zip(parties, calls):
                    contest.begin(party, name, 1000000, seconds)
                had = contest.end(seconds)
                for name, turns in zip(names, had):
                    print(f"   {name:<20}{turns:>8} turns", flush=True)
                expect(min(had) > 0, f"somebody never had the lock: {had}")
                for one in members:
                    report.ok(one.name, "together")
            except (Failed, Trouble) as why:
                for one in members:
                    report.failed(one.name, "together", f"with the {kind} family: {why}")
            finally:
                for party in parties:
                    party.kill()
