#include "stores/memory/memory_store.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "runtime/clock.hpp"
#include "runtime/host.hpp"
#include "runtime/random.hpp"
#include "stores/glob.hpp"
#include "stores/memory/lock_entry.hpp"
#include "stores/memory/memory_counter.hpp"
#include "stores/memory/space.hpp"
#include "stores/pause.hpp"

namespace holdfast::stores::memory {

namespace {

// Leases are renewed one by one, in this process; a batch only bounds how long the lock is held.
constexpr std::size_t renewals_per_call = 1000;

// Nothing gets lost between threads; this is only so that no wait is endless.
constexpr core::duration ask_within = std::chrono::seconds{1};

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
  memory_lock(std::shared_ptr<space> in, std::string name, const core::lock_kind& kind)
      : space_{std::move(in)}, name_{std::move(name)}, kind_{kind}, entry_{open_entry()} {}

  std::unique_ptr<attempt> begin(attempt_spec what) override;

  void release(const core::owner_id& id, core::time_point, caller&, on_removal done) override {
    done(remove(id));
  }

  void release_later(const core::owner_id& id, core::time_point) noexcept override {
    static_cast<void>(remove(id));
  }

  void extend(const core::owner_id& id, fencing_token token, core::duration ttl, core::time_point,
              caller&, on_renewal done) override {
    done(extend_now(id, token, ttl, false));
  }

  void downgrade(const core::owner_id& id, fencing_token token, core::duration ttl,
                 core::time_point, caller&, on_renewal done) override {
    done(extend_now(id, token, ttl, true));
  }

  [[nodiscard]] removal remove(const core::owner_id& id) {
    const std::lock_guard guard{space_->m};
    entry_.expire(runtime::now());
    if (entry_.release(id)) return removal::released;
    return entry_.is_held() && !core::is_shared(kind_) ? removal::taken : removal::gone;
  }

  [[nodiscard]] renewal extend_now(const core::owner_id& id, fencing_token token,
                                   core::duration ttl, bool downgrades) {
    const std::lock_guard guard{space_->m};
    const auto now = runtime::now();
    entry_.expire(now);
    auto* mine = entry_.held_by(id);
    if (mine == nullptr) {
      const bool taken = entry_.is_held() && !core::is_shared(kind_);
      return {false, taken ? loss::taken : loss::deleted, {}, {}, {}};
    }
    const auto granted = mine->who.token;
    if (token != fencing_token{} && token != granted) return {false, loss::taken, {}, {}, {}};
    if (mine->recalled) return {false, loss::recalled, {}, {}, {}};
    mine->expires = std::max(mine->expires, now + ttl);  // never shorter
    if (downgrades) entry_.downgrade(*mine);
    return {true, loss::none, ttl, now, granted};
  }

  result<void> resize(std::uint32_t permits, core::time_point) override {
    const std::lock_guard guard{space_->m};
    entry_.expire(runtime::now());
    auto free_for = kind_;
    free_for.permits = entry_.kind().permits;  // whatever it is: that is to change
    if (space_->latch_called(name_, runtime::now()) != nullptr) return name_in_use("a latch");
    if (auto ok = entry_.become(free_for); !ok) return ok;
    entry_.resize(permits);
    return {};
  }

  result<lock_status> inspect(core::time_point) override {
    const std::lock_guard guard{space_->m};
    const auto now = runtime::now();
    if (const auto* latch = space_->latch_called(name_, now)) return latch->status(name_);
    entry_.expire(now);
    return entry_.status(name_, now);
  }

  result<void> break_with(fencing_token token, core::time_point) override {
    const std::lock_guard guard{space_->m};
    const auto one = held_with(token);
    if (!one) return fail(one.error());
    entry_.release(core::owner_id{(*one)->id});
    return {};
  }

  result<core::duration> recall(fencing_token token, core::time_point) override {
    const std::lock_guard guard{space_->m};
    const auto one = held_with(token);
    if (!one) return fail(one.error());
    (*one)->recalled = true;
    return (*one)->expires - runtime::now();
  }

