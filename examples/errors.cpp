// What can go wrong, by what to do about it.
//
//   errors [store URL, default memory:]
#include <chrono>
#include <cstdint>
#include <iostream>
#include <string_view>

#include <holdfast/holdfast.hpp>

using namespace std::chrono_literals;

namespace {

void ask_to_hurry(std::string_view host, std::int64_t pid) {
  std::cerr << "process " << pid << " on " << holdfast::untrusted::escape(host) << ": hurry\n";
}

// Without exceptions, and with the one who stood in the way.
int quick_job(holdfast::client& client) {
  auto lease = client.mutex("quick").acquire_result(2s);
  if (!lease) {
    const holdfast::failure& why = lease.error();
    std::cerr << why.message << '\n';
    if (why.holder) ask_to_hurry(why.holder->host, why.holder->pid);
    return 75;
  }
  std::cout << "doing it quickly\n";
  return 0;
}

int nightly_job(holdfast::client& client) {
  try {
    auto lease = client.mutex("nightly", {.ttl = 10s, .label = "nightly job"}).try_acquire(2s);
    if (!lease) return 0;  // another is doing it: not an error
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
      std::cerr << node.node << ": " << node.answer << '\n';
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  holdfast::client client{argc > 1 ? argv[1] : "memory:"};
  const int quick = quick_job(client);
  return quick != 0 ? quick : nightly_job(client);
}
