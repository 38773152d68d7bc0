// Curator behind the suite's line protocol: see tests/interop/README.md.
// usage: java CuratorAdapter mutex|write|semaphore HOST:PORT[,HOST:PORT…] SESSION_MS

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.RetryForever;

/** All commands run on one thread, which is the owner of what it locks. Sessions keep locks. */
public final class CuratorAdapter {
  private final CuratorFramework client;
  private final String kind;
  private InterProcessLock held;
  private InterProcessReadWriteLock both; // the writer of one may become its reader
  private InterProcessSemaphoreV2 semaphore;
  private Lease lease;

  private CuratorAdapter(CuratorFramework client, String kind) {
    this.client = client;
    this.kind = kind;
  }

  private String lock(String name, long wait) throws Exception {
    if (kind.equals("semaphore")) { // of one permit, so that it is a lock
      semaphore = new InterProcessSemaphoreV2(client, "/" + name, 1);
      lease = semaphore.acquire(wait, TimeUnit.MILLISECONDS);
      return lease == null ? "busy" : "ok";
    }
    if (kind.equals("write")) {
      both = new InterProcessReadWriteLock(client, "/" + name);
      return take(both.writeLock(), wait);
    }
    return take(new InterProcessMutex(client, "/" + name), wait);
  }

  private String read(String name, long wait) throws Exception {
    return take(new InterProcessReadWriteLock(client, "/" + name).readLock(), wait);
  }

  private String take(InterProcessLock lock, long wait) throws Exception {
    if (!lock.acquire(wait, TimeUnit.MILLISECONDS)) {
      return "busy";
    }
    held = lock;
    return "ok";
  }

  private String unlock() throws Exception {
    if (lease != null) {
      semaphore.returnLease(lease);
      lease = null;
      return "ok";
    }
    try {
      held.release();
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
      if (!lock(name, Long.parseLong(words[3])).equals("ok")) {
        continue;
      }
      Files.write(ledger, enter, StandardOpenOption.APPEND);
      String text = Files.readString(counter).trim();
      long value = text.isEmpty() ? 0 : Long.parseLong(text);
      Thread.sleep(1);
      Files.writeString(counter, Long.toString(value + 1));
      Files.write(ledger, leave, StandardOpenOption.APPEND);
      unlock();
      ++done;
    }
    return "ok " + done;
  }

  /** What a reader sees twice must be the same. */
  private String watch(String[] words) throws Exception {
    long until = System.nanoTime() + (long) (Double.parseDouble(words[4]) * 1e9);
    Path counter = Path.of(words[5]);
    long done = 0;
    while (System.nanoTime() < until) {
      if (!read(words[1], Long.parseLong(words[3])).equals("ok")) {
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

  /** As Curator's documentation has it: the writer takes the reader's side, then leaves its own. */
  private String downgrade() throws Exception {
    both.readLock().acquire();
    held.release();
    held = both.readLock();
    return "ok";
  }

  private String answer(String[] words) throws Exception {
    switch (words[0]) {
      case "lock":
        return lock(words[1], Long.parseLong(words[3]));
      case "read":
        return read(words[1], Long.parseLong(words[3]));
      case "downgrade":
        return downgrade();
      case "unlock":
        return unlock();
      case "count":
        return count(words);
      case "watch":
        return watch(words);
      default:
        return "error no such verb";
    }
  }

  public static void main(String[] given) throws Exception {
    int session = Integer.parseInt(given[2]);
    CuratorFramework client =
        CuratorFrameworkFactory.newClient(given[1], session, session, new RetryForever(100));
    client.start();
    if (!client.blockUntilConnected(20, TimeUnit.SECONDS)) {
      throw new IllegalStateException("no ZooKeeper at " + given[1]);
    }
    CuratorAdapter adapter = new CuratorAdapter(client, given[0]);
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
