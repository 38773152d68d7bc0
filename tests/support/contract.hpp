// The suite that every store passes. A fact is written once and runs on each store in the table of
// stores_under_test.cpp, as Contract/<Store>.<Fact>; a new store is one more line there.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "support/open_client.hpp"
#include "support/process.hpp"
#include "support/watch.hpp"

namespace holdfast::test {

// A store with a server of its own, if it has one. Made anew for every test.
class store_under_test {
 public:
  store_under_test() = default;
  store_under_test(const store_under_test&) = delete;
  store_under_test& operator=(const store_under_test&) = delete;
  virtual ~store_under_test() = default;

  // What open_client() takes, in this process and, if the store is shared, in others.
  [[nodiscard]] virtual std::string url() const = 0;
  // Makes the store lose this lock behind its holder's back.
  virtual void lose(const std::string& name) = 0;
  // Whether it answers. Only called for stores with `network`.
  virtual void reachable(bool on) = 0;
  // The TTL it grants when asked for this one.
  [[nodiscard]] virtual std::chrono::milliseconds granted(std::chrono::milliseconds asked) const {
    return asked;
  }
};

struct store_entry {
  std::string name;
  bool processes;  // other processes can hold its locks
  bool network;    // it can become unreachable
  bool shares;     // has locks that several may hold
  bool slow;       // runs the facts that take seconds: once for each protocol is enough
  std::unique_ptr<store_under_test> (*make)();
  bool readers = shares;  // of those, shared mutexes at least
};

[[nodiscard]] const std::vector<store_entry>& stores_under_test();

class contract_test : public testing::Test {
 public:
  void on(const store_entry& entry) { entry_ = &entry; }

 protected:
  void SetUp() override { store_ = entry_->make(); }

  [[nodiscard]] store_under_test& store() { return *store_; }
  [[nodiscard]] client make_client(client_options options = {}) {
    return open_client(store_->url(), std::move(options));
  }
  [[nodiscard]] client make_client(lock_options lock) {
    return make_client(client_options{.lock = std::move(lock)});
  }

  // Outlives any wait in a passing test: what is got within it was given, not left to expire.
  static constexpr std::chrono::milliseconds long_ttl{60'000};
  // The shortest that a watchdog is asked to keep up with on a busy machine.
  static constexpr std::chrono::milliseconds kept_ttl{2'100};
  // For leases that are meant to run out.
  static constexpr std::chrono::milliseconds short_ttl{1'000};

 private:
  const store_entry* entry_ = nullptr;
  std::unique_ptr<store_under_test> store_;
};

namespace detail {

enum class needs {
  nothing,
  processes,
  network,
  time,
  shares,
  shares_of_processes,
  no_shares,
  readers,
  readers_of_processes,
  no_readers
};

template <class Fact>
bool register_fact(const char* fact, needs what, const char* file, int line) {
  for (const store_entry& entry : stores_under_test()) {
    if (what == needs::processes && !entry.processes) continue;
    if (what == needs::network && !entry.network) continue;
    if (what == needs::time && !entry.slow) continue;
    if (what == needs::shares && !entry.shares) continue;
    if (what == needs::shares_of_processes && !(entry.shares && entry.processes)) continue;
    if (what == needs::no_shares && entry.shares) continue;
    if (what == needs::readers && !entry.readers) continue;
    if (what == needs::readers_of_processes && !(entry.readers && entry.processes)) continue;
    if (what == needs::no_readers && entry.readers) continue;
    const std::string suite = "Contract/" + entry.name;
    testing::RegisterTest(suite.c_str(), fact, nullptr, nullptr, file, line,
                          [&entry]() -> contract_test* {
                            auto* made = new Fact;
                            made->on(entry);
                            return made;
                          });
  }
  return true;
}

}  // namespace detail

#define HOLDFAST_FACT(fact, what)                                                                \
  namespace {                                                                                    \
  class fact final : public ::holdfast::test::contract_test {                                    \
    void TestBody() override;                                                                    \
  };                                                                                             \
  [[maybe_unused]] const bool registered_##fact = ::holdfast::test::detail::register_fact<fact>( \
      #fact, ::holdfast::test::detail::needs::what, __FILE__, __LINE__);                         \
  }                                                                                              \
  void fact::TestBody()

// A fact about every store; about each, but in seconds; about those that processes share; about
// those behind a network; about those that have locks that several may hold, also between
// processes, and about those that refuse them.
#define CONTRACT(fact) HOLDFAST_FACT(fact, nothing)
#define CONTRACT_IN_TIME(fact) HOLDFAST_FACT(fact, time)
#define CONTRACT_BETWEEN_PROCESSES(fact) HOLDFAST_FACT(fact, processes)
#define CONTRACT_OVER_A_NETWORK(fact) HOLDFAST_FACT(fact, network)
#define CONTRACT_OF_SHARES(fact) HOLDFAST_FACT(fact, shares)
#define CONTRACT_OF_SHARES_BETWEEN_PROCESSES(fact) HOLDFAST_FACT(fact, shares_of_processes)
#define CONTRACT_WITHOUT_SHARES(fact) HOLDFAST_FACT(fact, no_shares)
// The same of shared mutexes alone, which some stores have without semaphores and latches.
#define CONTRACT_OF_READERS(fact) HOLDFAST_FACT(fact, readers)
#define CONTRACT_OF_READERS_BETWEEN_PROCESSES(fact) HOLDFAST_FACT(fact, readers_of_processes)
#define CONTRACT_WITHOUT_READERS(fact) HOLDFAST_FACT(fact, no_readers)

}  // namespace holdfast::test
