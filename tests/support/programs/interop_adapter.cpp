// Holdfast behind the line protocol of tests/interop: see its README.
//
// usage: interop_adapter KIND URL
//   KIND  mutex, shared (its writer) or semaphore (of one permit); or one of Redisson's: rlock,
//         rfenced, rfair, rwrite, permits, rsemaphore, rlatch
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <holdfast/holdfast.hpp>

namespace {

using holdfast::lease;
using std::chrono::milliseconds;
using words = std::vector<std::string>;

constexpr std::chrono::seconds race_wait{10};

class locker {
 public:
  locker(std::string kind, const std::string& url) : kind_{std::move(kind)}, client_{url} {}

  std::optional<lease> acquire(const std::string& name, milliseconds ttl, milliseconds wait,
                               bool renew) {
    const holdfast::lock_options how{.ttl = ttl, .renew = renew, .label = "interop"};
    if (kind_ == "mutex") return client_.mutex(name, how).try_acquire(wait);
    if (kind_ == "shared") return client_.shared_mutex(name, how).try_acquire(wait);
    if (kind_ == "semaphore") return client_.semaphore(name, 1, how).try_acquire(wait);
    if (kind_ == "permits") {
      return holdfast::redisson::rpermit_expirable_semaphore{client_, name, 1, how}.try_acquire(
          wait);
    }
    if (kind_ == "rwrite") {
      return read_write_lock(name, how).write_lock().try_acquire(wait);
    }
    return rlock(name, how).try_acquire(wait);
  }

  // Of a read/write lock.
  std::string read_write(const words& given) {
    const auto& verb = given.at(0);
    if (verb == "read") {
      const holdfast::lock_options how{.ttl = ms(given.at(2)), .renew = given.at(4) == "renew"};
      held_ = acquire_to_read(given.at(1), how, ms(given.at(3)));
      return held_ ? "ok" : "busy";
    }
    if (verb == "downgrade") {
      return verdict(kind_ == "shared" ? client_.shared_mutex(given.at(1)).downgrade(held_.value())
                                       : read_write_lock(given.at(1)).downgrade(held_.value()));
    }
    return watch(given);
  }

  std::string answer(const words& given) {
    const auto& verb = given.at(0);
    if (kind_ == "rlatch") return ask_latch(verb, given);
    if (kind_ == "rsemaphore") {
      if (const auto said = ask_semaphore(verb, given)) return *said;
    }
    if (verb == "lock") {
      held_ = acquire(given.at(1), ms(given.at(2)), ms(given.at(3)), given.at(4) == "renew");
      return held_ ? "ok " + to_string(held_->token()) : "busy";
    }
    if (verb == "unlock") return verdict(held_.value().release());
    if (verb == "extend") return verdict(held_.value().renew());
    if (verb == "held") return held_.value().held() ? "ok" : "lost";
    if (verb == "enter") {  // NAME TTL WAIT: as a thread does, again if it has it
      const holdfast::lock_options how{.ttl = ms(given.at(2))};
      if (kind_ == "rwrite") return enter(read_write_lock(given.at(1), how).write_lock(), given);
      return enter(rlock(given.at(1), how), given);
    }
    if (verb == "leave") return leave_();
    if (verb == "force") {
      const bool had = kind_ == "rwrite" ? read_write_lock(given.at(1)).force_unlock()
                                         : rlock(given.at(1)).force_unlock();
      return had ? "ok true" : "ok false";
    }
    if (verb == "read" || verb == "downgrade" || verb == "watch") return read_write(given);
    if (verb == "count") return count(given);
    if (verb == "bench" || verb == "bench-sent") {
      return timed(given.at(1), [&](auto lock) {
        return bench(std::move(lock), std::stoi(given.at(2)), verb == "bench");
      });
    }
    if (verb == "race") {
      const std::chrono::duration<double> most{std::stod(given.at(2))};
      const auto pause = ms(given.at(3));
      return timed(given.at(1), [&](auto lock) { return race(std::move(lock), most, pause); });
    }
    return "error no such verb";
  }

