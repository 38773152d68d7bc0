// rslock behind the suite's line protocol: see tests/interop/README.md.
// usage: adapter rslock HOST:PORT[,HOST:PORT…]
use rslock::{Lock, LockError, LockManager};
use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, Write};
use std::time::{Duration, Instant};

const RETRY: Duration = Duration::from_millis(10);
const RACE_WAIT: Duration = Duration::from_secs(10);

struct Locker {
    manager: LockManager,
    held: Option<Lock>,
}

fn milliseconds(text: &str) -> Duration {
    Duration::from_millis(text.parse().unwrap_or(0))
}

impl Locker {
    async fn lock(&mut self, name: &str, ttl: Duration, wait: Duration) -> Result<bool, LockError> {
        let tries = (wait.as_millis() / RETRY.as_millis()) as u32 + 1;
        self.manager.set_retry(tries, RETRY);
        match self.manager.lock(name.as_bytes(), ttl).await {
            Ok(lock) => {
                self.held = Some(lock);
                Ok(true)
            }
            Err(LockError::Unavailable) => Ok(false),
            Err(problem) => Err(problem),
        }
    }

    async fn unlock(&mut self) -> &'static str {
        if let Some(lock) = self.held.take() {
            self.manager.unlock(&lock).await; // says nothing of a loss
        }
        "ok"
    }

    async fn extend(&mut self, ttl: Duration) -> &'static str {
        let held = self.held.as_ref().expect("a lock is held");
        match self.manager.extend(held, ttl).await {
            Ok(_) => "ok",
            Err(_) => "lost",
        }
    }

    async fn count(&mut self, words: &[&str]) -> Result<String, Box<dyn std::error::Error>> {
        let (name, ttl, wait) = (words[0], milliseconds(words[1]), milliseconds(words[2]));
        let turns: u64 = words[3].parse()?;
        let until = Instant::now() + Duration::from_secs_f64(words[4].parse()?);
        let (counter, who) = (words[5], words[7]);
        let mut ledger = OpenOptions::new().append(true).open(words[6])?;
        let mut done = 0;
        while done < turns && Instant::now() < until {
            if name != "-" && !self.lock(name, ttl, wait).await? {
                continue;
            }
            ledger.write_all(format!("enter {who}\n").as_bytes())?;
            let value: u64 = fs::read_to_string(counter)?.parse().unwrap_or(0);
            tokio::time::sleep(Duration::from_millis(1)).await;
            fs::write(counter, (value + 1).to_string())?;
            ledger.write_all(format!("leave {who}\n").as_bytes())?;
            if name != "-" {
                self.unlock().await;
            }
            done += 1;
        }
        Ok(format!("ok {done}"))
    }

    async fn answer(&mut self, words: &[&str]) -> Result<String, Box<dyn std::error::Error>> {
        match words[0] {
            "lock" => {
                let got = self.lock(words[1], milliseconds(words[2]), milliseconds(words[3]));
                Ok(if got.await? { "ok" } else { "busy" }.to_string())
            }
            "unlock" => Ok(self.unlock().await.to_string()),
            "extend" => Ok(self.extend(milliseconds(words[1])).await.to_string()),
            "count" => self.count(&words[1..]).await,
            "bench" => {
                let turns: u32 = words[2].parse()?;
                let began = Instant::now();
                for _ in 0..turns {
                    if !self.lock(words[1], Duration::from_secs(30), Duration::ZERO).await? {
                        return Err("the lock was not free".into());
                    }
                    self.unlock().await;
                }
                Ok(format!("ok {:.1}", began.elapsed().as_micros() as f64 / f64::from(turns)))
            }
            "race" => {
                let until = Instant::now() + Duration::from_secs_f64(words[2].parse()?);
                let pause = milliseconds(words[3]);
                let (mut done, mut slowest) = (0, Duration::ZERO);
                while Instant::now() < until {
                    let asked = Instant::now();
                    let got = self.lock(words[1], Duration::from_secs(30), RACE_WAIT).await?;
                    slowest = slowest.max(asked.elapsed());
                    if !got {
                        continue;
                    }
                    tokio::time::sleep(pause).await;
                    self.unlock().await;
                    tokio::time::sleep(pause).await;
                    done += 1;
                }
                Ok(format!("ok {done} {}", slowest.as_micros()))
            }
            _ => Ok("error no such verb".to_string()),
        }
    }
}

#[tokio::main]
async fn main() {
    let given = std::env::args().nth(2).expect("servers");
    let servers: Vec<String> = given.split(',').map(|one| format!("redis://{one}/")).collect();
    let manager = LockManager::new(servers);
    let mut locker = Locker { manager, held: None };
    println!("ready");
    for line in io::stdin().lock().lines() {
        let line = line.expect("a line");
        let words: Vec<&str> = line.split(' ').collect();
        let said = match locker.answer(&words).await {
            Ok(said) => said,
            Err(problem) => format!("error {problem}").replace('\n', " "),
        };
        println!("{said}");
    }
}
