// How a holder hears that its lease is lost, with a lease object and with std::scoped_lock.
//
//   loss [store URL, default memory:]
#include <chrono>
#include <iostream>
#include <mutex>

#include <holdfast/holdfast.hpp>

using namespace std::chrono_literals;

int main(int argc, char** argv) {
  const char* url = argc > 1 ? argv[1] : "memory:";
  holdfast::client client{url};
  holdfast::client another{url};
  auto report = client.mutex("reports/daily", {.ttl = 1s});

  auto lease = report.acquire();
  std::stop_callback stop_work{lease.lost(), [] { std::cout << "stop now\n"; }};
  another.break_lock("reports/daily", lease.token());  // a person took it away
  if (auto kept = lease.renew(); !kept) {
    std::cout << "lost: " << to_string(lease.why_lost()) << '\n';
  }

  std::scoped_lock guard{report};
  another.break_lock("reports/daily", report.current()->token());
  while (!report.current()->lost().stop_requested()) {
    // the protected work, in pieces; the background renewal notices within a third of the TTL
  }
  std::cout << "lost: " << to_string(report.current()->why_lost()) << '\n';
}  // unlock() now does nothing: its next holder keeps it
