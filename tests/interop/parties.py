"""Servers and the programs that contend, all of which end with the suite."""

import ctypes
import os
import select
import signal
import socket
import subprocess
import time

PR_SET_PDEATHSIG = 1
STARTS_WITHIN_S = 30


class Trouble(Exception):
    pass


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Servers:
    """Private redis-servers on the loopback address, without persistence."""

    def __init__(self, count, folder):
        self.ports = []
        self.processes = []
        for number in range(count):
            home = os.path.join(folder, f"redis-{time.monotonic_ns()}-{number}")
            os.mkdir(home)
            port = free_port()
            self.ports.append(port)
            self.processes.append(subprocess.Popen(
                ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "",
                 "--appendonly", "no", "--dir", home, "--logfile", "redis.log"],
                stdout=subprocess.DEVNULL, preexec_fn=die_with_parent))

    def __enter__(self):
        until = time.monotonic() + STARTS_WITHIN_S
        for port in self.ports:
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    if time.monotonic() > until:
                        self.stop()
                        raise Trouble("redis-server does not start") from None
                    time.sleep(0.02)
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        for one in self.processes:
            one.kill()
            one.wait()

    def ask(self, *words):
        """One command to the first of them; the first line of what it says."""
        text = f"*{len(words)}\r\n" + "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
        with socket.create_connection(("127.0.0.1", self.ports[0]), 5) as link:
            link.sendall(text.encode())
            return link.makefile().readline().strip()

    def addresses(self):
        return ",".join(f"127.0.0.1:{port}" for port in self.ports)

    def url(self):
        scheme = "redis" if len(self.ports) == 1 else "redlock"
        # On a quorum every lock is left free for a moment after each release, so no option is due.
        query = "?foreign=share" if len(self.ports) == 1 else "?node_timeout=1000"
        return f"{scheme}://{self.addresses()}{query}"


def ours(programs, kind, url):
    return [os.path.join(programs, "tests", "interop_adapter"), kind, url]


class Party:
    """One program that speaks the line protocol."""

    def __init__(self, argv, folder):
        self.name = " ".join(argv[:3])
        self.errors = os.path.join(folder, f"party-{time.monotonic_ns()}.err")
        with open(self.errors, "wb") as errors:
            self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=errors, preexec_fn=die_with_parent)
        self.buffer = b""
        self.is_ready = False

    def __enter__(self):
        self.ready()
        return self

    def __exit__(self, *_):
        self.kill()

    def ready(self):
        if not self.is_ready and self.line(STARTS_WITHIN_S) != "ready":
            raise Trouble(f"{self.name} did not start: {self.last_errors()}")
        self.is_ready = True
        return self

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def last_errors(self):
        with open(self.errors, errors="replace") as file:
            return " / ".join(file.read().split("\n")[-8:])

    def line(self, within):
        until = time.monotonic() + within
        while b"\n" not in self.buffer:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise Trouble(f"{self.name} does not answer: {self.last_errors()}")
            got = os.read(self.process.stdout.fileno(), 65536)
            if not got:
                raise Trouble(f"{self.name} has ended: {self.last_errors()}")
            self.buffer += got
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line.decode()

    def send(self, text):
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()

    def answer(self, within=60):
        said = self.line(within)
        if said.startswith("error"):
            raise Trouble(f"{self.name}: {said}")
        return said

    def ask(self, text, within=60):
        self.send(text)
        return self.answer(within)
