// Node's lock clients behind the suite's line protocol: see tests/interop/README.md.
// usage: node adapter.js redlock|redis-semaphore|redlock-universal HOST:PORT[,HOST:PORT…]
"use strict";

const fs = require("fs");
const readline = require("readline");
const Redis = require("ioredis");

const kind = process.argv[2];
const servers = process.argv[3].split(",").map((one) => {
  const [host, port] = one.split(":");
  return new Redis({ host, port: Number(port), maxRetriesPerRequest: 1 });
});
servers.forEach((one) => one.on("error", () => {}));
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const retryMs = 10;
const raceWaitMs = 10000;

// Each has lock(name, ttl, wait, renew), which is true or false, unlock() and extend(ttl).
const lockers = {
  redlock() {
    const { default: Redlock, ExecutionError } = require("redlock");
    const redlock = new Redlock(servers, { retryDelay: retryMs, retryJitter: retryMs });
    redlock.on("error", () => {});
    let held;
    const refused = (problem) => {
      if (problem instanceof ExecutionError) return true;
      throw problem;
    };
    return {
      async lock(name, ttl, wait) {
        try {
          const retryCount = Math.ceil(wait / retryMs);
          held = await redlock.acquire([name], ttl, { retryCount });
          return true;
        } catch (problem) {
          return !refused(problem);
        }
      },
      async unlock() {
        try {
          await held.release();
          return "ok";
        } catch (problem) {
          return refused(problem) && "lost";
        }
      },
      async extend(ttl) {
        try {
          held = await held.extend(ttl);
          return "ok";
        } catch (problem) {
          return refused(problem) && "lost";
        }
      },
    };
  },

  "redis-semaphore"() {
    const { Mutex, RedlockMutex } = require("redis-semaphore");
    let held;
    let lost = false;
    return {
      async lock(name, ttl, wait, renew) {
        lost = false;
        const options = {
          lockTimeout: ttl,
          acquireTimeout: wait || 1000, // one attempt may take its time
          acquireAttemptsLimit: wait > 0 ? Number.POSITIVE_INFINITY : 1,
          retryInterval: retryMs,
          onLockLost: () => {
            lost = true;
          },
        };
        if (!renew) options.refreshInterval = 0;
        held =
          servers.length > 1
            ? new RedlockMutex(servers, name, options)
            : new Mutex(servers[0], name, options);
        return held.tryAcquire();
      },
      async unlock() {
        await held.release(); // says nothing of a loss
        return lost ? "lost" : "ok";
      },
      async extend() {
        return lost ? "lost" : "ok"; // it extends by itself
      },
    };
  },

  "redlock-universal"() {
    const { createLock, createRedlock, IoredisAdapter } = require("redlock-universal");
    const adapters = servers.map((one) => new IoredisAdapter(one));
    let lock;
    let held;
    return {
      async lock(name, ttl, wait) {
        const options = {
          key: name,
          ttl,
          retryAttempts: Math.ceil(wait / retryMs),
          retryDelay: retryMs,
        };
        lock =
          adapters.length > 1
            ? createRedlock({ adapters, ...options })
            : createLock({ adapter: adapters[0], ...options });
        try {
          held = await lock.acquire();
          return true;
        } catch (problem) {
          if (problem.name === "LockAcquisitionError") return false;
          throw problem;
        }
      },
      async unlock() {
        return (await lock.release(held)) ? "ok" : "lost";
      },
      async extend(ttl) {
        return (await lock.extend(held, ttl)) ? "ok" : "lost";
      },
    };
  },
};

async function turn(counter, ledger, who) {
  fs.writeSync(ledger, `enter ${who}\n`);
  const value = Number(fs.readFileSync(counter, "utf8") || 0);
  await pause(1);
  fs.writeFileSync(counter, String(value + 1));
  fs.writeSync(ledger, `leave ${who}\n`);
}

async function count(locker, [name, ttl, wait, turns, seconds, counter, path, who]) {
  const ledger = fs.openSync(path, "a");
  const until = Date.now() + Number(seconds) * 1000;
  let done = 0;
  while (done < Number(turns) && Date.now() < until) {
    if (name !== "-" && !(await locker.lock(name, Number(ttl), Number(wait), false))) continue;
    await turn(counter, ledger, who);
    if (name !== "-") await locker.unlock();
    ++done;
  }
  fs.closeSync(ledger);
  return `ok ${done}`;
}

async function bench(locker, name, turns) {
  const began = process.hrtime.bigint();
  for (let i = 0; i < turns; ++i) {
    if (!(await locker.lock(name, 30000, 0, false))) return "error the lock was not free";
    await locker.unlock();
  }
  return `ok ${(Number(process.hrtime.bigint() - began) / 1000 / turns).toFixed(1)}`;
}

async function race(locker, name, seconds, pauseMs) {
  const until = Date.now() + seconds * 1000;
  let done = 0;
  let slowest = 0n;
  while (Date.now() < until) {
    const asked = process.hrtime.bigint();
    const got = await locker.lock(name, 30000, raceWaitMs, false);
    const took = process.hrtime.bigint() - asked;
    if (took > slowest) slowest = took;
    if (!got) continue;
    await pause(pauseMs);
    await locker.unlock();
    await pause(pauseMs);
    ++done;
  }
  return `ok ${done} ${slowest / 1000n}`;
}

async function answer(locker, words) {
  switch (words[0]) {
    case "lock": {
      const [, name, ttl, wait, renew] = words;
      const got = await locker.lock(name, Number(ttl), Number(wait), renew === "renew");
      return got ? "ok" : "busy";
    }
    case "unlock":
      return locker.unlock();
    case "extend":
      return locker.extend(Number(words[1]));
    case "count":
      return count(locker, words.slice(1));
    case "bench":
      return bench(locker, words[1], Number(words[2]));
    case "race":
      return race(locker, words[1], Number(words[2]), Number(words[3]));
    default:
      return "error no such verb";
  }
}

async function main() {
  const locker = lockers[kind]();
  await Promise.all(servers.map((one) => one.ping()));
  console.log("ready");
  for await (const line of readline.createInterface({ input: process.stdin })) {
    let said;
    try {
      said = await answer(locker, line.split(" "));
    } catch (problem) {
      said = "error " + String(problem).replace(/\n/g, " ");
    }
    console.log(said);
  }
  process.exit(0);
}

main();