 private:
  // Under the space's mutex.
  [[nodiscard]] result<lock_entry::hold*> held_with(fencing_token token) {
    entry_.expire(runtime::now());
    if (!entry_.is_held()) {
      return fail(errc::not_held, "nobody holds the lock; nothing was changed");
    }
    if (auto* one = entry_.held_with(token)) return one;
    return fail(errc::not_held, "the lock is held with token " + to_string(entry_.shown().token) +
                                    ", not " + to_string(token) + "; nothing was changed");
  }

  lock_entry& open_entry() {
    const std::lock_guard guard{space_->m};
    return space_->locks[name_];
  }

  friend class memory_attempt;

  const std::shared_ptr<space> space_;
  const std::string name_;
  const core::lock_kind kind_;
  lock_entry& entry_;
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
      entry_.leave(id_);
    }
    done(lock_.remove(id_));
  }

 private:
  [[nodiscard]] result<core::answer> ask_now() {
    const std::lock_guard guard{lock_.space_->m};
    const auto now = runtime::now();
    entry_.expire(now);
    if (auto* mine = entry_.held_by(id_)) {
      mine->expires = std::max(mine->expires, now + spec_.ttl);
      return core::grant{mine->who.token, spec_.ttl, now};
    }
    if (lock_.space_->latch_called(lock_.name_, now) != nullptr) return name_in_use("a latch");
    if (auto ok = entry_.become(lock_.kind_); !ok) return fail(std::move(ok.error()));
    const auto units = entry_.units_of(spec_.units);
    if (!units) return fail(units.error());
    const auto wall = runtime::wall_now();
    if (entry_.may_have(id_, *units)) {
      const auto token = lock_.space_->next_token();
      entry_.grant(
          {id_,
           now + spec_.ttl,
           {false, "localhost", runtime::process_id(), spec_.label, token, wall, "", *units}});
      return core::grant{token, spec_.ttl, now};
    }
    if (spec_.may_wait && entry_.place_of(id_) == nullptr) {
      entry_.join({id_, *units, {"localhost", runtime::process_id(), spec_.label, wall}});
    }
    const auto left = std::max(core::duration::zero(), entry_.next_expiry() - now);
    return core::busy{entry_.shown(), left, spec_.may_wait, ask_within};
  }

  // A wait begins, or, without one, has ended.
  void set_wait(const std::shared_ptr<pause>& what) {
    const std::lock_guard guard{lock_.space_->m};
    wait_ = what;
    if (auto* place = entry_.place_of(id_)) place->wait = what;
    if (what && std::exchange(woken_before_, false)) what->end();
    if (!what) return;
    entry_.expire(runtime::now());
    entry_.tell();
  }

  memory_lock& lock_;
  lock_entry& entry_ = lock_.entry_;
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
    if (core::is_redissons(kind)) {
      return fail(
          errc::unsupported,
          "memory: has no locks of Redisson's: they are kept on a Redis server, so name one");
    }
    return std::make_shared<memory_lock>(space_, std::string{name}, kind);
  }

  result<std::shared_ptr<store_counter>> open_counter(std::string_view name,
                                                      const core::counter_kind& kind) override {
    if (kind.what != core::counter_kind::form::latch) {
      return fail(errc::unsupported, "Redisson keeps its counters on a Redis server: name one");
    }
    return make_latch(space_, std::string{name}, kind);
  }

  [[nodiscard]] std::size_t renewal_batch_max() const noexcept override {
    return renewals_per_call;
  }

  void renew(std::vector<held> leases, core::time_point, caller&, on_renewals done) override {
    std::vector<renewal> all;
    all.reserve(leases.size());
    for (const auto& one : leases) {
      all.push_back(
          static_cast<memory_lock*>(one.lock)->extend_now(one.id, one.token, one.ttl, false));
    }
    done(std::move(all));
  }

  result<std::vector<lock_status>> list(std::string_view pattern, core::duration) override {
    std::vector<lock_status> all;
    const std::lock_guard guard{space_->m};
    const auto now = runtime::now();
    for (auto& [name, one] : space_->locks) {
      if (!glob_matches(pattern, name)) continue;
      one.expire(now);
      auto status = one.status(name, now);
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
