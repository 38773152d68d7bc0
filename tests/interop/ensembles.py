"""ZooKeeper and etcd: one server each, on the loopback address, that ends with the suite.

One server and not three: what is shown is that clients share locks, not that servers agree.
"""

import os
import socket
import subprocess
import time

from parties import STARTS_WITHIN_S, Trouble, die_with_parent, free_port

ZOOKEEPER_JAR = "/usr/share/java/zookeeper.jar"  # Debian's package zookeeper

# A tick is the least that a session is measured by: one of two seconds is ten of them.
ZOOKEEPER_CONFIG = """tickTime=200
minSessionTimeout=400
maxSessionTimeout=60000
dataDir={home}
clientPort={port}
clientPortAddress=127.0.0.1
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=ruok
"""


class OneServer:
    """Started when it is made, stopped when it is left."""

    def __init__(self, folder, kind):
        self.home = os.path.join(folder, f"{kind}-{time.monotonic_ns()}")
        os.mkdir(self.home)
        self.port = free_port()
        self.log = os.path.join(self.home, "log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log, cwd=self.home,
                                            preexec_fn=die_with_parent)

    def __enter__(self):
        until = time.monotonic() + STARTS_WITHIN_S
        while not self.answers():
            if time.monotonic() > until or self.process.poll() is not None:
                self.__exit__()
                with open(self.log, errors="replace") as log:
                    raise Trouble("the server does not start: " + log.read()[-500:])
            time.sleep(0.05)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def addresses(self):
        return f"127.0.0.1:{self.port}"

    def talk(self, request):
        """What it says to these bytes until it closes the connection."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as link:
                link.sendall(request)
                link.settimeout(1)
                said = b""
                while got := link.recv(4096):
                    said += got
                return said
        except OSError:
            return b""


class Zookeeper(OneServer):
    def __init__(self, _, folder):
        super().__init__(folder, "zookeeper")

    def command(self):
        config = os.path.join(self.home, "zoo.cfg")
        with open(config, "w") as file:
            file.write(ZOOKEEPER_CONFIG.format(home=self.home, port=self.port))
        return ["java", "-Xmx128m", "-Xshare:auto", "-XX:TieredStopAtLevel=1",
                "-Dzookeeper.forceSync=no", "-cp", ZOOKEEPER_JAR,
                "org.apache.zookeeper.server.quorum.QuorumPeerMain", config]

    def answers(self):
        return self.talk(b"ruok") == b"imok"

    def url(self):
        return f"zookeeper://{self.addresses()}"


class Etcd(OneServer):
    def __init__(self, _, folder):
        super().__init__(folder, "etcd")

    def command(self):
        client, peer = f"http://{self.addresses()}", f"http://127.0.0.1:{free_port()}"
        return ["etcd", "--name", "one", "--data-dir", os.path.join(self.home, "data"),
                "--listen-client-urls", client, "--advertise-client-urls", client,
                "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                "--initial-cluster", f"one={peer}", "--unsafe-no-fsync"]

    def answers(self):
        request = b"GET /health HTTP/1.0\r\n\r\n"
        return b'"health":"true"' in self.talk(request)

    def url(self):
        return f"etcd://{self.addresses()}"
