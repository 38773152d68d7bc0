// Where a waiter stands in the nodes' queues.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/types.hpp"
#include "stores/pause.hpp"

namespace holdfast::stores::redlock {

// What a node keeps of a waiter: its id and its client's inbox, 32 digits each, then who it is, as
// redis::describe_holder() says it. scripts/acquire.lua writes it, scripts/release.lua reads it.
struct queue_entry {
  static constexpr std::size_t inbox_at = core::owner_id::digits;
  static constexpr std::size_t holder_at = inbox_at + core::owner_id::digits;
  static_assert(inbox_at == 32 && holder_at == 64);

  core::owner_id waiter;
  std::string_view holder;

  // Nothing if it was not written so.
  [[nodiscard]] static std::optional<queue_entry> parse(std::string_view text) {
    const auto waiter = core::owner_id::parse(text.substr(0, core::owner_id::digits));
    if (!waiter || text.size() < holder_at) return std::nullopt;
    return queue_entry{*waiter, text.substr(holder_at)};
  }
};

// What a waiter has heard, and its wait: turn_inbox.
struct turn_news {
  std::uint64_t turns = 0;                     // nodes where it is its turn: a bit for each
  core::time_point gathered_by = core::never;  // once the first has told
  bool could_be_told = false;                  // when it last asked
};

// One acquisition that waits, under one id for all its attempts. Thread-safe: its fields are set
// once or protected by its inbox, its flags are atomic.
struct queued_waiter {
  queued_waiter(const core::owner_id& waiter, std::string_view inbox, std::string ticket_text,
                std::string holder_text)
      : id{waiter},
        address{std::string{waiter.text()} + std::string{inbox}},
        ticket{std::move(ticket_text)},
        holder{std::move(holder_text)} {}

  const core::owner_id id;
  const std::string address;  // id and inbox
  const std::string ticket;   // when it began to wait, µs by its own wall clock
  const std::string holder;   // as redis::describe_holder()
  // Some node may have it in its queue.
  std::atomic<bool> entered{false};
  // It waits no more. Late answers must not leave it in a queue.
  std::atomic<bool> done{false};

  // Protected by the inbox.
  turn_news news{};
  bool woken = false;
  std::size_t wanted = 0;         // on so many nodes it has to be its turn
  std::shared_ptr<pause> wait{};  // under way

  // As the nodes keep it.
  [[nodiscard]] std::string entry() const { return address + holder; }
};

}  // namespace holdfast::stores::redlock
