// Whether a store is there: opens_with… present|absent|other NAME
#include <iostream>
#include <string>

#include <holdfast/holdfast.hpp>

int main(int, char** arguments) {
  const std::string expected = arguments[1];
  const std::string name = arguments[2];
  std::string got = "present";
  try {
    const holdfast::client client{name + "://127.0.0.1:1"};  // does not connect yet
  } catch (const holdfast::error& error) {
    const std::string what = error.what();
    std::cout << what << '\n';
    if (error.code() != holdfast::errc::unsupported) return 1;
    const bool names_it = what.find("libholdfast_" + name) != std::string::npos;
    const bool is_other = what.find("9.9.9") != std::string::npos;
    got = is_other ? "other" : names_it ? "absent" : "refused";
  }
  std::cout << name << " is " << got << '\n';
  return got == expected ? 0 : 1;
}
