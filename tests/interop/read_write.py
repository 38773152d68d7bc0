"""What is checked of locks that readers hold together, and a writer alone."""

import time

from basics import (HELD_S, LONG_MS, RENEWED_TTL_MS, TTL_MS, WAKES_S, Contest, expect, lock,
                    must_lock, took_about_a_ttl)


def read(party, name, ttl=LONG_MS, wait=0, how="fixed"):
    return party.ask(f"read {name} {ttl} {wait} {how}") == "ok"


def must_read(party, name, text, **how):
    expect(read(party, name, **how), text)


def unlock(party, text):
    expect(party.ask("unlock") == "ok", text + " lost it")


def readers(pair):
    sides = ((pair.theirs, pair.name, "it"), (pair.ours, pair.our_name, "Holdfast"))
    for one, other in (sides, sides[::-1]):
        together(one, other)
        wake_each_other(one, other)
        end_one_by_one(one, other)
        are_renewed(one, other)
    no_writer_is_seen(pair)


def together(one, other):
    (start, name, who), (start_other, other_name, other_who) = one, other
    reader, writer = start(), start()
    other_reader, other_writer = start_other(), start_other()
    must_read(reader, name, f"{who} cannot read what is free")
    must_read(other_reader, other_name, f"{other_who} cannot read what {who} reads")
    for party, called in ((writer, name), (other_writer, other_name)):
        expect(not lock(party, called), "a writer came in while others read")
    unlock(reader, who)
    expect(not lock(writer, name), f"{who} wrote while {other_who} still read")
    unlock(other_reader, other_who)
    must_lock(writer, name, f"{who} cannot write when all readers have left")
    expect(not read(other_reader, other_name), f"{other_who} reads while {who} writes")
    expect(not read(reader, name), "a reader came in while its own side's other client writes")
    unlock(writer, who)


def await_answers(waiters, text):
    began = time.monotonic()
    for one in waiters:
        expect(one.answer().startswith("ok"), text + " does not get the lock")
    took = time.monotonic() - began
    expect(took < WAKES_S, f"{text} is woken after {took:.2f} s")


def wake_each_other(one, other):
    """The last reader's unlock wakes a writer, a writer's all readers."""
    (start, name, who), (start_other, other_name, other_who) = one, other
    holder, *waiters = start(), start_other(), start_other(), start_other()
    must_read(holder, name, f"{who} cannot read what is free")
    waiters[0].send(f"lock {other_name} {LONG_MS} 25000 fixed")
    time.sleep(0.7)
    unlock(holder, who)
    await_answers(waiters[:1], f"{other_who}, to write,")
    unlock(waiters[0], other_who)

    must_lock(holder, name, f"{who} cannot write what is free")
    for party in waiters:
        party.send(f"read {other_name} {LONG_MS} 25000 fixed")
    time.sleep(0.7)
    unlock(holder, who)
    await_answers(waiters, f"{other_who}, three to read,")
    for party in waiters:
        unlock(party, other_who)


def end_one_by_one(one, other):
    """Each reader's hold lasts as long as it was given, whatever the others do."""
    (start, name, who), (start_other, other_name, other_who) = one, other
    brief, longer, killed = start(), start_other(), start()
    writer = start_other()
    must_read(brief, name, f"{who} cannot read what is free", ttl=TTL_MS)
    must_read(longer, other_name, f"{other_who} cannot read with others", ttl=4000)
    must_read(killed, name, f"{who} cannot read with others", ttl=1500, how="renew")
    killed.kill()
    began = time.monotonic()
    time.sleep(TTL_MS / 1000)
    expect(not lock(writer, other_name), "the first hold to end took the others' lock")
    must_lock(writer, other_name, f"{other_who} waits for holds that end", wait=15000)
    took_about_a_ttl(time.monotonic() - began, 4000, "a writer after the longest hold")
    unlock(writer, other_who)

    must_read(brief, name, f"{who} cannot read what is free", ttl=TTL_MS)
    must_read(longer, other_name, f"{other_who} cannot read with others")
    time.sleep(TTL_MS / 1000 + 0.3)
    unlock(longer, other_who)
    must_lock(writer, other_name, "a dead reader keeps the lock when the living have left",
              wait=1000)
    expect(brief.ask("unlock") == "lost", f"{who} is not told that its hold had ended")
    unlock(writer, other_who)


def are_renewed(one, other):
    (start, name, who), (start_other, other_name, other_who) = one, other
    reader, other_reader, writer = start(), start_other(), start_other()
    must_read(reader, name, f"{who} cannot read", ttl=RENEWED_TTL_MS, how="renew")
    must_read(other_reader, other_name, f"{other_who} cannot read", ttl=RENEWED_TTL_MS,
              how="renew")
    for party, text in ((other_reader, other_who), (reader, who)):
        until = time.monotonic() + HELD_S
        while time.monotonic() < until:
            expect(not lock(writer, other_name), "a writer came in while readers renew")
            time.sleep(0.2)
        unlock(party, text)
    must_lock(writer, other_name, f"{other_who} cannot write when all have left", wait=5000)
    unlock(writer, other_who)


def no_writer_is_seen(pair):
    """Writers take turns, and readers never see one at work."""
    contest = Contest(pair.folder)
    watchers = []
    for start, name in ((pair.theirs, pair.name), (pair.ours, pair.our_name)):
        for _ in range(2):
            contest.begin(start(), name, 1000000, 8)
        party = start()
        party.send(f"watch {name} 10000 5000 8 {contest.counter}")
        watchers.append(party)
    contest.end(8)
    for party in watchers:
        said = party.answer(60)
        expect(said.startswith("ok ") and said != "ok 0", f"a reader says: {said}")


def downgrade(pair):
    """A writer that becomes a reader lets readers in, and no writer."""
    sides = ((pair.theirs, pair.name, "it"), (pair.ours, pair.our_name, "Holdfast"))
    for (start, name, who), (start_other, other_name, other_who) in (sides, sides[::-1]):
        holder, reader, writer = start(), start_other(), start_other()
        must_lock(holder, name, f"{who} cannot write what is free", ttl=RENEWED_TTL_MS, how="renew")
        expect(not read(reader, other_name), f"{other_who} reads while {who} writes")
        expect(holder.ask(f"downgrade {name}") == "ok", f"{who} cannot become a reader")
        must_read(reader, other_name, f"{other_who} cannot read with one that wrote")
        time.sleep(2 * RENEWED_TTL_MS / 1000)
        expect(not lock(writer, other_name), f"{other_who} wrote while {who} still reads")
        unlock(reader, other_who)
        expect(not lock(writer, other_name), f"{other_who} wrote while {who} still reads")
        unlock(holder, who)
        must_lock(writer, other_name, f"{other_who} cannot write when all have left", wait=1000)
        unlock(writer, other_who)
