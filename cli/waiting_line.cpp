#include "waiting_line.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include <fmt/format.h>

#include "say.hpp"
#include "show.hpp"

namespace holdfast::cli {
namespace {

constexpr std::chrono::milliseconds first_after{300};
constexpr std::chrono::seconds again_after{2};

bool terminal_rewrites() {
  const char* const kind = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && kind != nullptr && *kind != '\0' &&
         std::strcmp(kind, "dumb") != 0;
}

// A line that wraps cannot be wiped: keep it shorter than the terminal is wide.
std::string fit(std::string text) {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 2) return text;
  std::size_t columns = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool starts_character = (static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U;
    if (starts_character && ++columns == size.ws_col) return text.substr(0, i);
  }
  return text;
}

bool is_this_process(const holder& who) {
  if (who.foreign || who.pid != ::getpid()) return false;
  std::array<char, 256> host{};
  return ::gethostname(host.data(), host.size() - 1) == 0 && who.host == host.data();
}

}  // namespace

waiting_line::waiting_line(lock_set& locks) : locks_{locks}, rewrites_{terminal_rewrites()} {
  thread_ = std::jthread{[this](const std::stop_token& stop) { run(stop); }};
}

waiting_line::~waiting_line() {
  thread_.request_stop();
  thread_.join();
  if (shown_ && rewrites_) std::fputs("\r\033[K", stderr);
}

void waiting_line::run(const std::stop_token& stop) {
  std::unique_lock sleeping{sleep_mutex_};
  std::chrono::milliseconds pause = first_after;
  for (;;) {
    sleep_.wait_for(sleeping, stop, pause, [] { return false; });
    if (stop.stop_requested()) return;
    pause = again_after;
    const auto [what, text] = look();
    if (stop.stop_requested()) return;
    if (what != kind::none) show(what, text);
  }
}

std::pair<waiting_line::kind, std::string> waiting_line::look() {
  try {
    for (named_lock& one : locks_.locks()) {
      const lock_status status = one.status();
      // Of several, some may be held for this wait already.
      if (!status.holder || is_this_process(*status.holder)) continue;
      return {kind::held,
              fmt::format("waiting for {}: {}", in_quotes(one.name()), describe(status))};
    }
    return {};
  } catch (const error& problem) {
    return {kind::away,
            fmt::format("waiting for {}: {}", locks_.names_in_quotes(), escape(problem.what()))};
  } catch (const std::exception&) {  // it was only to be helpful
    return {};
  }
}

void waiting_line::show(kind what, const std::string& text) {
  bool& said = what == kind::held ? said_held_ : said_away_;
  const std::string line = "holdfast: " + text;
  // What is wrong with a store, and what helps, is longer than a line: it is said in full once.
  if (rewrites_ && what == kind::away && !said) {
    std::fputs(("\r\033[K" + line + "\n").c_str(), stderr);
  } else if (rewrites_) {
    std::fputs(("\r\033[K" + fit(line)).c_str(), stderr);
  } else if (!said) {
    std::fputs((line + "\n").c_str(), stderr);
  }
  said = true;
  shown_ = true;
}

}  // namespace holdfast::cli
