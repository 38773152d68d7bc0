#include "stores/redlock/hints.hpp"

#include <poll.h>

#include <array>

#include "runtime/clock.hpp"
#include "runtime/random.hpp"
#include "runtime/socket.hpp"

namespace holdfast::stores::redlock {

namespace {

constexpr std::size_t read_chunk_bytes = 4096;
constexpr std::string_view channel_prefix = "holdfast:hint:";
// A node where subscribing failed is left alone for so long: polling covers for it.
constexpr core::duration subscribe_pause = std::chrono::milliseconds{500};

}  // namespace

hints::hints(std::vector<std::shared_ptr<line>> nodes, std::size_t majority,
             std::shared_ptr<runtime::background> connecting)
    : name_{runtime::fresh_owner()},
      nodes_{std::move(nodes)},
      majority_{majority},
      connecting_{std::move(connecting)},
      subscriptions_(nodes_.size()) {}

void hints::close() {
  {
    const std::lock_guard guard{m_};
    closed_ = true;
  }
  changed_.notify_all();
  bell_.ring();
}

void hints::open() {
  const std::lock_guard guard{m_};
  if (closed_) return;
  const auto now = runtime::now();
  for (std::size_t i = 0; i < subscriptions_.size(); ++i) {
    auto& one = subscriptions_[i];
    if (one.fd || one.under_way || now < one.not_before) continue;
    one.under_way = connecting_->run([this, i] { subscribe(i); });
  }
}

// In the background. The pool is stopped before we go.
void hints::subscribe(std::size_t node) {
  const auto until = core::after(runtime::now(), line::connect_patience);
  auto fd = nodes_[node]->dialer().open_apart(until);
  redis::command text{2};
  text.arg("SUBSCRIBE").arg(std::string{channel_prefix} + std::string{inbox()});
  // A few bytes on a fresh connection always fit.
  const bool sent = fd && runtime::send_some(fd->get(), text.bytes()).bytes == text.bytes().size();
  const std::lock_guard guard{m_};
  auto& one = subscriptions_[node];
  one.under_way = false;
  one.not_before = core::after(runtime::now(), subscribe_pause);
  if (!sent || closed_) return;
  one.fd = std::make_shared<runtime::unique_fd>(std::move(*fd));
  one.reader.reset(::redisReaderCreate());
  bell_.ring();
}

void hints::listen(std::unique_lock<std::mutex>& held, core::time_point end) {
  std::vector<pollfd> watched{{bell_.fd(), POLLIN, 0}};
  std::vector<std::size_t> whose;
  std::vector<std::shared_ptr<runtime::unique_fd>> open;
  for (std::size_t i = 0; i < subscriptions_.size(); ++i) {
    if (!subscriptions_[i].fd) continue;
    open.push_back(subscriptions_[i].fd);
    watched.push_back({open.back()->get(), POLLIN, 0});
    whose.push_back(i);
  }
  someone_listens_ = true;
  held.unlock();
  const timespec left = runtime::until(end);
  const int ready = ::ppoll(watched.data(), watched.size(), &left, nullptr);
  held.lock();
  someone_listens_ = false;
  if (ready <= 0) return;
  if (watched[0].revents != 0) bell_.silence();
  for (std::size_t i = 0; i < whose.size(); ++i) {
    if (watched[i + 1].revents != 0) read(whose[i]);
  }
}

// With m_ held.
void hints::read(std::size_t node) {
  std::array<char, read_chunk_bytes> chunk;
  auto& one = subscriptions_[node];
  if (!one.fd) return;
  const auto got = runtime::receive_some(one.fd->get(), chunk.data(), chunk.size());
  if (got.would_block) return;
  if (got.error != 0) {
    one.fd.reset();
    return;
  }
  ::redisReaderFeed(one.reader.get(), chunk.data(), got.bytes);
  for (;;) {
    void* next = nullptr;
    if (::redisReaderGetReply(one.reader.get(), &next) != REDIS_OK) {
      one.fd.reset();
      return;
    }
    if (next == nullptr) return;
    const redis::reply message{static_cast<redisReply*>(next)};
    const auto fields = redis::elements_of(*message);
    if (fields.size() != 3 || redis::text_of(*fields[0]) != "message") continue;
    const auto id = core::owner_id::parse(redis::text_of(*fields[2]));
    const auto found = id ? waiters_.find(*id) : waiters_.end();
    if (found == waiters_.end()) continue;
    found->second.insert(node);
    if (found->second.size() == 1 || found->second.size() == majority_) changed_.notify_all();
  }
}

void hints::expect(const core::owner_id& waiter) {
  const std::lock_guard guard{m_};
  waiters_[waiter].clear();
}

void hints::forget(const core::owner_id& waiter) {
  const std::lock_guard guard{m_};
  waiters_.erase(waiter);
}

void hints::wait(const core::owner_id& waiter, core::time_point until,
                 const std::stop_token& stop) {
  const std::stop_callback on_stop{stop, [this] { bell_.ring(); }};
  std::unique_lock held{m_};
  const auto called_by = [&](std::size_t nodes) {
    const auto found = waiters_.find(waiter);
    return closed_ || (found != waiters_.end() && found->second.size() >= nodes);
  };
  const auto wait_for = [&](core::time_point end, std::size_t nodes) {
    while (!called_by(nodes) && !stop.stop_requested()) {
      const auto now = runtime::now();
      if (now >= end) return;
      if (someone_listens_) {
        changed_.wait_for(held, stop, std::min<core::duration>(end - now, std::chrono::hours{1}),
                          [&] { return called_by(nodes) || !someone_listens_; });
      } else {
        listen(held, end);
      }
    }
  };
  wait_for(until, 1);
  if (called_by(1)) wait_for(std::min(until, core::after(runtime::now(), gather_max)), majority_);
  // Another one listens now, if there is one.
  if (!someone_listens_) changed_.notify_all();
}

}  // namespace holdfast::stores::redlock
