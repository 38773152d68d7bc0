// Many readers or one writer.
#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include <gmock/gmock.h>

#include "support/contract.hpp"
#include "support/holder_process.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

using testing::HasSubstr;

namespace {

using waited = std::future<std::optional<lease>>;

waited wait_to_write(client& c) {
  return std::async(std::launch::async,
                    [&c] { return c.shared_mutex("config").try_acquire(patience); });
}
waited wait_to_read(client& c) {
  return std::async(std::launch::async,
                    [&c] { return c.shared_mutex("config").try_acquire_shared(patience); });
}
bool come_to_wait(client& looks, std::size_t count) {
  return eventually([&] { return looks.status("config").waiting == count; });
}
bool is_waiting(waited& one) { return one.wait_for(0s) != std::future_status::ready; }

}  // namespace

CONTRACT_OF_READERS(ReadersReadTogetherAndExcludeAWriter) {
  client a = make_client();
  client b = make_client();
  auto one = a.shared_mutex("config").try_acquire_shared();
  auto other = b.shared_mutex("config").try_acquire_shared();
  ASSERT_TRUE(one && other);
  EXPECT_NE(one->token(), other->token());
  EXPECT_FALSE(b.shared_mutex("config").try_acquire());
  ASSERT_TRUE(one->release());
  EXPECT_FALSE(b.shared_mutex("config").try_acquire());
  ASSERT_TRUE(other->release());
  EXPECT_TRUE(b.shared_mutex("config").try_acquire());
}

CONTRACT_OF_READERS(WriterExcludesReadersAndWriters) {
  client a = make_client();
  client b = make_client();
  auto writer = a.shared_mutex("config").try_acquire();
  ASSERT_TRUE(writer);
  EXPECT_FALSE(b.shared_mutex("config").try_acquire_shared());
  EXPECT_FALSE(b.shared_mutex("config").try_acquire());
  EXPECT_FALSE(a.shared_mutex("config").try_acquire_shared());
  ASSERT_TRUE(writer->release());
  EXPECT_TRUE(b.shared_mutex("config").try_acquire_shared());
}

// Tokens, too: a writer's is above those of all before it.
CONTRACT_OF_READERS(ReadersAndWritersNeverMeet) {
  constexpr int clients = 3;
  constexpr int threads_each = 2;
  constexpr int rounds = 12;
  std::atomic<int> reading{0};
  std::atomic<int> writing{0};
  std::atomic<bool> met{false};
  std::atomic<std::uint64_t> last_write{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < clients; ++i) {
    auto shared = std::make_shared<client>(make_client(lock_options{.ttl = long_ttl}));
    for (int j = 0; j < threads_each; ++j) {
      threads.emplace_back([&, shared, i, j] {
        shared_mutex m = shared->shared_mutex("config");
        for (int k = 0; k < rounds; ++k) {
          if ((i + j + k) % 3 == 0) {
            lease held = m.acquire();
            if (++writing != 1 || reading != 0) met = true;
            EXPECT_GT(held.token().value(), last_write.exchange(held.token().value()));
            --writing;
            EXPECT_TRUE(held.release());
          } else {
            lease held = m.acquire_shared();
            ++reading;
            if (writing != 0) met = true;
            EXPECT_GT(held.token().value(), last_write.load());
            --reading;
            EXPECT_TRUE(held.release());
          }
        }
      });
    }
  }
  for (std::thread& t : threads)
    t.join();
  EXPECT_FALSE(met);
}

CONTRACT_OF_READERS(WaitingWriterHoldsBackLaterReaders) {
  client reader = make_client(lock_options{.ttl = long_ttl});
  client writer = make_client(lock_options{.ttl = long_ttl});
  client late = make_client(lock_options{.ttl = long_ttl});
  auto reads = reader.shared_mutex("config").acquire_shared();
  auto writes = wait_to_write(writer);
  ASSERT_TRUE(come_to_wait(reader, 1));
  EXPECT_FALSE(late.shared_mutex("config").try_acquire_shared()) << "would starve the writer";
  auto reads_later = wait_to_read(late);
  ASSERT_TRUE(come_to_wait(reader, 2));
  ASSERT_TRUE(reads.release());
  auto written = writes.get();
  ASSERT_TRUE(written);
  EXPECT_TRUE(is_waiting(reads_later));
  ASSERT_TRUE(written->release());
  auto read = reads_later.get();
  ASSERT_TRUE(read);
  EXPECT_GT(read->token(), written->token());
}

