#include "once.hpp"

#include <poll.h>

#include <algorithm>

#include <fmt/format.h>

#include <holdfast/untrusted.hpp>

#include "lock_set.hpp"
#include "say.hpp"

namespace holdfast::cli {

namespace {

// How often a lock that is only kept is looked at: it may be lost, and then there is nothing to
// keep.
constexpr std::chrono::milliseconds look_every{500};

}  // namespace

done_mark::done_mark(client& store, const std::string& lock, const std::string& key)
    : store_{store}, key_{key}, name_{lock + ":once:" + key} {}

bool done_mark::is_done(bool quiet) {
  if (key_.empty()) return false;
  const auto mark = store_.status(name_);
  if (!mark.holder) return false;
  if (!quiet) {
    say(fmt::format("{} was done already, by {}, pid {}", in_quotes(key_),
                    untrusted::escape(mark.holder->host), mark.holder->pid));
  }
  return true;
}

void done_mark::set(const std::string& label) {
  if (key_.empty()) return;
  try {
    auto mark = store_.mutex(name_, {.ttl = kept, .renew = false, .label = label}).try_acquire();
    if (mark) static_cast<void>(mark->detach());
  } catch (const error& problem) {
    say(fmt::format("{} was done, but that could not be noted, so it may be done again: {}",
                    in_quotes(key_), problem.what()));
  }
}

void hold_until(std::vector<lease>& held, std::chrono::steady_clock::time_point until,
                signal_queue& signals, bool told_to_end) {
  while (lost_one(held) == nullptr) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left <= std::chrono::milliseconds::zero()) return;
    if (told_to_end) {
      for (auto& one : held)
        static_cast<void>(one.detach());
      return;
    }
    pollfd signal{signals.fd(), POLLIN, 0};
    static_cast<void>(::poll(&signal, 1, static_cast<int>(std::min(left, look_every).count())));
    while (const auto number = signals.next())
      told_to_end = told_to_end || ends_a_wait(*number);
  }
}

}  // namespace holdfast::cli
