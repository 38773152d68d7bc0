// Keeping a stuck worker from holding a lock for ever.
//
//   limits [store URL, default memory:]
#include <holdfast/holdfast.hpp>

#include <chrono>
#include <iostream>

using namespace std::chrono_literals;

int main(int argc, char** argv) {
  holdfast::client client{argc > 1 ? argv[1] : "memory:"};

  auto import = client.mutex("import", {
      .ttl = 10s,             // a dead holder's lock is free after this
      .max_hold = 1h,         // a living one's, too, after that and a TTL
      .progress_within = 1min // and it is renewed only while work moves on
  });
  auto lease = import.acquire();
  for (int batch = 0; batch < 3 && lease.held(); ++batch) {
    std::cout << "batch " << batch << '\n';
    lease.progress();
  }
}
