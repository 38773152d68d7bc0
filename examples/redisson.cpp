// Locks that clients of other kinds share: docs/redisson.md, docs/locks.md.
//
//   redisson [store URL, default local:]
#include <chrono>
#include <iostream>
#include <mutex>
#include <shared_mutex>

#include <holdfast/holdfast.hpp>

using namespace std::chrono_literals;

namespace {

void ship_order(holdfast::client& client) {
  holdfast::redisson::rlock orders{client, "orders"};  // redisson.getLock("orders")
  const std::scoped_lock guard{orders};                // re-entrant, as in Java
}

// A lease tells what Java's lock does not: that it was lost, before it can be another's.
void work_on_orders(holdfast::client& client) {
  holdfast::redisson::rlock orders{client, "orders"};
  if (const auto lease = orders.try_acquire(500ms)) {
    std::cout << "held for sure for " << lease->remaining() / 1ms << " ms\n";
  }
}

void encode() { std::cout << "encoding\n"; }

void encode_one(holdfast::client& client) {
  holdfast::redisson::rsemaphore slots{client, "slots"};  // redisson.getSemaphore("slots")
  slots.try_set_permits(4);
  if (!slots.try_acquire(1, 500ms)) return;
  encode();
  slots.release();
}

void go_on_when_tested(holdfast::client& client) {
  holdfast::redisson::rcount_down_latch tested{client, "tested"};
  if (tested.wait(60s)) encode();  // Java's await(); countDown() is count_down()
}

void refresh_config(holdfast::client& client) {
  holdfast::redisson::rread_write_lock config{client, "config"};  // getReadWriteLock("config")
  { const std::shared_lock reading{config}; }                     // readLock()
  auto writing = config.write_lock().acquire();                   // a lease of writeLock()
  if (config.downgrade(writing)) return;                          // a reader now: others read, too
}

int give_up(const holdfast::failure& why) {
  std::cout << why.message << '\n';
  return 1;
}

// The resource is shown tokens that clients of another kind count 1, 2, 3 on a key of theirs.
int bill(holdfast::client& client) {
  auto lease = client.mutex("invoices").acquire(5s);
  auto token = lease.counted_token("invoices:fence");  // one more request, while the lock is held
  if (!token) return give_up(token.error());
  std::cout << "token " << *token << '\n';
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  holdfast::client client{argc > 1 ? argv[1] : "local:"};
  try {
    ship_order(client);
    work_on_orders(client);
    encode_one(client);
    go_on_when_tested(client);
    refresh_config(client);
    return bill(client);
  } catch (const holdfast::error& e) {
    std::cout << e.what() << '\n';
    return e.code() == holdfast::errc::unsupported ? 0 : 1;  // Redisson knows Redis only
  }
}
