#include "stores/memory/memory_store.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "runtime/clock.hpp"
#include "runtime/host.hpp"
#include "runtime/random.hpp"
#include "stores/memory/glob.hpp"
#include "stores/pause.hpp"

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
    std::shared_ptr<pause> wait{};  // null: the attempt does not wait now
  };
  std::deque<waiting> queue;

  [[nodiscard]] bool held(core::time_point now) const noexcept { return expires > now; }
  [[nodiscard]] auto place_of(const core::owner_id& whose) {
    return std::find_if(queue.begin(), queue.end(),
                        [&](const waiting& one) { return one.id == whose; });
  }
  // It is the first waiter's turn, if nobody holds the lock.
  void tell_first() {
    if (queue.empty() || !queue.front().wait || held(runtime::now())) return;
    queue.front().wait->end();
  }
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

class memory_lock final : public store_lock {
 public:
  memory_lock(std::shared_ptr<space> in, std::string name)
      : space_{std::move(in)}, name_{std::move(name)}, entry_{open_entry()} {}

  std::unique_ptr<attempt> begin(attempt_spec what) override;

  void release(const core::owner_id& id, core::time_point, caller&, on_removal done) override {
    done(remove(id));
  }

  void release_later(const core::owner_id& id, core::time_point) noexcept override {
    static_cast<void>(remove(id));
  }

  void extend(const core::owner_id& id, fencing_token token, core::duration ttl, core::time_point,
              caller&, on_renewal done) override {
    done(extend_now(id, token, ttl));
  }

  [[nodiscard]] removal remove(const core::owner_id& id) {
    const std::lock_guard guard{space_->m};
    if (!entry_.held(runtime::now())) return removal::gone;
    if (entry_.id != id) return removal::taken;
    free_it();
    return removal::released;
  }

  [[nodiscard]] renewal extend_now(const core::owner_id& id, fencing_token token,
                                   core::duration ttl) {
    const std::lock_guard guard{space_->m};
    const auto now = runtime::now();
    if (!entry_.held(now)) return {false, loss::deleted, {}, {}, {}};
    const auto granted = entry_.who.token;
    const bool other_grant = token != fencing_token{} && token != granted;
    if (entry_.id != id || other_grant) return {false, loss::taken, {}, {}, {}};
    entry_.expires = std::max(entry_.expires, now + ttl);  // never shorter
    return {true, loss::none, ttl, now, granted};
  }

  result<lock_status> inspect(core::time_point) override {
    const std::lock_guard guard{space_->m};
    return status_of(name_, entry_);
  }

  result<void> break_with(fencing_token token, core::time_point) override {
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
    entry_.tell_first();
  }

  friend class memory_attempt;

  const std::shared_ptr<space> space_;
  const std::string name_;
  entry& entry_;
};

class memory_attempt final : public attempt {
 public:
  memory_attempt(memory_lock& at, attempt_spec what)
      : lock_{at}, spec_{std::move(what)}, id_{runtime::fresh_owner()} {}

  core::owner_id id() const override { return id_; }

  void ask(core::time_point, caller&, on_answer done) override { done(ask_now()); }

  void wait(core::time_point until, caller& by, on_woken done) override {
    auto turn = std::make_shared<pause>(until, [this, done = std::move(done)] {
      set_wait(nullptr);
      done(std::nullopt);
    });
    set_wait(turn);
    by.wait_for(std::move(turn));
  }

  void wake() override {
    const std::lock_guard guard{lock_.space_->m};
    if (wait_) {
      wait_->end();
    } else {
      woken_before_ = true;
    }
  }

  void withdraw(core::time_point, caller&, on_removal done) override {
    {
      const std::lock_guard guard{lock_.space_->m};
      const auto place = entry_.place_of(id_);
      if (place != entry_.queue.end()) entry_.queue.erase(place);
      entry_.tell_first();
    }
    done(lock_.remove(id_));
  }

 private:
  [[nodiscard]] core::answer ask_now() {
    const std::lock_guard guard{lock_.space_->m};
    const auto now = runtime::now();
    auto& queue = entry_.queue;
    if (entry_.held(now) && entry_.id == id_) {
      entry_.expires = std::max(entry_.expires, now + spec_.ttl);
      return core::grant{entry_.who.token, spec_.ttl, now};
    }
    const auto place = entry_.place_of(id_);
    const bool first = queue.empty() || place == queue.begin();
    const auto wall = runtime::wall_now();
    if (!entry_.held(now) && first) {
      if (place != queue.end()) queue.erase(place);
      entry_.id = id_;
      entry_.expires = now + spec_.ttl;
      entry_.who = {
          false, "localhost", runtime::process_id(), spec_.label, lock_.space_->next_token(),
          wall,  ""};
      return core::grant{entry_.who.token, spec_.ttl, now};
    }
    if (place == queue.end()) {
      queue.push_back({id_, {"localhost", runtime::process_id(), spec_.label, wall}});
    }
    const auto left = entry_.held(now) ? entry_.expires - now : core::duration::zero();
    return core::busy{entry_.who, left, true, ask_within};
  }

  // A wait begins, or, without one, has ended.
  void set_wait(const std::shared_ptr<pause>& what) {
    const std::lock_guard guard{lock_.space_->m};
    wait_ = what;
    const auto place = entry_.place_of(id_);
    if (place != entry_.queue.end()) place->wait = what;
    if (what && std::exchange(woken_before_, false)) what->end();
    if (what) entry_.tell_first();
  }

  memory_lock& lock_;
  entry& entry_ = lock_.entry_;
  const attempt_spec spec_;
  const core::owner_id id_;
  // Protected by the space's mutex.
  std::shared_ptr<pause> wait_;
  bool woken_before_ = false;  // the next wait ends at once
};

std::unique_ptr<attempt> memory_lock::begin(attempt_spec what) {
  return std::make_unique<memory_attempt>(*this, std::move(what));
}

class memory_store final : public store {
 public:
  explicit memory_store(std::shared_ptr<space> in) : space_{std::move(in)} {}

  void on_events(store_events events) override { static_cast<void>(events); }

  result<std::shared_ptr<store_lock>> open(std::string_view name,
                                           const core::lock_kind& kind) override {
    if (auto ok = core::check_exclusive(kind, "memory: has mutexes only so far"); !ok) {
      return fail(std::move(ok.error()));
    }
    return std::make_shared<memory_lock>(space_, std::string{name});
  }

  [[nodiscard]] std::size_t renewal_batch_max() const noexcept override {
    return renewals_per_call;
  }

  void renew(std::vector<held> leases, core::time_point, caller&, on_renewals done) override {
    std::vector<renewal> all;
    all.reserve(leases.size());
    for (const auto& one : leases) {
      all.push_back(static_cast<memory_lock*>(one.lock)->extend_now(one.id, one.token, one.ttl));
    }
    done(std::move(all));
  }

  result<std::vector<lock_status>> list(std::string_view pattern, core::duration) override {
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
  return std::make_unique<memory_store>(space_called(name));
}

}  // namespace holdfast::stores::memory
