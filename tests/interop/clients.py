"""The clients: how they are started, and what each can do."""

from dataclasses import dataclass

from sessions import SESSION_MS


@dataclass
class Client:
    name: str
    toolchain: str
    arguments: tuple = ()
    # Where its version is said: a file here, and a pattern. Those that have one are compared in
    # speed: one type of each client.
    pinned: tuple = ()
    shown: str = ""  # what people call it, if that is not its name here
    ours: str = "mutex"  # what of Holdfast's shares its lock
    store: str = "redis"
    prefix: str = ""  # what it puts before a lock's name
    renews: bool = False  # by itself, until it unlocks
    extends: bool = True  # when it is asked to
    tells_loss: bool = True  # an unlock says that the lock had ended
    notifies: bool = False  # a waiter is told of an unlock
    reenters: bool = False
    counts_tokens: bool = False
    locks: bool = True  # it can be held by one alone
    leases: bool = True  # what is held ends by itself
    sessions: bool = False  # what is held lasts as long as the client's session
    queues: bool = False  # waiters are served in the order in which they came
    shares: bool = False  # readers hold it together
    votes: bool = False  # it has a form for independent nodes
    command: list = None  # how its adapter is started, once it is there

    def argv(self, servers, watchdog_ms=30000):
        words = self.command + list(self.arguments) + [servers.addresses()]
        if self.toolchain == "curator":
            return words + [str(SESSION_MS)]
        return words + [str(watchdog_ms)] if self.toolchain == "java" else words

    def key(self, name):
        """What Holdfast calls the lock that this client calls `name`."""
        return self.prefix + name


CLIENTS = (
    Client("redisson", "java", ("lock",),
           ("redisson/pom.xml", r"<artifactId>redisson</artifactId>\s*<version>([^<]+)"),
           "Redisson", ours="rlock", renews=True, notifies=True, reenters=True),
    Client("redisson-fenced", "java", ("fenced",), ours="rfenced", renews=True, notifies=True,
           counts_tokens=True),
    Client("redisson-fair", "java", ("fair",), ours="rfair", renews=True, notifies=True,
           reenters=True, queues=True),
    Client("redisson-rw", "java", ("write",), ours="rwrite", renews=True, notifies=True,
           reenters=True, shares=True),
    Client("redisson-permits", "java", ("permits",), ours="permits", notifies=True),
    Client("redisson-semaphore", "java", ("semaphore",), ours="rsemaphore", leases=False),
    Client("redisson-latch", "java", ("latch",), ours="rlatch", locks=False, leases=False),
    Client("redsync", "go", ("redsync",), ("go/go.mod", r"redsync/v4 v(\S+)"), votes=True),
    Client("redislock", "go", ("redislock",), ("go/go.mod", r"bsm/redislock v(\S+)"),
           "bsm/redislock"),
    Client("rueidislock", "go", ("rueidislock",), ("go/go.mod", r"redis/rueidis v(\S+)"),
           prefix="mutex:0:", renews=True, extends=False),
    Client("redlock", "node", ("redlock",), ("node/package.json", r'"redlock": "([^"]+)'),
           "node-redlock", votes=True),
    Client("redis-semaphore", "node", ("redis-semaphore",),
           ("node/package.json", r'"redis-semaphore": "([^"]+)'), prefix="mutex:", renews=True,
           extends=False, tells_loss=False, votes=True),
    Client("redlock-universal", "node", ("redlock-universal",),
           ("node/package.json", r'"redlock-universal": "([^"]+)'), votes=True),
    Client("redis-py", "python", ("redis-py",), ("python/requirements.txt", r"redis==(\S+)")),
    Client("rslock", "rust", ("rslock",), ("rust/Cargo.toml", r'rslock = \{ version = "=([^"]+)'),
           tells_loss=False, votes=True),
    Client("curator", "curator", ("mutex",), store="zookeeper", notifies=True, leases=False,
           sessions=True, queues=True),
    Client("curator-rw", "curator", ("write",), ours="shared", store="zookeeper", notifies=True,
           leases=False, sessions=True, shares=True),
    Client("curator-semaphore", "curator", ("semaphore",), ours="semaphore", store="zookeeper",
           notifies=True, leases=False, sessions=True),
    Client("etcd-go", "etcd", ("mutex",), store="etcd", notifies=True, leases=False, sessions=True,
           queues=True),
    Client("etcdctl", "etcd", ("etcdctl",), store="etcd", notifies=True, leases=False,
           sessions=True, queues=True),
)