CONTRACT_OF_READERS(ReadersThatWaitTogetherComeInTogether) {
  client writer = make_client(lock_options{.ttl = long_ttl});
  std::array<client, 3> readers{make_client(lock_options{.ttl = long_ttl}),
                                make_client(lock_options{.ttl = long_ttl}),
                                make_client(lock_options{.ttl = long_ttl})};
  client next = make_client(lock_options{.ttl = long_ttl});
  auto written = writer.shared_mutex("config").acquire();
  std::vector<waited> reading;
  for (std::size_t i = 0; i < readers.size(); ++i) {
    reading.push_back(wait_to_read(readers[i]));
    ASSERT_TRUE(come_to_wait(writer, i + 1));
  }
  auto writes_next = wait_to_write(next);
  ASSERT_TRUE(come_to_wait(writer, 4));
  ASSERT_TRUE(written.release());
  std::vector<lease> held;
  for (auto& one : reading) {
    auto got = one.get();
    ASSERT_TRUE(got);
    held.push_back(std::move(*got));
  }
  EXPECT_TRUE(is_waiting(writes_next)) << "all of them hold it";
  for (auto& one : held)
    EXPECT_TRUE(one.release());
  EXPECT_TRUE(writes_next.get());
}

// A writer that gives up must not go on holding back those behind it.
CONTRACT_OF_READERS(WriterThatGivesUpLetsReadersPass) {
  client reader = make_client(lock_options{.ttl = long_ttl});
  client writer = make_client(lock_options{.ttl = long_ttl});
  client late = make_client(lock_options{.ttl = long_ttl});
  const auto reads = reader.shared_mutex("config").acquire_shared();
  std::stop_source stop;
  auto writes = std::async(std::launch::async, [&] {
    return writer.shared_mutex("config").try_acquire(forever, stop.get_token());
  });
  ASSERT_TRUE(come_to_wait(reader, 1));
  auto reads_later = wait_to_read(late);
  ASSERT_TRUE(come_to_wait(reader, 2));
  stop.request_stop();
  EXPECT_FALSE(writes.get());
  EXPECT_TRUE(reads_later.get());
  EXPECT_TRUE(come_to_wait(reader, 0));
}

CONTRACT_OF_READERS(TimedOutWriterLeavesNothingBehind) {
  client reader = make_client(lock_options{.ttl = long_ttl});
  client writer = make_client(lock_options{.ttl = long_ttl});
  const auto reads = reader.shared_mutex("config").acquire_shared();
  EXPECT_EQ(thrown_by([&] { (void)writer.shared_mutex("config").acquire(100ms); }),
            errc::timed_out);
  EXPECT_TRUE(writer.shared_mutex("config").try_acquire_shared());
}

CONTRACT_OF_READERS(ReadersAreRenewedTogether) {
  client a = make_client(lock_options{.ttl = kept_ttl});
  client b = make_client(lock_options{.ttl = kept_ttl});
  const auto one = a.shared_mutex("config").acquire_shared();
  const auto other = a.shared_mutex("config").acquire_shared();
  const auto plain = a.mutex("orders").acquire();
  std::this_thread::sleep_for(kept_ttl * 3 / 2);
  EXPECT_TRUE(one.held() && other.held() && plain.held());
  EXPECT_FALSE(b.shared_mutex("config").try_acquire());
}

CONTRACT_OF_READERS(ReaderThatIsNotRenewedFreesOnlyItsShare) {
  client a = make_client();
  client b = make_client(lock_options{.ttl = long_ttl});
  const auto stays = b.shared_mutex("config").acquire_shared();
  const auto ends = a.shared_mutex("config", {.ttl = short_ttl, .renew = false}).acquire_shared();
  ASSERT_TRUE(eventually([&] { return b.status("config").units_in_use == 1; }));
  EXPECT_FALSE(ends.held());
  EXPECT_TRUE(stays.held());
  EXPECT_FALSE(a.shared_mutex("config").try_acquire());
}

CONTRACT_OF_READERS(WriterGetsItWhenTheLastReaderExpires) {
  client a = make_client();
  client b = make_client(lock_options{.ttl = long_ttl});
  const auto ends = a.shared_mutex("config", {.ttl = short_ttl, .renew = false}).acquire_shared();
  EXPECT_TRUE(b.shared_mutex("config").try_acquire(patience));
}

CONTRACT_OF_READERS(LossOfAReaderIsTold) {
  client a = make_client(lock_options{.ttl = kept_ttl});
  const auto reads = a.shared_mutex("config").acquire_shared();
  watched_token lost{reads.lost()};
  store().lose("config");
  ASSERT_TRUE(lost.wait());
  EXPECT_FALSE(reads.held());
  EXPECT_EQ(reads.why_lost(), loss::deleted);
}

