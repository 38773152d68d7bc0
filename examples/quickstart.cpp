// The five-minute tour: a lock, a lease, a token, a loss.
//
//   quickstart [store URL, default memory:]
#include <chrono>
#include <iostream>
#include <mutex>
#include <stop_token>

#include <holdfast/holdfast.hpp>

using namespace std::chrono_literals;

namespace {

void ship() { std::cout << "shipped\n"; }

struct database {
  holdfast::fence::gate gate;
  void write(int row, holdfast::fencing_token token) {
    if (!gate.accept(token)) return;  // a later holder has been here
    std::cout << "row " << row << " written\n";
  }
};

void do_long_work(const std::stop_token& lost) {
  for (int step = 0; step < 3 && !lost.stop_requested(); ++step)
    std::cout << "step " << step << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  const char* url = argc > 1 ? argv[1] : "memory:";
  database db;
  const int row = 42;

  holdfast::client client{url};
  holdfast::mutex orders = client.mutex("orders/42");

  // clang-format off
  { std::scoped_lock guard{orders}; ship(); }     // a std Lockable; renewed while held

  if (auto lease = orders.try_acquire(500ms)) {   // the lease is the real thing
    db.write(row, lease->token());                // fencing token: strictly increasing
    do_long_work(lease->lost());                  // std::stop_token, fires before it can expire
  }                                               // given back; never throws
  // clang-format on
}
