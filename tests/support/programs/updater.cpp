// Takes a lock, reads a row and writes it back with its own name added, a step each time it is told
// to: so that a test can stop it, or let another come, between any two steps. It does what a
// program does that was paused after its last check: it never asks whether it still has the lock.
//
//   updater STORE_URL LOCK TTL_MS ROW none|writes|all NAME
//
// Prints `held TOKEN`, then for each line of its input: `read` → `read VALUE` (in brackets),
// `write` → `written`; or `refused WHY`.
#include <chrono>
#include <iostream>
#include <string>

#include <holdfast/holdfast.hpp>

#include "support/fenced_row.hpp"

namespace {

using holdfast::test::fencing;

fencing fencing_of(const std::string& word) {
  if (word == "none") return fencing::none;
  return word == "writes" ? fencing::writes : fencing::all;
}

int update(char** argv) {
  const std::chrono::milliseconds ttl{std::stoll(argv[3])};
  holdfast::client client{argv[1], {.lock = {.ttl = ttl}}};
  const auto row = holdfast::test::fenced_row::open(argv[4], fencing_of(argv[5]));
  const holdfast::lease lease = client.mutex(argv[2]).acquire();
  std::cout << "held " << lease.token() << std::endl;
  std::string value;
  for (std::string line; std::getline(std::cin, line);) {
    try {
      if (line == "read") {
        value = row->read(lease.token());
        std::cout << "read [" << value << "]" << std::endl;
      } else {
        row->write(lease.token(), value + argv[6]);
        std::cout << "written" << std::endl;
      }
    } catch (const holdfast::test::turned_away& refused) {
      const std::string why{refused.what()};
      std::cout << "refused " << why.substr(0, why.find('\n')) << std::endl;
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) return 64;
  try {
    return update(argv);
  } catch (const std::exception& problem) {
    std::cout << "error " << problem.what() << std::endl;
    return 1;
  }
}
