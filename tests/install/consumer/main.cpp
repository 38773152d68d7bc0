#include <iostream>

#include <holdfast/holdfast.hpp>

int main() {
  holdfast::client client{"memory:"};
  auto mutex = client.mutex("x");
  auto lease = mutex.try_acquire();
  if (!lease) {
    std::cerr << "a lock that nobody holds was not acquired\n";
    return 1;
  }
  std::cout << "acquired\n";

  try {
    holdfast::client nowhere{"nonsense:"};
    std::cerr << "a store that does not exist was accepted\n";
    return 1;
  } catch (const holdfast::error& error) {  // crosses the library's border by its exported type
    std::cout << "refused: " << error.what() << '\n';
  }

  try {
    holdfast::client nobody{"rediss://127.0.0.1:1?ca=/nonexistent"};
    std::cerr << "authorities that do not exist were believed\n";
    return 1;
  } catch (const holdfast::error& error) {  // TLS is there, with OpenSSL behind it
    if (error.code() != holdfast::errc::invalid_argument) return 1;
    std::cout << "refused: " << error.what() << '\n';
  }
}
