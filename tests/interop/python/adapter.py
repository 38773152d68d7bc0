"""redis-py's Lock behind the suite's line protocol: see tests/interop/README.md.

usage: adapter.py redis-py HOST:PORT
"""

import os
import sys
import time

import redis
from redis.exceptions import LockError


RACE_WAIT_MS = 10000


class Locker:
    def __init__(self, server):
        host, port = server.split(":")
        self.redis = redis.Redis(host=host, port=int(port))
        self.held = None

    def lock(self, name, ttl_ms, wait_ms):
        lock = self.redis.lock(name, timeout=ttl_ms / 1000, sleep=0.01, thread_local=False)
        got = lock.acquire(blocking=wait_ms > 0, blocking_timeout=wait_ms / 1000 or None)
        if got:
            self.held = lock
        return got

    def unlock(self):
        lock, self.held = self.held, None
        try:
            lock.release()
        except LockError:
            return "lost"
        return "ok"

    def extend(self, ttl_ms):
        try:
            self.held.extend(ttl_ms / 1000, replace_ttl=True)
        except LockError:
            return "lost"
        return "ok"


def turn(counter, ledger, who):
    """One turn of one holder: what is written shows whether it was alone."""
    os.write(ledger, f"enter {who}\n".encode())
    with open(counter) as file:
        value = int(file.read() or 0)
    time.sleep(0.001)
    with open(counter, "w") as file:
        file.write(str(value + 1))
    os.write(ledger, f"leave {who}\n".encode())


def count(locker, name, ttl, wait, turns, seconds, counter, path, who):
    ledger = os.open(path, os.O_WRONLY | os.O_APPEND)
    until = time.monotonic() + seconds
    done = 0
    while done < turns and time.monotonic() < until:
        if name != "-" and not locker.lock(name, ttl, wait):
            continue
        turn(counter, ledger, who)
        if name != "-":
            locker.unlock()
        done += 1
    os.close(ledger)
    return f"ok {done}"


def bench(locker, name, turns):
    began = time.monotonic()
    for _ in range(turns):
        if not locker.lock(name, 30000, 0):
            return "error the lock was not free"
        locker.unlock()
    return f"ok {(time.monotonic() - began) * 1e6 / turns:.1f}"


def race(locker, name, seconds, pause):
    until = time.monotonic() + seconds
    done, slowest = 0, 0.0
    while time.monotonic() < until:
        asked = time.monotonic()
        got = locker.lock(name, 30000, RACE_WAIT_MS)
        slowest = max(slowest, time.monotonic() - asked)
        if not got:
            continue
        time.sleep(pause)
        locker.unlock()
        time.sleep(pause)
        done += 1
    return f"ok {done} {slowest * 1e6:.0f}"


def answer(locker, words):
    verb = words[0]
    if verb == "lock":  # NAME TTL WAIT RENEW
        got = locker.lock(words[1], int(words[2]), int(words[3]))
        return "ok" if got else "busy"
    if verb == "unlock":
        return locker.unlock()
    if verb == "extend":
        return locker.extend(int(words[1]))
    if verb == "count":
        return count(locker, words[1], int(words[2]), int(words[3]), int(words[4]),
                     float(words[5]), *words[6:9])
    if verb == "bench":
        return bench(locker, words[1], int(words[2]))
    if verb == "race":
        return race(locker, words[1], float(words[2]), float(words[3]) / 1000)
    return "error no such verb"


def main():
    locker = Locker(sys.argv[2])
    print("ready", flush=True)
    for line in sys.stdin:
        words = line.split()
        try:
            said = answer(locker, words)
        except Exception as problem:  # whatever it is, the runner shows it
            said = "error " + repr(problem).replace("\n", " ")
        print(said, flush=True)


main()
