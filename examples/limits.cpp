// Keeping a stuck worker from holding a lock for ever.
//
//   limits [store URL, default memory:]
#include <chrono>
#include <iostream>

#include <holdfast/holdfast.hpp>

using namespace std::chrono_literals;

int main(int argc, char** argv) {
  holdfast::client client{argc > 1 ? argv[1] : "memory:"};

  holdfast::lock_options bounds;
  bounds.ttl = 10s;               // a dead holder's lock is free after this
  bounds.max_hold = 1h;           // a living one's, too, after that and a TTL
  bounds.progress_within = 1min;  // and it is renewed only while work moves on
  auto import = client.mutex("import", bounds);
  auto lease = import.acquire();
  for (int batch = 0; batch < 3 && lease.held(); ++batch) {
    std::cout << "batch " << batch << '\n';
    lease.progress();
  }
}
