"""How fast: each client and Holdfast on one server, by turns."""

import contextlib
import datetime
import os
import re
import statistics
import subprocess
import tempfile
from dataclasses import dataclass, field

from parties import Party, Servers, ours
from picture import Bar, Panel, picture

WORKERS = 8
ROUNDS = 5
PASSES = 6  # of one worker in a round, each so short that it may fall between other work
TURNS = 300
WARM_UP_TURNS = 3000  # a virtual machine compiles what it runs often
RACE_S = 2.0
WARM_UP_RACE_S = 1.0
RACES_WITHIN_S = 60
RACE_WAIT_MS = 10000  # the adapters wait for so long and then ask anew
PAUSE_MS = 1  # while it has the lock, and again before it wants it back
# Good for starting quickly, as the checks want it, and half as fast in the end.
STARTS_QUICKLY = "-XX:TieredStopAtLevel=1"

# What else the machine was doing.
LOAD_AT_START = os.getloadavg()[0]

HERE = os.path.dirname(os.path.abspath(__file__))


@dataclass
class Contender:
    label: str
    argv: list
    key: str  # what it calls a lock of its own
    verb: str = "bench"
    races: bool = True
    is_ours: bool = False
    workers: list = field(default_factory=list)
    pair_us: list = field(default_factory=list)  # of each pass of each round
    rates: list = field(default_factory=list)
    slowest_ms: list = field(default_factory=list)

    def pairs(self):
        return 1e6 / statistics.median(self.pair_us)

    def rate(self):
        return statistics.median(self.rates)

    def slowest(self):
        return statistics.median(self.slowest_ms)


def version(client):
    """As its manifest pins it."""
    path, pattern = client.pinned
    with open(os.path.join(HERE, path)) as file:
        return re.search(pattern, file.read()).group(1)


def contenders(options, clients, servers):
    url = servers.url().split("?")[0]  # no client of another kind wants these locks
    all_of_them = [
        Contender("Holdfast mutex", ours(options.programs, "mutex", url), "ours", is_ours=True),
        Contender("Holdfast mutex, not awaited", ours(options.programs, "mutex", url),
                  "ours-sent", verb="bench-sent", races=False, is_ours=True),
    ]
    if any(one.ours == "rlock" for one in clients):
        all_of_them.append(Contender("Holdfast redisson::rlock",
                                     ours(options.programs, "rlock", url), "rlock", is_ours=True))
    for one in clients:
        if one.pinned:
            argv = [word for word in one.argv(servers) if word != STARTS_QUICKLY]
            label = f"{one.shown or one.name} {version(one)}"
            all_of_them.append(Contender(label, argv, "of-" + one.name))
    return all_of_them


def pairs_round(one, turns):
    return float(one.workers[0].ask(f"{one.verb} {one.key} {turns}").split()[1])


def race_round(one, seconds):
    """All its workers at once: how often they had the lock, and the slowest acquire in ms."""
    for worker in one.workers:
        worker.send(f"race {one.key}-race {seconds} {PAUSE_MS}")
    said = [worker.answer(seconds + RACES_WITHIN_S).split() for worker in one.workers]
    return sum(int(words[1]) for words in said), max(int(words[2]) for words in said) / 1000


def by_turns(all_of_them, number):
    """Another one goes first in each round, so that no place is better than another."""
    first = number % len(all_of_them)
    return all_of_them[first:] + all_of_them[:first]


def measure(options, clients):
    with tempfile.TemporaryDirectory(prefix="holdfast-interop-") as folder, \
            Servers(1, folder) as servers, contextlib.ExitStack() as running:
        them = contenders(options, clients, servers)
        for one in them:
            print(f"== starting {one.label}", flush=True)
            one.workers = [running.enter_context(Party(one.argv, folder))
                           for _ in range(WORKERS if one.races else 1)]
        racing = [one for one in them if one.races]
        for one in them:
            pairs_round(one, WARM_UP_TURNS)
        for one in racing:
            race_round(one, WARM_UP_RACE_S)
        for number in range(ROUNDS):
            print(f"== round {number + 1} of {ROUNDS}", flush=True)
            for turn in range(PASSES):
                for one in by_turns(them, number + turn):
                    one.pair_us.append(pairs_round(one, TURNS))
            for one in by_turns(racing, number):
                had, slowest = race_round(one, RACE_S)
                one.rates.append(had / RACE_S)
                one.slowest_ms.append(slowest)
    return them


def redis_version():
    said = subprocess.run(["redis-server", "--version"], stdout=subprocess.PIPE, text=True,
                          check=True).stdout
    return re.search(r"v=(\S+)", said).group(1)


def where():
    return (f"{os.cpu_count()} cores shared by server and clients, Redis {redis_version()} on "
            f"loopback TCP, {datetime.date.today()}, load average {LOAD_AT_START:.1f} before")


def ms(value):
    if value >= RACE_WAIT_MS:
        return f"over {RACE_WAIT_MS // 1000} s"
    return f"{value:,.0f} ms" if value >= 10 else f"{value:.1f} ms"


def table(them):
    """In Markdown, for docs as well as for a terminal."""
    us = them[0]
    rows = [("client", "lock + unlock, one worker", "÷", f"{WORKERS} workers on one lock", "÷",
             "slowest acquire"), ("---", "---:", "---:", "---:", "---:", "---:")]
    for one in them:
        row = [one.label, f"{one.pairs():,.0f}/s", f"{one.pairs() / us.pairs():.2f}"]
        if one.races:
            row += [f"{one.rate():,.0f}/s", f"{one.rate() / us.rate():.2f}", ms(one.slowest())]
        rows.append(tuple(row + [""] * (6 - len(row))))
    widths = [max(len(row[i]) for row in rows) for i in range(6)]
    lines = []
    for number, row in enumerate(rows):
        cells = [cell.ljust(width) if i == 0 else cell.rjust(width)
                 for i, (cell, width) in enumerate(zip(row, widths))]
        if number == 1:
            cells = ["-" * width if i == 0 else "-" * (width - 1) + ":"
                     for i, width in enumerate(widths)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def notes():
    return (f"Medians of {ROUNDS} rounds in which all took turns; {where()}. ÷: divided by "
            "Holdfast's mutex in the first row.\nWorkers are processes: each holds the lock for "
            f"{PAUSE_MS} ms, then leaves it alone for {PAUSE_MS} ms. Clients that poll\ntry every "
            "10 ms here; the pauses that most of them come with are longer.")


def picture_of(them):
    racing = [one for one in them if one.races]
    return picture(
        [Panel("One worker: lock + unlock, pairs a second (more is better)",
               [Bar(one.label, one.pairs(), f"{one.pairs():,.0f}", one.is_ours) for one in them]),
         Panel(f"{WORKERS} workers, one lock, held for {PAUSE_MS} ms: acquisitions a second "
               "(more is better)",
               [Bar(one.label, one.rate(), f"{one.rate():,.0f} · slowest {ms(one.slowest())}",
                    one.is_ours) for one in racing])],
        [f"./dev interop --bench: medians of {ROUNDS} rounds in which all took turns;",
         where() + "."])
