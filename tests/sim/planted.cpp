#include "sim/planted.hpp"

#include "sim/process.hpp"
#include "stores/redis/resp.hpp"

namespace holdfast::sim {

namespace {
thread_local const left_out* now_planted = nullptr;
}  // namespace

planting::planting(const left_out& rules) { now_planted = &rules; }
planting::~planting() { now_planted = nullptr; }

}  // namespace holdfast::sim

namespace holdfast::core {

bool planted(planted_bug which) noexcept {
  return sim::now_planted != nullptr &&
         sim::now_planted->bugs.test(static_cast<std::size_t>(which));
}

// A release: EVALSHA, hash, 2, the lock, its queue, the attempt, the waiter that leaves, …
void note_dropped(std::string_view bytes) {
  constexpr std::size_t attempt_at = 5, waiter_at = 6;
  auto* const by = sim::process::current();
  stores::redis::reply_reader reader;
  reader.feed(bytes);
  const auto words = reader.next();
  if (by == nullptr || !words || words->items.size() <= waiter_at) return;
  for (const auto at : {attempt_at, waiter_at}) {
    const auto id =
        owner_id::parse(std::string_view{words->items[at].text}.substr(0, owner_id::digits));
    if (id) by->traffic.lingers(*id);
  }
}

}  // namespace holdfast::core
