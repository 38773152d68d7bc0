// Asking several servers the same question at once.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <holdfast/result.hpp>

#include "core/types.hpp"
#include "runtime/background.hpp"
#include "runtime/clock.hpp"

namespace holdfast::stores::redis {

// Those that answer later than this after the first one, and later than twice its time, are not
// waited for: one that hangs must not delay what the others know.
inline constexpr core::duration straggler_max = std::chrono::milliseconds{100};

// Blocks until all have answered, or those that count as alive have, or `until`. `ask(i, until)`
// runs on threads of `on`, perhaps longer than this does: what it refers to must outlive them.
template <class Word>
[[nodiscard]] std::vector<result<Word>> ask_all(
    runtime::background& on, std::size_t count, core::time_point until,
    const std::function<result<Word>(std::size_t, core::time_point)>& ask) {
  struct gathered {
    std::mutex m;
    std::condition_variable changed;
    // Protected by m.
    std::vector<result<Word>> said;
    std::size_t open = 0;
    std::optional<core::time_point> stragglers_until;
  };
  const auto all = std::make_shared<gathered>();
  const auto begun = runtime::now();
  all->said.assign(count, fail(errc::store_unreachable, "no answer in time"));
  all->open = count;
  for (std::size_t i = 0; i < count; ++i) {
    const bool asked = on.run([all, ask, i, until, begun] {
      auto word = ask(i, until);
      const auto now = runtime::now();
      const std::lock_guard guard{all->m};
      if (word && !all->stragglers_until) {
        all->stragglers_until = now + std::max(straggler_max, now - begun);
      }
      all->said[i] = std::move(word);
      --all->open;
      all->changed.notify_one();
    });
    if (asked) continue;
    const std::lock_guard guard{all->m};
    --all->open;
  }
  std::unique_lock lock{all->m};
  while (all->open > 0) {
    const auto limit = std::min(until, all->stragglers_until.value_or(until));
    const auto now = runtime::now();
    if (now >= limit) break;
    all->changed.wait_for(lock, limit - now);
  }
  return all->said;
}

}  // namespace holdfast::stores::redis