 private:
  std::optional<lease> acquire_to_read(const std::string& name, const holdfast::lock_options& how,
                                       milliseconds wait) {
    if (kind_ == "shared") return client_.shared_mutex(name, how).try_acquire_shared(wait);
    return read_write_lock(name, how).read_lock().try_acquire(wait);
  }

  // Of what is counted and has no lease.
  std::string ask_latch(const std::string& verb, const words& given) {
    holdfast::redisson::rcount_down_latch of{client_, given.at(1)};
    if (verb == "set") return truth(of.try_set_count(number(given.at(2))));
    if (verb == "value") return "ok " + std::to_string(of.count());
    if (verb == "down") return "ok " + std::to_string(of.count_down());
    if (verb == "await") return of.wait(ms(given.at(2))) ? "ok" : "busy";
    return "error no such verb";
  }
  std::optional<std::string> ask_semaphore(const std::string& verb, const words& given) {
    if (verb == "unlock") {
      taken_.value().release();
      return "ok";
    }
    if (verb == "bench" || verb == "count") return {};
    holdfast::redisson::rsemaphore of{client_, given.at(1)};
    if (verb == "set") return truth(of.try_set_permits(number(given.at(2))));
    if (verb == "value") return "ok " + std::to_string(of.available_permits());
    if (verb == "take") {
      return of.try_acquire(number(given.at(2)), ms(given.at(3))) ? "ok" : "busy";
    }
    if (verb == "give") return of.release(number(given.at(2))), "ok";
    if (verb == "add") return of.add_permits(std::stol(given.at(2))), "ok";
    if (verb == "drain") return "ok " + std::to_string(of.drain_permits());
    if (verb == "lock") return take_one(given.at(1), ms(given.at(3))) ? "ok" : "busy";
    return {};
  }
  // One, so that it is a lock, unless it was set.
  bool take_one(const std::string& name, milliseconds wait) {
    taken_.emplace(client_, name);
    taken_->try_set_permits(1);
    return taken_->try_acquire(1, wait);
  }
  static std::uint32_t number(const std::string& text) {
    return static_cast<std::uint32_t>(std::stoul(text));
  }
  static std::string truth(bool is) { return is ? "ok true" : "ok false"; }
  holdfast::redisson::rlock rlock(const std::string& name, const holdfast::lock_options& how = {}) {
    if (kind_ == "rfenced") return holdfast::redisson::rfenced_lock{client_, name, how};
    if (kind_ == "rfair") return holdfast::redisson::rfair_lock{client_, name, how};
    return {client_, name, how};
  }
  holdfast::redisson::rread_write_lock read_write_lock(const std::string& name,
                                                       const holdfast::lock_options& how = {}) {
    return {client_, name, how};
  }

  template <class Lock>
  std::string enter(Lock lock, const words& given) {
    leave_ = [lock]() mutable {
      lock.unlock();
      return "ok " + std::to_string(lock.holds());
    };
    return lock.try_lock_for(ms(given.at(3))) ? "ok " + std::to_string(lock.holds()) : "busy";
  }

  static milliseconds ms(const std::string& text) { return milliseconds{std::stol(text)}; }

  static std::string verdict(const holdfast::result<void>& said) {
    if (said) return "ok";
    if (said.error().code == holdfast::errc::lease_lost) return "lost";
    return "error " + said.error().message;
  }

  static void note(int ledger, const std::string& line) {
    if (::write(ledger, line.data(), line.size()) < 0) std::perror("ledger");
  }

  // One turn of one holder: what is written shows whether it was alone.
  static void turn(const std::string& counter, int ledger, const std::string& who) {
    note(ledger, "enter " + who + "\n");
    long value = 0;
    std::ifstream{counter} >> value;
    std::this_thread::sleep_for(milliseconds{1});
    std::ofstream{counter, std::ios::trunc} << value + 1;
    note(ledger, "leave " + who + "\n");
  }

