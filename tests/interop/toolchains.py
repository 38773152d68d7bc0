"""Fetching the clients by their languages' own tools, and building the adapters."""

import hashlib
import os
import shutil
import subprocess

from ensembles import ZOOKEEPER_JAR

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


class Missing(Exception):
    """This language's clients cannot be run here, and why."""


def copy(folder, names, to):
    os.makedirs(to, exist_ok=True)
    for name in names:
        target = os.path.join(to, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy(os.path.join(HERE, folder, name), target)


def run(words, folder, **variables):
    done = subprocess.run(words, cwd=folder, env={**os.environ, **variables}, text=True,
                          errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    if done.returncode != 0:
        last = " / ".join(line for line in done.stdout.split("\n")[-6:] if line)
        raise Missing(f"`{' '.join(words[:3])}` failed: {last}")


def java(to):
    copy("redisson", ["pom.xml", "Adapter.java"], to)
    run(["mvn", "-q", "-B", f"-Dmaven.repo.local={to}/repository", "dependency:copy-dependencies",
         f"-DoutputDirectory={to}/lib"], to)
    run(["javac", "-cp", "lib/*", "-d", "classes", "Adapter.java"], to)
    return ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-Xmx256m", "-cp",
            f"{to}/classes:{to}/lib/*", "Adapter"]


def curator(to):
    copy("curator", ["pom.xml", "CuratorAdapter.java"], to)
    if not os.path.exists(ZOOKEEPER_JAR):
        raise Missing(f"there is no {ZOOKEEPER_JAR}: the package zookeeper")
    run(["mvn", "-q", "-B", f"-Dmaven.repo.local={to}/repository", "dependency:copy-dependencies",
         f"-DoutputDirectory={to}/lib"], to)
    run(["javac", "-cp", "lib/*", "-d", "classes", "CuratorAdapter.java"], to)
    return ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-Xmx128m", "-cp",
            f"{to}/classes:{to}/lib/*", "CuratorAdapter"]


def go(to, folder="go"):
    copy(folder, ["go.mod", "go.sum", "main.go"], to)
    run(["go", "build", "-o", "adapter", "."], to, GOMODCACHE=f"{to}/modules",
        GOFLAGS="-mod=readonly -modcacherw -buildvcs=false")
    return [f"{to}/adapter"]


def etcd(to):
    return go(to, "etcd")


def node(to):
    copy("node", ["package.json", "package-lock.json", "adapter.js"], to)
    run(["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"], to)
    return ["node", f"{to}/adapter.js"]


def python(to):
    copy("python", ["requirements.txt", "adapter.py"], to)
    run(["python3", "-m", "venv", "venv"], to)
    run(["venv/bin/pip", "install", "-q", "-r", "requirements.txt"], to)
    return [f"{to}/venv/bin/python3", f"{to}/adapter.py"]


def rust(to):
    copy("rust", ["Cargo.toml", "Cargo.lock", "src/main.rs"], to)
    run(["cargo", "build", "--release", "--locked", "--quiet"], to, CARGO_TARGET_DIR=f"{to}/target")
    return [f"{to}/target/release/holdfast-interop-rust"]


TOOLS = {
    "java": (java, ("java", "javac", "mvn"), "redisson"),
    "curator": (curator, ("java", "javac", "mvn"), "curator"),
    "go": (go, ("go",), "go"),
    "etcd": (etcd, ("go", "etcd", "etcdctl"), "etcd"),
    "node": (node, ("node", "npm"), "node"),
    "python": (python, ("python3",), "python"),
    "rust": (rust, ("cargo",), "rust"),
}


def fingerprint(folder):
    """Of everything that goes into an adapter."""
    digest = hashlib.sha256()
    for home, _, names in sorted(os.walk(os.path.join(HERE, folder))):
        for name in sorted(names):
            with open(os.path.join(home, name), "rb") as file:
                digest.update(name.encode() + b"\0" + file.read())
    return digest.hexdigest()


def prepare(kind, cache):
    """How to start this toolchain's adapter. Fetches and builds it if it is not there."""
    make, tools, folder = TOOLS[kind]
    for tool in tools:
        if not shutil.which(tool):
            raise Missing(f"there is no {tool} here")
    to = os.path.abspath(os.path.join(cache, kind))
    stamp = os.path.join(to, "made-of")
    wanted = f"{fingerprint(folder)} in {to}"  # commands hold the path
    if os.path.exists(stamp):
        with open(stamp) as file:
            made = file.read().split("\n")
        if made[0] == wanted:
            return made[1:]
    print(f"== fetching and building what the {kind} clients need, into {to}: minutes, perhaps",
          flush=True)
    command = make(to)
    with open(stamp, "w") as file:
        file.write("\n".join([wanted] + command))
    return command
