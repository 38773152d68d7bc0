#include "stores/redlock/turn_inbox.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "core/quorum_machine.hpp"
#include "runtime/clock.hpp"
#include "runtime/random.hpp"
#include "stores/redis/script_values.hpp"

namespace holdfast::stores::redlock {

namespace {

constexpr std::size_t read_chunk_bytes = 4096;
constexpr std::string_view channel_prefix = "holdfast:turn:";
// A node where subscribing failed is left alone for so long: polling covers for it.
constexpr core::duration subscribe_pause = std::chrono::milliseconds{500};
// A thread that waits for long looks again now and then.
constexpr core::duration wait_max = std::chrono::hours{1};

}  // namespace

// A waiter that waits for its turn.
class turn_inbox::turn final : public waiting {
 public:
  turn(std::shared_ptr<turn_inbox> at, const core::owner_id& waiter, std::function<void()> done)
      : at_{std::move(at)}, waiter_{waiter}, done_{std::move(done)} {}
  void wait() override {
    at_->wait_on_thread(waiter_);
    done_();
  }
  void watch(timers& by) override { at_->watch(waiter_, by, std::move(done_)); }

 private:
  const std::shared_ptr<turn_inbox> at_;
  const core::owner_id waiter_;
  std::function<void()> done_;
};

turn_inbox::turn_inbox(std::vector<std::shared_ptr<node_connection>> nodes,
                       std::shared_ptr<runtime::background> connecting)
    : name_{runtime::fresh_owner()},
      nodes_{std::move(nodes)},
      connecting_{std::move(connecting)},
      subscriptions_(nodes_.size()) {}

void turn_inbox::close() {
  {
    lock held{m_};
    closed_ = true;
    perform(held, take_over(runtime::now()));
  }
  changed_.notify_all();
  wake_.wake();
}

// ---- subscriptions -----------------------------------------------------------------------------

void turn_inbox::open() {
  const std::lock_guard guard{m_};
  if (closed_) return;
  const auto now = runtime::now();
  for (std::size_t i = 0; i < subscriptions_.size(); ++i) {
    auto& one = subscriptions_[i];
    if (one.over || one.under_way || now < one.not_before) continue;
    one.under_way = connecting_->run([self = weak_from_this(), i] {
      if (const auto us = self.lock()) us->subscribe(i);
    });
  }
}

void turn_inbox::subscribe(std::size_t node) {
  const auto until = core::after(runtime::now(), node_connection::connect_patience);
  nodes_[node]->dial().dial(until, [weak = weak_from_this(), node](auto over) {
    const auto self = weak.lock();
    if (!self) return;
    self->subscribed(node, over ? std::move(*over) : nullptr);
  });
}

void turn_inbox::subscribed(std::size_t node, std::unique_ptr<runtime::stream> over) {
  redis::command text{2};
  text.arg("SUBSCRIBE").arg(std::string{channel_prefix} + std::string{inbox()});
  // A few bytes on a fresh connection always fit.
  const bool sent = over && over->send_some(text.bytes()).bytes == text.bytes().size();
  const bool told = sent && over->tells([weak = weak_from_this(), node] {
    const auto self = weak.lock();
    if (!self) return;
    lock held{self->m_};
    self->read(node);
    perform(held, self->take_over(runtime::now()));
  });
  static_cast<void>(told);  // otherwise whoever waits reads
  lock held{m_};
  auto& one = subscriptions_[node];
  one.under_way = false;
  one.not_before = core::after(runtime::now(), subscribe_pause);
  if (sent && !closed_) {
    one.over = std::move(over);
    one.reader = {};
    changed_.notify_all();
    wake_.wake();
  }
  perform(held, take_over(runtime::now()));
}

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

// The message is the waiter's id.
void turn_inbox::hear(std::size_t node, std::string_view message) {
  const auto id = core::owner_id::parse(message);
  const auto found = id ? waiters_.find(*id) : waiters_.end();
  if (found == waiters_.end()) return;
  auto& one = found->second;
  if (one.turns == 0) {
    one.gathered_by = core::after(runtime::now(), gathering_max);
    if (one.by != nullptr) look_at(*id, one.gathered_by);
  }
  one.turns |= std::uint64_t{1} << node;
  changed_.notify_all();
}

bool turn_inbox::most_can_tell() const {
  const auto open = std::count_if(subscriptions_.begin(), subscriptions_.end(),
                                  [](const subscription& one) { return one.over != nullptr; });
  return static_cast<std::size_t>(open) >= core::majority_of(subscriptions_.size());
}

// ---- waiters -----------------------------------------------------------------------------------

void turn_inbox::expect(const core::owner_id& waiter) {
  const std::lock_guard guard{m_};
  waiters_[waiter].could_be_told = most_can_tell();
}

void turn_inbox::forget(const core::owner_id& waiter) {
  const std::lock_guard guard{m_};
  waiters_.erase(waiter);
}

bool turn_inbox::expects(const core::owner_id& waiter) const {
  const std::lock_guard guard{m_};
  return waiters_.contains(waiter);
}

void turn_inbox::asks(const core::owner_id& waiter) {
  const std::lock_guard guard{m_};
  const auto found = waiters_.find(waiter);
  if (found == waiters_.end()) return;
  found->second = {.could_be_told = most_can_tell(), .woken = found->second.woken};
}

void turn_inbox::wake(const core::owner_id& waiter) {
  lock held{m_};
  const auto found = waiters_.find(waiter);
  if (found == waiters_.end()) return;
  auto& one = found->second;
  one.woken = true;
  changed_.notify_all();
  wake_.wake();
  perform(held, take_over(runtime::now()));
}

bool turn_inbox::is_told(const expectation& one) const {
  return closed_ || one.woken || static_cast<std::size_t>(std::popcount(one.turns)) >= one.wanted ||
         (!one.could_be_told && most_can_tell());
}

void turn_inbox::wait(const core::owner_id& waiter, std::size_t nodes, core::time_point until,
                      caller& by, std::function<void()> done) {
  {
    const std::lock_guard guard{m_};
    auto& mine = waiters_[waiter];
    mine.wanted = nodes;
    mine.until = until;
  }
  by.wait_for(std::make_shared<turn>(shared_from_this(), waiter, std::move(done)));
}

// ---- on a thread -------------------------------------------------------------------------------

void turn_inbox::wait_on_thread(const core::owner_id& waiter) {
  lock held{m_};
  auto& mine = waiters_[waiter];
  while (!is_told(mine)) {
    const auto now = runtime::now();
    const auto end = std::min(mine.until, mine.gathered_by);
    if (now >= end) break;
    if (someone_listens_) {
      changed_.wait_for(held, std::min<core::duration>(end - now, wait_max), [&] {
        return is_told(mine) || !someone_listens_ || mine.gathered_by < end;
      });
    } else {
      listen(held, end);
    }
  }
  // Another one listens now, if there is one.
  if (!someone_listens_) changed_.notify_all();
}

// Returns when something has happened, or at `end`.
void turn_inbox::listen(lock& held, core::time_point end) {
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

// ---- by events ---------------------------------------------------------------------------------

void turn_inbox::watch(const core::owner_id& waiter, timers& by, std::function<void()> done) {
  lock held{m_};
  auto& mine = waiters_[waiter];
  mine.done = std::move(done);
  mine.by = &by;
  look_at(waiter, std::min(mine.until, mine.gathered_by));
  perform(held, take_over(runtime::now()));
}

// Under m_.
void turn_inbox::look_at(const core::owner_id& waiter, core::time_point when) {
  waiters_[waiter].by->at(when, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    lock held{self->m_};
    perform(held, self->take_over(runtime::now()));
  });
}

turn_inbox::actions turn_inbox::take_over(core::time_point now) {
  actions all;
  for (auto& [id, one] : waiters_) {
    const bool over = is_told(one) || now >= std::min(one.until, one.gathered_by);
    if (!one.done || !over) continue;
    one.by = nullptr;
    all.push_back(std::exchange(one.done, nullptr));
  }
  return all;
}

void turn_inbox::perform(lock& held, actions what) {
  if (what.empty()) return;
  held.unlock();
  for (const auto& one : what)
    one();
  what.clear();  // what they hold may call us when it goes
  held.lock();
}

}  // namespace holdfast::stores::redlock