CONTRACT_OF_READERS(DowngradeLetsReadersInAndWritersNot) {
  client a = make_client(lock_options{.ttl = long_ttl});
  client b = make_client(lock_options{.ttl = long_ttl});
  client c = make_client(lock_options{.ttl = long_ttl});
  shared_mutex config = a.shared_mutex("config");
  auto held = config.acquire();
  const auto token = held.token();
  auto reads = wait_to_read(b);
  ASSERT_TRUE(come_to_wait(a, 1));
  auto writes = wait_to_write(c);
  ASSERT_TRUE(come_to_wait(a, 2));
  ASSERT_TRUE(config.downgrade(held));
  auto read = reads.get();
  ASSERT_TRUE(read) << "in at once";
  EXPECT_GT(read->token(), token);
  EXPECT_TRUE(is_waiting(writes));
  EXPECT_TRUE(held.held());
  EXPECT_EQ(held.token(), token);
  EXPECT_TRUE(held.renew());
  EXPECT_TRUE(config.downgrade(held)) << "changes nothing";
  EXPECT_EQ(a.status("config").units_in_use, 2U);
  EXPECT_TRUE(held.release());
  EXPECT_TRUE(read->release());
  EXPECT_TRUE(writes.get());
}

CONTRACT_OF_READERS(DowngradeOfWhatIsLostSaysSo) {
  client a = make_client(lock_options{.ttl = long_ttl});
  shared_mutex config = a.shared_mutex("config");
  auto held = config.acquire();
  store().lose("config");
  const auto said = config.downgrade(held);
  ASSERT_FALSE(said);
  EXPECT_EQ(said.error().code, errc::lease_lost);
  EXPECT_FALSE(held.held());
  auto other = a.shared_mutex("other").acquire();
  EXPECT_EQ(config.downgrade(other).error().code, errc::invalid_argument);
}

CONTRACT_OF_READERS(StdLocksReadAndWrite) {
  client a = make_client(lock_options{.ttl = long_ttl});
  client b = make_client(lock_options{.ttl = long_ttl});
  shared_mutex mine = a.shared_mutex("config");
  shared_mutex theirs = b.shared_mutex("config");
  {
    const std::shared_lock reads{mine};
    ASSERT_NE(mine.current(), nullptr);
    EXPECT_TRUE(mine.current()->held());
    EXPECT_TRUE((std::shared_lock<shared_mutex>{theirs, std::try_to_lock}));
    EXPECT_FALSE((std::unique_lock<shared_mutex>{theirs, 50ms}));
    EXPECT_FALSE(theirs.try_lock_until(std::chrono::steady_clock::now() + 20ms));
  }
  EXPECT_EQ(mine.current(), nullptr);
  {
    const std::scoped_lock writes{mine};
    EXPECT_FALSE((std::shared_lock<shared_mutex>{theirs, 50ms}));
    EXPECT_FALSE(theirs.try_lock_shared_until(std::chrono::system_clock::now() + 20ms));
  }
  EXPECT_TRUE((std::unique_lock<shared_mutex>{theirs, patience}));
}

CONTRACT_OF_READERS(UpgradeIsRefusedInsteadOfADeadlock) {
  client c = make_client(lock_options{.ttl = long_ttl});
  shared_mutex config = c.shared_mutex("config");
  config.lock_shared();
  try {
    config.lock();
    ADD_FAILURE() << "upgraded";
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::would_deadlock);
    EXPECT_THAT(refused.what(), HasSubstr("unlock_shared()"));
  }
  EXPECT_FALSE(config.try_lock());
  EXPECT_EQ(thrown_by([&] { config.lock_shared(); }), errc::would_deadlock);
  EXPECT_FALSE(config.try_lock_shared());
  config.unlock_shared();
  config.lock();
  EXPECT_EQ(thrown_by([&] { config.lock(); }), errc::would_deadlock);
  EXPECT_EQ(thrown_by([&] { config.lock_shared(); }), errc::would_deadlock);
  config.unlock();
  EXPECT_EQ(config.current(), nullptr);
}

CONTRACT_OF_READERS(UnlockingWhatIsNotHeldIsTold) {
  const auto seen = std::make_shared<recorder>();
  client c = make_client(client_options{.lock = {.ttl = long_ttl}, .observer = seen});
  shared_mutex config = c.shared_mutex("config");
  config.lock_shared();
  config.unlock();
  EXPECT_TRUE(seen->await(event::kind::misuse));
  EXPECT_TRUE(config.current()->held());
  config.unlock_shared();
}

