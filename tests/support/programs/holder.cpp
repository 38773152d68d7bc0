// Holds a lock and tells what it sees, so that a test can stop, kill and question a holder.
//
//   holder URL NAME TTL_MS [shared | PERMITS/OF]
//
// A mutex, unless it says otherwise: a reader of a shared_mutex, or so many permits of a semaphore.
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

holdfast::lease acquire(holdfast::client& client, const std::string& name,
                        const std::string& what) {
  if (what.empty()) return client.mutex(name).acquire();
  if (what == "shared") return client.shared_mutex(name).acquire_shared();
  const auto slash = what.find('/');
  const auto number = [](const std::string& text) {
    return static_cast<std::uint32_t>(std::stoul(text));
  };
  return client.semaphore(name, number(what.substr(slash + 1)))
      .acquire(number(what.substr(0, slash)));
}

int hold(const std::string& url, const std::string& name, const std::string& what,
         holdfast::lock_options options) {
  holdfast::client client = holdfast::test::open_client(url, {.lock = std::move(options)});
  say("asking");
  holdfast::lease lease = acquire(client, name, what);
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
    return hold(argv[1], argv[2], argc > 4 ? argv[4] : "", std::move(options));
  } catch (const std::exception& e) {
    say("error " + std::string{e.what()});
    return 1;
  }
}
