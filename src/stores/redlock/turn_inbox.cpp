#include "stores/redlock/turn_inbox.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <bit>

#include "core/quorum_machine.hpp"
#include "runtime/clock.hpp"
#include "runtime/random.hpp"
#include "runtime/socket.hpp"
#include "stores/redis/script_values.hpp"

namespace holdfast::stores::redlock {

namespace {

constexpr std::size_t read_chunk_bytes = 4096;
constexpr std::string_view channel_prefix = "holdfast:turn:";
// A node where subscribing failed is left alone for so long: polling covers for it.
constexpr core::duration subscribe_pause = std::chrono::milliseconds{500};

}  // namespace

turn_inbox::turn_inbox(std::vector<std::shared_ptr<line>> nodes,
                       std::shared_ptr<runtime::background> connecting)
    : name_{runtime::fresh_owner()},
      nodes_{std::move(nodes)},
      connecting_{std::move(connecting)},
      subscriptions_(nodes_.size()) {}

void turn_inbox::close() {
  {
    const std::lock_guard guard{m_};
    closed_ = true;
  }
  changed_.notify_all();
  wake_.wake();
}

void turn_inbox::open() {
  const std::lock_guard guard{m_};
  if (closed_) return;
  const auto now = runtime::now();
  for (std::size_t i = 0; i < subscriptions_.size(); ++i) {
    auto& one = subscriptions_[i];
    if (one.over || one.under_way || now < one.not_before) continue;
    one.under_way = connecting_->run([this, i] { subscribe(i); });
  }
}

// In the background. The pool is stopped before we go.
void turn_inbox::subscribe(std::size_t node) {
  const auto until = core::after(runtime::now(), line::connect_patience);
  auto over = redis::dial_now(nodes_[node]->dial(), until);
  redis::command text{2};
  text.arg("SUBSCRIBE").arg(std::string{channel_prefix} + std::string{inbox()});
  // A few bytes on a fresh connection always fit.
  const bool sent = over && (*over)->send_some(text.bytes()).bytes == text.bytes().size();
  const std::lock_guard guard{m_};
  auto& one = subscriptions_[node];
  one.under_way = false;
  one.not_before = core::after(runtime::now(), subscribe_pause);
  if (!sent || closed_) return;
  one.over = std::move(*over);
  one.reader = {};
  changed_.notify_all();
  wake_.wake();
}

void turn_inbox::listen(std::unique_lock<std::mutex>& held, core::time_point end) {
  std::vector<pollfd> watched{{wake_.fd(), POLLIN, 0}};
  std::vector<std::size_t> whose;
  std::vector<std::shared_ptr<runtime::stream>> open;
  for (std::size_t i = 0; i < subscriptions_.size(); ++i) {
    if (!subscriptions_[i].over) continue;
    open.push_back(subscriptions_[i].over);
    watched.push_back({open.back()->fd(), POLLIN, 0});
    whose.push_back(i);
  }
  someone_listens_ = true;
  held.unlock();
  const timespec left = runtime::until(end);
  const int ready = ::ppoll(watched.data(), watched.size(), &left, nullptr);
  held.lock();
  someone_listens_ = false;
  if (ready <= 0) return;
  if (watched[0].revents != 0) wake_.reset();
  for (std::size_t i = 0; i < whose.size(); ++i) {
    if (watched[i + 1].revents != 0) read(whose[i]);
  }
}

// With m_ held.
void turn_inbox::read(std::size_t node) {
  std::array<char, read_chunk_bytes> chunk;
  auto& one = subscriptions_[node];
  if (!one.over) return;
  const auto got = one.over->receive_some(chunk.data(), chunk.size());
  if (got.would_block) return;
  if (got.error != 0) {
    one.over.reset();
    return;
  }
  one.reader.feed({chunk.data(), got.bytes});
  while (const auto message = one.reader.next()) {
    const auto fields = redis::elements_of(*message);
    if (fields.size() != 3 || redis::text_of(*fields[0]) != "message") continue;
    hear(node, redis::text_of(*fields[2]));
  }
  if (!one.reader.trouble().empty()) one.over.reset();
}

// With m_ held: the waiter's id.
void turn_inbox::hear(std::size_t node, std::string_view message) {
  const auto id = core::owner_id::parse(message);
  const auto found = id ? waiters_.find(*id) : waiters_.end();
  if (found == waiters_.end()) return;
  auto& one = found->second;
  if (one.turns == 0) one.gathered_by = core::after(runtime::now(), gathering_max);
  one.turns |= std::uint64_t{1} << node;
  changed_.notify_all();
}

void turn_inbox::expect(const core::owner_id& waiter) {
  const std::lock_guard guard{m_};
  waiters_[waiter].could_be_told = most_can_tell();
}

void turn_inbox::forget(const core::owner_id& waiter) {
  const std::lock_guard guard{m_};
  waiters_.erase(waiter);
}

void turn_inbox::asks(const core::owner_id& waiter) {
  const std::lock_guard guard{m_};
  if (const auto found = waiters_.find(waiter); found != waiters_.end()) {
    found->second = {.could_be_told = most_can_tell()};
  }
}

// With m_ held.
bool turn_inbox::most_can_tell() const {
  const auto open = std::count_if(subscriptions_.begin(), subscriptions_.end(),
                                  [](const subscription& one) { return one.over != nullptr; });
  return static_cast<std::size_t>(open) >= core::majority_of(subscriptions_.size());
}

void turn_inbox::wait(const core::owner_id& waiter, std::size_t nodes, core::time_point until,
                      const std::stop_token& stop) {
  const std::stop_callback on_stop{stop, [this] { wake_.wake(); }};
  std::unique_lock held{m_};
  auto& mine = waiters_[waiter];
  const auto is_told = [&] {
    return closed_ || static_cast<std::size_t>(std::popcount(mine.turns)) >= nodes ||
           (!mine.could_be_told && most_can_tell());
  };
  while (!is_told() && !stop.stop_requested()) {
    const auto now = runtime::now();
    const auto end = std::min(until, mine.gathered_by);
    if (now >= end) break;
    if (someone_listens_) {
      changed_.wait_for(held, stop, std::min<core::duration>(end - now, std::chrono::hours{1}),
                        [&] { return is_told() || !someone_listens_ || mine.gathered_by < end; });
    } else {
      listen(held, end);
    }
  }
  // Another one listens now, if there is one.
  if (!someone_listens_) changed_.notify_all();
}

}  // namespace holdfast::stores::redlock
