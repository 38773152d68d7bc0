// What can go wrong, by what to do about it.
//
//   errors [store URL, default memory:]
#include <chrono>
#include <iostream>

#include <holdfast/holdfast.hpp>

using namespace std::chrono_literals;

namespace {

int nightly_job(holdfast::client& client) {
  try {
    auto lease = client.mutex("nightly", {.ttl = 10s, .label = "nightly job"}).try_acquire(2s);
    if (!lease) return 0;  // somebody else is doing it: not an error
    std::cout << "doing it\n";
    if (auto done = lease->release(); !done) {
      std::cerr << "finished, but " << done.error().message << '\n';
    }
    return 0;
  } catch (const holdfast::error& e) {
    using holdfast::condition;
    if (e.code() == condition::try_again) return 75;        // it may pass: run it again later
    if (e.code() == condition::outcome_unknown) return 75;  // free after at most one TTL
    std::cerr << e.what() << '\n';                          // a person must change something
    for (const auto& node : e.nodes())
      std::cerr << node.node << ": " << node.said << '\n';
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  holdfast::client client{argc > 1 ? argv[1] : "memory:"};
  return nightly_job(client);
}
