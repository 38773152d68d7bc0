// A lock that Java programs share, by way of Redisson: docs/redisson.md.
//
//   redisson [store URL, default local:]
#include <chrono>
#include <iostream>
#include <mutex>

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

}  // namespace

int main(int argc, char** argv) {
  holdfast::client client{argc > 1 ? argv[1] : "local:"};
  try {
    ship_order(client);
    work_on_orders(client);
  } catch (const holdfast::error& e) {
    std::cout << e.what() << '\n';
    return e.code() == holdfast::errc::unsupported ? 0 : 1;  // Redisson knows Redis only
  }
}
