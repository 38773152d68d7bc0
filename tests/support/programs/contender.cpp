// One of a crowd: threads that want a few locks, hold them, give up and are cancelled, at random.
//
//   contender URL FOLDER NUMBER THREADS LOCKS TTL_MS SEED
//
// Each lock guards FOLDER/lock-N, a fenced file, where every thread shows its token when it enters
// and when it leaves. Prints `ready`; goes on until the end of its input; then prints
// `done ACQUISITIONS LOST ERRORS`, and before that a line `error …` for each failure (up to ten)
// and a line `wrong …` for each thing that must never be. Exits 1 if there was one of those.
#include <unistd.h>

#include <atomic>
#include <iostream>
#include <memory>
#include <mutex>
#include <random>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <holdfast/holdfast.hpp>

#include "runtime/clock.hpp"
#include "support/fenced_file.hpp"

namespace {

using namespace std::chrono_literals;
using holdfast::runtime::now;
using holdfast::test::fenced_file;
using holdfast::test::visit;

// Nobody waits for so long, whatever happens to the others.
constexpr auto long_wait = 40s;
constexpr int errors_shown_max = 10;

// One write for each line: threads may speak at once.
void say(std::string line) {
  line += "\n";
  if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) ::_exit(1);
}

struct tally {
  std::atomic<int> acquired{0}, lost{0}, errors{0}, wrong{0};
};

struct settings {
  std::string url;
  std::string folder;
  unsigned number = 0;
  unsigned threads = 0;
  unsigned locks = 0;
  std::chrono::milliseconds ttl{};
  unsigned seed = 0;
};

// What a thread waits with, so that another can cancel it.
class cancellable {
 public:
  std::stop_token fresh() {
    const std::lock_guard guard{m_};
    source_ = std::stop_source{};
    return source_.get_token();
  }
  void cancel() {
    const std::lock_guard guard{m_};
    source_.request_stop();
  }

 private:
  std::mutex m_;
  std::stop_source source_;
};

class contender {
 public:
  contender(const settings& with, holdfast::client& client, tally& counts, unsigned index)
      : with_{with}, client_{client}, counts_{counts}, random_{with.seed * 1000 + index} {
    for (unsigned i = 0; i < with.locks; ++i) {
      files_.push_back(std::make_unique<fenced_file>(with.folder + "/lock-" + std::to_string(i)));
    }
  }

  void run(const std::atomic<bool>& over) {
    while (!over) {
      try {
        contend();
      } catch (const holdfast::error& e) {
        if (++counts_.errors <= errors_shown_max) say("error " + std::string{e.what()});
      }
    }
  }
  void cancel() { cancellable_.cancel(); }

 private:
  unsigned below(unsigned limit) { return static_cast<unsigned>(random_() % limit); }
  void wrong(const std::string& what) {
    ++counts_.wrong;
    say("wrong " + what);
  }

  void contend() {
    const auto which = below(with_.locks);
    auto mutex = client_.mutex("lock-" + std::to_string(which));
    visit mine;
    mine.process = with_.number;
    mine.asked_at = now();
    std::optional<holdfast::lease> got;
    const auto how = below(10);
    if (how < 1) {
      got = mutex.try_acquire();
    } else if (how < 4) {
      got = mutex.try_acquire(std::chrono::microseconds{below(50'000)});
    } else if (how < 7) {
      got = mutex.try_acquire(long_wait, cancellable_.fresh());
    } else {
      got = mutex.try_acquire(long_wait);
      if (!got) wrong("a wait in vain for lock " + std::to_string(which));
    }
    if (got) return use(*got, *files_[which], mine);
    mine.at = now();
    static_cast<void>(files_[which]->accept(mine));
  }

  void use(holdfast::lease& lease, fenced_file& file, visit mine) {
    ++counts_.acquired;
    mine.what = visit::kind::entered;
    mine.token = lease.token().value();
    touch(lease, file, mine);
    work();
    mine.what = visit::kind::left;
    touch(lease, file, mine);
    // Half of the leases are given back by hand, half by their destructor.
    if (below(2) == 0 && !lease.release()) ++counts_.lost;
  }

  void touch(holdfast::lease& lease, fenced_file& file, visit& mine) {
    mine.at = now();
    mine.relied_until = mine.at + lease.remaining();
    mine.held = lease.held() ? 1 : 0;
    if (!file.accept(mine) && lease.held()) {
      wrong("token " + std::to_string(mine.token) + " was refused, but its lease is held");
    }
  }

  void work() {
    const auto kind = below(20);
    if (kind < 12) return;
    const unsigned longest_us = kind < 19 ? 300 : 8000;
    std::this_thread::sleep_for(std::chrono::microseconds{below(longest_us)});
  }

  const settings& with_;
  holdfast::client& client_;
  tally& counts_;
  std::mt19937 random_;
  std::vector<std::unique_ptr<fenced_file>> files_;
  cancellable cancellable_;
};

int contend(const settings& with) {
  holdfast::client_options options;
  options.lock.ttl = with.ttl;
  options.lock.label = "contender";
  options.operation_timeout = 10s;  // a busy machine is not a fault
  options.hand_over_here = with.number % 4 != 3;
  holdfast::client client{with.url, std::move(options)};
  tally counts;
  std::atomic<bool> over{false};
  std::vector<std::unique_ptr<contender>> crowd;
  for (unsigned i = 0; i < with.threads; ++i)
    crowd.push_back(std::make_unique<contender>(with, client, counts, i));
  std::vector<std::thread> threads;
  for (auto& one : crowd)
    threads.emplace_back([&] { one->run(over); });
  threads.emplace_back([&] {
    std::mt19937 random{with.seed};
    while (!over) {
      std::this_thread::sleep_for(std::chrono::microseconds{random() % 5000});
      crowd[random() % crowd.size()]->cancel();
    }
  });
  say("ready");
  for (std::string line; std::getline(std::cin, line);) {
  }
  over = true;
  for (auto& one : threads)
    one.join();
  say("done " + std::to_string(counts.acquired) + " " + std::to_string(counts.lost) + " " +
      std::to_string(counts.errors));
  return counts.wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 8) return 64;
  try {
    const auto number = [&](int i) { return static_cast<unsigned>(std::stoul(argv[i])); };
    return contend({argv[1], argv[2], number(3), number(4), number(5),
                    std::chrono::milliseconds{number(6)}, number(7)});
  } catch (const std::exception& e) {
    say("wrong " + std::string{e.what()});
    return 1;
  }
}
