// Holds a lock and tells what it sees, so that a test can stop, kill and question a holder.
//
//   holder URL NAME TTL_MS
//
// Prints, one line each, with a CLOCK_BOOTTIME stamp in nanoseconds last:
//   asking STAMP            before it acquires
//   held TOKEN STAMP        when it has the lock
//   lost WHY STAMP          when lost() fires
// and answers lines on its input: `query` → query held|lost STAMP, `renew` → renew ok|CODE STAMP,
// `release` → release ok|CODE STAMP. At the end of its input it lets go and exits.
#include <unistd.h>

#include <functional>
#include <iostream>
#include <stop_token>
#include <string>

#include <holdfast/holdfast.hpp>

#include "runtime/clock.hpp"
#include "support/open_client.hpp"

namespace {

// One write for each line: threads may speak at once.
void say(std::string line) {
  line += " " + std::to_string(holdfast::runtime::now().time_since_epoch().count()) + "\n";
  if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) ::_exit(1);
}

std::string outcome(const holdfast::result<void>& of) {
  if (of) return "ok";
  return of.error().code == holdfast::errc::lease_lost ? "lease_lost" : of.error().message;
}

int hold(const std::string& url, const std::string& name, holdfast::lock_options options) {
  holdfast::client client = holdfast::test::open_client(url, {.lock = std::move(options)});
  holdfast::mutex mutex = client.mutex(name);
  say("asking");
  holdfast::lease lease = mutex.acquire();
  say("held " + to_string(lease.token()));
  const std::stop_callback<std::function<void()>> when_lost{
      lease.lost(), [&] { say("lost " + std::string{holdfast::to_string(lease.why_lost())}); }};
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "query") say(lease.held() ? "query held" : "query lost");
    if (line == "renew") say("renew " + outcome(lease.renew()));
    if (line == "release") say("release " + outcome(lease.release()));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 64;
  try {
    holdfast::lock_options options;
    options.ttl = std::chrono::milliseconds{std::stoll(argv[3])};
    options.label = "holder";
    return hold(argv[1], argv[2], std::move(options));
  } catch (const std::exception& e) {
    say("error " + std::string{e.what()});
    return 1;
  }
}