  // NAME TTL WAIT TURNS SECONDS COUNTER LEDGER WHO; the name "-": without a lock
  std::string count(const words& given) {
    const auto& name = given.at(1);
    const auto turns = std::stol(given.at(4));
    const std::chrono::duration<double> most{std::stod(given.at(5))};
    const int ledger = ::open(given.at(7).c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    const auto until = std::chrono::steady_clock::now() + most;
    long done = 0;
    while (done < turns && std::chrono::steady_clock::now() < until) {
      std::optional<lease> mine;
      if (kind_ == "rsemaphore" && name != "-") {
        if (!take_one(name, ms(given.at(3)))) continue;
      } else if (name != "-") {
        mine = acquire(name, ms(given.at(2)), ms(given.at(3)), true);
        if (!mine) continue;
      }
      turn(given.at(6), ledger, given.at(8));
      if (taken_) taken_->release();
      ++done;
    }
    ::close(ledger);
    return "ok " + std::to_string(done);
  }

  // NAME TTL WAIT SECONDS COUNTER: what a reader sees twice must be the same.
  std::string watch(const words& given) {
    const holdfast::lock_options how{.ttl = ms(given.at(2))};
    const std::chrono::duration<double> most{std::stod(given.at(4))};
    const auto until = std::chrono::steady_clock::now() + most;
    const auto read = [&] {
      std::string text;
      std::ifstream{given.at(5)} >> text;
      return text;
    };
    long done = 0;
    while (std::chrono::steady_clock::now() < until) {
      const auto mine = acquire_to_read(given.at(1), how, ms(given.at(3)));
      if (!mine) continue;
      const auto before = read();
      std::this_thread::sleep_for(milliseconds{2});
      if (before.empty() || read() != before) return "error a writer wrote while this one read";
      ++done;
    }
    return "ok " + std::to_string(done);
  }

  // As a program uses it: what the lock is called is said once.
  template <class Lock>
  static std::string bench(Lock lock, int turns, bool awaits_release) {
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < turns; ++i) {
      auto mine = lock.try_acquire(milliseconds{1000});
      if (!mine) return "error the lock was not free";
      if (awaits_release && !mine->release()) return "error the lock was lost";
    }
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - began;
    return "ok " + std::to_string(took.count() / turns);
  }

  template <class Lock>
  static std::string race(Lock lock, std::chrono::duration<double> most, milliseconds pause) {
    using clock = std::chrono::steady_clock;
    const auto until = clock::now() + most;
    long done = 0;
    clock::duration slowest{};
    while (clock::now() < until) {
      const auto asked = clock::now();
      auto mine = lock.try_acquire(race_wait);
      slowest = std::max(slowest, clock::now() - asked);
      if (!mine) continue;
      std::this_thread::sleep_for(pause);
      if (!mine->release()) return "error the lock was lost";
      std::this_thread::sleep_for(pause);
      ++done;
    }
    const auto microseconds = std::chrono::duration_cast<std::chrono::microseconds>(slowest);
    return "ok " + std::to_string(done) + " " + std::to_string(microseconds.count());
  }

  std::string timed(const std::string& name, const auto& with) {
    if (kind_ == "mutex") return with(client_.mutex(name));
    if (kind_ == "permits") {
      return with(holdfast::redisson::rpermit_expirable_semaphore{client_, name, 1});
    }
    if (kind_ == "rwrite") return with(read_write_lock(name).write_lock());
    return with(rlock(name));
  }

  const std::string kind_;
  holdfast::client client_;
  std::optional<lease> held_;
  std::optional<holdfast::redisson::rsemaphore> taken_;
  std::function<std::string()> leave_;  // what the thread has entered
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 64;
  locker mine{argv[1], argv[2]};
  std::cout << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream text{line};
    words given;
    for (std::string word; text >> word;)
      given.push_back(word);
    std::string said;
    try {
      said = mine.answer(given);
    } catch (const std::exception& problem) {
      said = std::string{"error "} + problem.what();
    }
    std::cout << said << std::endl;
  }
}
