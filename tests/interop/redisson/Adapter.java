// Redisson behind the suite's line protocol: see tests/interop/README.md.
// usage: java Adapter lock|fenced|fair|write|permits|semaphore|latch HOST:PORT WATCHDOG_MS

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** All commands run on one thread, which is the owner of what it locks. */
public final class Adapter {
  private static final long RACE_WAIT_MS = 10000;
  private final RedissonClient client;
  private final String kind;
  private final boolean fenced;
  private final boolean permits;
  private final boolean counts;
  private final boolean opens;
  private RLock held;
  private RPermitExpirableSemaphore semaphore;
  private String permit;
  private RSemaphore counted;

  private Adapter(RedissonClient client, String kind) {
    this.client = client;
    this.kind = kind;
    this.fenced = kind.equals("fenced");
    this.permits = kind.equals("permits");
    this.counts = kind.equals("semaphore");
    this.opens = kind.equals("latch");
  }

  private RLock named(String name) {
    switch (kind) {
      case "fenced":
        return client.getFencedLock(name);
      case "fair":
        return client.getFairLock(name);
      case "write":
        return client.getReadWriteLock(name).writeLock();
      default:
        return client.getLock(name);
    }
  }

  /** A lease of its own if it is not to be renewed, and the watchdog's if it is. */
  private String lock(String name, long ttl, long wait, boolean renew) throws Exception {
    if (counts) { // one, so that it is a lock, unless it was set
      counted = client.getSemaphore(name);
      counted.trySetPermits(1);
      return counted.tryAcquire(Duration.ofMillis(wait)) ? "ok" : "busy";
    }
    if (permits) { // one, so that it is a lock
      semaphore = client.getPermitExpirableSemaphore(name);
      semaphore.trySetPermits(1);
      permit = semaphore.tryAcquire(wait, ttl, TimeUnit.MILLISECONDS);
      return permit == null ? "busy" : "ok";
    }
    RLock lock = named(name);
    long lease = renew ? -1 : ttl;
    if (fenced && wait >= 0) {
      Long token = ((RFencedLock) lock).tryLockAndGetToken(wait, lease, TimeUnit.MILLISECONDS);
      if (token == null) {
        return "busy";
      }
      held = lock;
      return "ok " + token;
    }
    if (!lock.tryLock(wait, lease, TimeUnit.MILLISECONDS)) {
      return "busy";
    }
    held = lock;
    return "ok";
  }

  private RLock reader(String name) {
    return client.getReadWriteLock(name).readLock();
  }

  private String read(String name, long ttl, long wait, boolean renew) throws Exception {
    RLock lock = reader(name);
    if (!lock.tryLock(wait, renew ? -1 : ttl, TimeUnit.MILLISECONDS)) {
      return "busy";
    }
    held = lock;
    return "ok";
  }

  /** As Redisson's documentation has it: the writer takes the reader's side, then leaves its own. */
  private String downgrade(String name) {
    RLock lock = reader(name);
    lock.lock();
    held.unlock();
    held = lock;
    return "ok";
  }

  /** What a reader sees twice must be the same. */
  private String watch(String[] words) throws Exception {
    long until = System.nanoTime() + (long) (Double.parseDouble(words[4]) * 1e9);
    Path counter = Path.of(words[5]);
    long done = 0;
    while (System.nanoTime() < until) {
      if (!read(words[1], Long.parseLong(words[2]), Long.parseLong(words[3]), false).equals("ok")) {
        continue;
      }
      String before = Files.readString(counter).trim();
      Thread.sleep(2);
      if (before.isEmpty() || !before.equals(Files.readString(counter).trim())) {
        return "error a writer wrote while this one read";
      }
      unlock();
      ++done;
    }
    return "ok " + done;
  }

  private String unlock() {
    if (counts) {
      counted.release();
      return "ok";
    }
    if (permits) {
      return semaphore.tryRelease(permit) ? "ok" : "lost";
    }
    try {
      held.unlock();
      return "ok";
    } catch (IllegalMonitorStateException problem) {
      return "lost";
    }
  }

  private String count(String[] words) throws Exception {
    String name = words[1];
    long turns = Long.parseLong(words[4]);
    long until = System.nanoTime() + (long) (Double.parseDouble(words[5]) * 1e9);
    Path counter = Path.of(words[6]);
    Path ledger = Path.of(words[7]);
    byte[] enter = ("enter " + words[8] + "\n").getBytes(StandardCharsets.UTF_8);
    byte[] leave = ("leave " + words[8] + "\n").getBytes(StandardCharsets.UTF_8);
    long done = 0;
    while (done < turns && System.nanoTime() < until) {
      boolean locks = !name.equals("-");
      long ttl = Long.parseLong(words[2]);
      if (locks && !lock(name, ttl, Long.parseLong(words[3]), false).startsWith("ok")) {
        continue;
      }
      Files.write(ledger, enter, StandardOpenOption.APPEND);
      String text = Files.readString(counter).trim();
      long value = text.isEmpty() ? 0 : Long.parseLong(text);
      Thread.sleep(1);
      Files.writeString(counter, Long.toString(value + 1));
      Files.write(ledger, leave, StandardOpenOption.APPEND);
      if (locks) {
        unlock();
      }
      ++done;
    }
    return "ok " + done;
  }

