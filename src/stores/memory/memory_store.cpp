#include "stores/memory/memory_store.hpp"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>

#include "runtime/clock.hpp"
#include "stores/memory/glob.hpp"

namespace holdfast::stores::memory {

namespace {

// Leases are renewed one by one, in this process; a batch only bounds how long the lock is held.
constexpr std::size_t renewals_per_call = 1000;

// Nothing gets lost between threads; this is only so that no wait is endless.
constexpr core::duration ask_within = std::chrono::seconds{1};

struct entry {
  // Who holds it, if `expires` is not past.
  core::owner_id id;
  core::time_point expires{};
  holder who;
  // Who waits, first come first served.
  struct waiting {
    core::owner_id id;
    waiter who;
  };
  std::deque<waiting> queue;
  std::condition_variable_any changed;

  [[nodiscard]] bool held(core::time_point now) const noexcept { return expires > now; }
};

// The locks of all clients of one name. Entries stay: a test makes few.
struct space {
  std::mutex m;
  // Protected by m.
  std::map<std::string, entry, std::less<>> locks;
  std::uint64_t last_token = 0;

  fencing_token next_token() {
    const auto wall = std::chrono::duration_cast<std::chrono::microseconds>(
        runtime::wall_now().time_since_epoch());
    last_token = std::max(last_token + 1, static_cast<std::uint64_t>(wall.count()));
    return fencing_token{last_token};
  }
};

std::shared_ptr<space> space_called(std::string_view name) {
  static std::mutex m;
  static std::map<std::string, std::weak_ptr<space>, std::less<>> all;
  const std::lock_guard guard{m};
  auto& known = all[std::string{name}];
  auto found = known.lock();
  if (!found) known = found = std::make_shared<space>();
  return found;
}

class memory_lock final : public blocking::store_lock {
 public:
  memory_lock(std::shared_ptr<space> in, std::string name)
      : space_{std::move(in)}, name_{std::move(name)}, entry_{open_entry()} {}

  result<core::answer> ask(blocking::attempt& who, core::time_point until) override {
    static_cast<void>(until);
    const std::lock_guard guard{space_->m};
    const auto now = runtime::now();
    auto& queue = entry_.queue;
    if (entry_.held(now) && entry_.id == who.id) {
      entry_.expires = std::max(entry_.expires, now + who.ttl);
      return core::grant{entry_.who.token, who.ttl, now};
    }
    const auto place =
        std::find_if(queue.begin(), queue.end(), [&](const auto& one) { return one.id == who.id; });
    const bool first = queue.empty() || place == queue.begin();
    if (!entry_.held(now) && first) {
      if (place != queue.end()) queue.erase(place);
      entry_.id = who.id;
      entry_.expires = now + who.ttl;
      entry_.who = {
          false, "localhost", ::getpid(), who.label, space_->next_token(), runtime::wall_now(), ""};
      return core::grant{entry_.who.token, who.ttl, now};
    }
    if (place == queue.end()) {
      queue.push_back({who.id, {"localhost", ::getpid(), who.label, runtime::wall_now()}});
    }
    const auto left = entry_.held(now) ? entry_.expires - now : core::duration::zero();
    return core::busy{entry_.who, left, true, ask_within};
  }

  void wait(blocking::attempt& who, core::time_point until, const std::stop_token& stop) override {
    std::unique_lock lock{space_->m};
    const auto current = runtime::now();
    if (current >= until) return;
    const auto longest = std::min<core::duration>(until - current, std::chrono::hours{1});
    entry_.changed.wait_for(lock, stop, longest, [&] {
      return !entry_.held(runtime::now()) && !entry_.queue.empty() &&
             entry_.queue.front().id == who.id;
    });
  }

  result<removal> withdraw(blocking::attempt& who, core::time_point until) override {
    {
      const std::lock_guard guard{space_->m};
      std::erase_if(entry_.queue, [&](const auto& one) { return one.id == who.id; });
      entry_.changed.notify_all();
    }
    return release(who.id, until);
  }

  result<removal> release(const core::owner_id& id, core::time_point until) override {
    static_cast<void>(until);
    const std::lock_guard guard{space_->m};
    if (!entry_.held(runtime::now())) return removal::gone;
    if (entry_.id != id) return removal::taken;
    free_it();
    return removal::released;
  }

