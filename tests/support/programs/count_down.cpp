// Counts a part of a latch, so that a test can kill one that counts.
//
//   count_down URL NAME COUNT PART
//
// Prints how many are left.
#include <cstdint>
#include <iostream>
#include <string>

#include <holdfast/holdfast.hpp>

int main(int argc, char** argv) {
  if (argc != 5) return 64;
  try {
    holdfast::client client{argv[1]};
    const auto count = static_cast<std::uint32_t>(std::stoul(argv[3]));
    std::cout << client.latch(argv[2], count).count_down(argv[4]) << '\n';
    return 0;
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