  private String bench(String name, long turns) throws Exception {
    long began = System.nanoTime();
    for (long i = 0; i < turns; ++i) {
      if (!lock(name, 30000, 0, !permits && !counts).startsWith("ok")) {
        return "error the lock was not free";
      }
      unlock();
    }
    return String.format("ok %.1f", (System.nanoTime() - began) / 1000.0 / turns);
  }

  private String askSemaphore(String[] words) throws Exception {
    RSemaphore of = client.getSemaphore(words[1]);
    switch (words[0]) {
      case "set":
        return "ok " + of.trySetPermits(Integer.parseInt(words[2]));
      case "value":
        return "ok " + of.availablePermits();
      case "take":
        Duration wait = Duration.ofMillis(Long.parseLong(words[3]));
        return of.tryAcquire(Integer.parseInt(words[2]), wait) ? "ok" : "busy";
      case "give":
        of.release(Integer.parseInt(words[2]));
        return "ok";
      case "add":
        of.addPermits(Integer.parseInt(words[2]));
        return "ok";
      default: // drain
        return "ok " + of.drainPermits();
    }
  }

  private String askLatch(String[] words) throws Exception {
    RCountDownLatch of = client.getCountDownLatch(words[1]);
    switch (words[0]) {
      case "set":
        return "ok " + of.trySetCount(Long.parseLong(words[2]));
      case "value":
        return "ok " + of.getCount();
      case "down":
        of.countDown();
        return "ok";
      default: // await
        return of.await(Long.parseLong(words[2]), TimeUnit.MILLISECONDS) ? "ok" : "busy";
    }
  }

  private String race(String name, double seconds, long pause) throws Exception {
    long until = System.nanoTime() + (long) (seconds * 1e9);
    long done = 0;
    long slowest = 0;
    while (System.nanoTime() < until) {
      long asked = System.nanoTime();
      boolean got = lock(name, 30000, RACE_WAIT_MS, !permits && !counts).startsWith("ok");
      slowest = Math.max(slowest, System.nanoTime() - asked);
      if (!got) {
        continue;
      }
      Thread.sleep(pause);
      unlock();
      Thread.sleep(pause);
      ++done;
    }
    return "ok " + done + " " + slowest / 1000;
  }

  private String answer(String[] words) throws Exception {
    switch (words[0]) {
      case "set":
      case "value":
      case "take":
      case "give":
      case "add":
      case "drain":
      case "down":
      case "await":
        return opens ? askLatch(words) : askSemaphore(words);
      case "lock":
        return lock(
            words[1], Long.parseLong(words[2]), Long.parseLong(words[3]), words[4].equals("renew"));
      case "unlock":
        return unlock();
      case "extend": // the watchdog does
        if (permits) {
          long ttl = Long.parseLong(words[1]);
          return semaphore.updateLeaseTime(permit, ttl, TimeUnit.MILLISECONDS) ? "ok" : "lost";
        }
        return held.isHeldByCurrentThread() ? "ok" : "lost";
      case "read":
        return read(
            words[1], Long.parseLong(words[2]), Long.parseLong(words[3]), words[4].equals("renew"));
      case "downgrade":
        return downgrade(words[1]);
      case "watch":
        return watch(words);
      case "holds":
        return "ok " + held.getHoldCount();
      case "force":
        return "ok " + named(words[1]).forceUnlock();
      case "count":
        return count(words);
      case "bench":
        return bench(words[1], Long.parseLong(words[2]));
      case "race":
        return race(words[1], Double.parseDouble(words[2]), Long.parseLong(words[3]));
      default:
        return "error no such verb";
    }
  }

  public static void main(String[] given) throws Exception {
    Config config = new Config();
    config.setLockWatchdogTimeout(Long.parseLong(given[2]));
    config
        .useSingleServer()
        .setAddress("redis://" + given[1])
        .setConnectionMinimumIdleSize(2)
        .setConnectionPoolSize(8);
    RedissonClient client = Redisson.create(config);
    Adapter adapter = new Adapter(client, given[0]);
    System.out.println("ready");
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String said;
      try {
        said = adapter.answer(line.split(" "));
      } catch (Exception problem) {
        said = "error " + problem.toString().replace('\n', ' ');
      }
      System.out.println(said);
      System.out.flush();
    }
    System.exit(0);
  }
}