  void release_later(const core::owner_id& id, core::time_point give_up) noexcept override {
    static_cast<void>(release(id, give_up));
  }

  result<lock_status> inspect(core::time_point until) override {
    static_cast<void>(until);
    const std::lock_guard guard{space_->m};
    return status_of(name_, entry_);
  }

  result<void> break_with(fencing_token token, core::time_point until) override {
    static_cast<void>(until);
    const std::lock_guard guard{space_->m};
    if (!entry_.held(runtime::now())) {
      return fail(errc::not_held, "nobody holds the lock; nothing was changed");
    }
    if (entry_.who.token != token) {
      return fail(errc::not_held, "the lock is held with token " + to_string(entry_.who.token) +
                                      ", not " + to_string(token) + "; nothing was changed");
    }
    free_it();
    return {};
  }

  result<renewal> extend(const core::owner_id& id, fencing_token token, core::duration ttl,
                         core::time_point until) override {
    static_cast<void>(until);
    const std::lock_guard guard{space_->m};
    const auto now = runtime::now();
    if (!entry_.held(now)) return renewal{false, loss::deleted, {}, {}, {}};
    if (entry_.id != id) return renewal{false, loss::taken, {}, {}, {}};
    const auto granted = entry_.who.token;
    if (token != fencing_token{} && token != granted) {
      return renewal{false, loss::taken, {}, {}, {}};
    }
    entry_.expires = std::max(entry_.expires, now + ttl);  // never shorter
    return renewal{true, loss::none, ttl, now, granted};
  }

  [[nodiscard]] static lock_status status_of(std::string name, const entry& of) {
    lock_status status;
    status.name = std::move(name);
    status.waiting = of.queue.size();
    for (std::size_t i = 0; i < std::min(of.queue.size(), waiters_shown_max); ++i)
      status.waiters.push_back(of.queue[i].who);
    const auto now = runtime::now();
    if (!of.held(now)) return status;
    status.holder = of.who;
    status.remaining = std::chrono::duration_cast<std::chrono::milliseconds>(of.expires - now);
    return status;
  }

 private:
  entry& open_entry() {
    const std::lock_guard guard{space_->m};
    return space_->locks[name_];
  }
  void free_it() {
    entry_.expires = {};
    entry_.changed.notify_all();
  }

  const std::shared_ptr<space> space_;
  const std::string name_;
  entry& entry_;
};

class memory_store final : public blocking::store {
 public:
  explicit memory_store(std::shared_ptr<space> in) : space_{std::move(in)} {}

  void on_events(store_events events) override { static_cast<void>(events); }

  result<std::shared_ptr<blocking::store_lock>> open(std::string_view name) override {
    return std::make_shared<memory_lock>(space_, std::string{name});
  }

  [[nodiscard]] std::size_t renewal_batch_max() const noexcept override {
    return renewals_per_call;
  }

  result<std::vector<renewal>> renew(std::span<const blocking::held> leases,
                                     core::time_point until) override {
    std::vector<renewal> all;
    all.reserve(leases.size());
    for (const auto& one : leases) {
      all.push_back(*one.lock->extend(one.id, one.token, one.ttl, until));  // cannot fail
    }
    return all;
  }

  result<std::vector<lock_status>> list(std::string_view pattern, core::duration timeout) override {
    static_cast<void>(timeout);
    std::vector<lock_status> all;
    const std::lock_guard guard{space_->m};
    for (const auto& [name, one] : space_->locks) {
      if (!glob_matches(pattern, name)) continue;
      auto status = memory_lock::status_of(name, one);
      if (status.holder) all.push_back(std::move(status));
    }
    return all;
  }

  [[nodiscard]] guarantees describe() const override {
    guarantees all;
    all.storage = guarantees::storage_kind::process;
    all.tokens_survive_data_loss = true;
    all.fifo = true;
    all.summary = "inside this process only: for unit tests";
    return all;
  }

  void flush(core::time_point until) noexcept override { static_cast<void>(until); }

 private:
  const std::shared_ptr<space> space_;
};

}  // namespace

std::unique_ptr<store> make_memory_store(std::string_view name) {
  return blocking::told_by_events(std::make_unique<memory_store>(space_called(name)));
}

}  // namespace holdfast::stores::memory
