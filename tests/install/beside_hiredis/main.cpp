// Acquires a lock in a process that has another hiredis. Argument: the store's URL.
#include <iostream>

#include <holdfast/holdfast.hpp>

extern "C" int redisReaderFeed(void* which, const char* bytes, std::size_t count);

int main(int, char** argv) {
  // Uses it, so that the linker does not leave it out.
  if (redisReaderFeed(nullptr, nullptr, 0) != -1) {
    std::cerr << "the other hiredis is not bound: this test shows nothing\n";
    return 1;
  }
  try {
    holdfast::client client{argv[1]};
    auto lease = client.mutex("x").acquire();
    static_cast<void>(lease.release());
    std::cout << "acquired and released\n";
  } catch (const holdfast::error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