CONTRACT_OF_READERS(StatusShowsReadersAndBreakTakesOne) {
  client a = make_client(lock_options{.ttl = long_ttl, .label = "first"});
  client b = make_client(lock_options{.ttl = long_ttl, .label = "second"});
  const auto one = a.shared_mutex("config").acquire_shared();
  const auto other = b.shared_mutex("config").acquire_shared();
  const auto seen = a.status("config");
  EXPECT_EQ(seen.kind, lock_status::form::shared_mutex);
  EXPECT_EQ(seen.units_in_use, 2U);
  EXPECT_EQ(seen.holding, 2U);
  ASSERT_EQ(seen.holders.size(), 2U);
  EXPECT_EQ(seen.holders[0].label, "first");
  EXPECT_EQ(seen.holders[0].token, one.token());
  EXPECT_EQ(seen.holders[1].label, "second");
  EXPECT_EQ(seen.holder.value().label, "first");
  EXPECT_GT(seen.remaining.value(), 30s);
  const auto all = b.list("*");
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].name, "config");
  EXPECT_EQ(all[0].holding, 2U);

  a.break_lock("config", other.token());
  EXPECT_EQ(thrown_by([&] { a.break_lock("config", other.token()); }), errc::not_held);
  EXPECT_EQ(a.status("config").holding, 1U);
  EXPECT_EQ(a.status("config").holder.value().token, one.token());
}

CONTRACT_OF_READERS(NameStandsForOneKindAtATime) {
  client c = make_client(lock_options{.ttl = long_ttl});
  {
    auto plain = c.mutex("config").acquire();
    EXPECT_EQ(thrown_by([&] { (void)c.shared_mutex("config").try_acquire_shared(); }),
              errc::wrong_type);
    EXPECT_TRUE(plain.release());
  }
  {
    auto reads = c.shared_mutex("config").acquire_shared(patience);
    EXPECT_EQ(thrown_by([&] { (void)c.mutex("config").try_acquire(); }), errc::wrong_type);
    EXPECT_TRUE(reads.release());
  }
  EXPECT_TRUE(c.mutex("config").try_acquire(patience)) << "free: it may be any";
}

CONTRACT_OF_SHARES(NameOfAnotherLockIsNoSemaphore) {
  client c = make_client(lock_options{.ttl = long_ttl});
  {
    auto plain = c.mutex("config").acquire();
    EXPECT_EQ(thrown_by([&] { (void)c.semaphore("config", 2).try_acquire(); }), errc::wrong_type);
    EXPECT_TRUE(plain.release());
  }
  auto reads = c.shared_mutex("config").acquire_shared(patience);
  EXPECT_EQ(thrown_by([&] { (void)c.semaphore("config", 2).try_acquire(); }), errc::wrong_type);
  EXPECT_TRUE(reads.release());
}

CONTRACT_OF_READERS(LeaseOfAReaderCanBeAdopted) {
  client a = make_client(lock_options{.ttl = long_ttl});
  client b = make_client(lock_options{.ttl = long_ttl});
  auto reads = a.shared_mutex("config").acquire_shared();
  const auto ticket = reads.detach();
  auto again = b.shared_mutex("config").adopt(ticket);
  EXPECT_EQ(again.token(), ticket.token);
  EXPECT_TRUE(again.release());
  EXPECT_TRUE(b.shared_mutex("config").try_acquire());
}

CONTRACT_OF_READERS_BETWEEN_PROCESSES(KilledReaderFreesOnlyItsShare) {
  client c = make_client(lock_options{.ttl = long_ttl});
  const auto stays = c.shared_mutex("config").acquire_shared();
  holder_process killed{store().url(), "config", short_ttl, holder_process::part{"shared"}};
  ASSERT_EQ(c.status("config").holding, 2U);
  killed.child().signal(SIGKILL);
  ASSERT_TRUE(eventually([&] { return c.status("config").holding == 1; }));
  EXPECT_FALSE(c.shared_mutex("config").try_acquire());
  EXPECT_TRUE(c.shared_mutex("config").try_acquire_shared());
  EXPECT_TRUE(stays.held());
}

CONTRACT_OF_READERS_BETWEEN_PROCESSES(WriterOutwaitsAKilledReader) {
  client c = make_client(lock_options{.ttl = long_ttl});
  holder_process killed{store().url(), "config", short_ttl, holder_process::part{"shared"}};
  auto writes = wait_to_write(c);
  killed.child().signal(SIGKILL);
  EXPECT_TRUE(writes.get());
}

namespace {

void expect_unsupported(const std::function<void()>& make) {
  std::string what;
  EXPECT_EQ(thrown_by(make, &what), errc::unsupported);
  EXPECT_NE(what, "");
}

}  // namespace

CONTRACT_WITHOUT_READERS(SharedMutexIsRefusedWithTheReason) {
  client c = make_client();
  expect_unsupported([&] { (void)c.shared_mutex("config"); });
}

CONTRACT_WITHOUT_SHARES(SemaphoreIsRefusedWithTheReason) {
  client c = make_client();
  expect_unsupported([&] { (void)c.semaphore("slots", 3); });
}

}  // namespace holdfast::test
