#include "stores/blocking_store.hpp"

#include <utility>

#include "runtime/random.hpp"

namespace holdfast::stores::blocking {

namespace {

// A wait inside a blocking call.
class inside_call final : public waiting {
 public:
  explicit inside_call(std::function<void()> call) : call_{std::move(call)} {}
  void wait() override { call_(); }
  // Such a store has nobody who could tell: it is waited for here and now.
  void watch(timers& by) override {
    static_cast<void>(by);
    call_();
  }

 private:
  const std::function<void()> call_;
};

class told_attempt final : public stores::attempt {
 public:
  told_attempt(std::shared_ptr<blocking::store_lock> on, attempt_spec what)
      : on_{std::move(on)}, who_{runtime::fresh_owner(), what.ttl,       std::move(what.label),
                                 what.may_wait,          what.claim_ttl, what.block} {}

  core::owner_id id() const override { return who_.id; }
  void ask(core::time_point until, caller& by, on_answer done) override {
    static_cast<void>(by);
    done(on_->ask(who_, until));
  }
  void wait(core::time_point until, caller& by, on_woken done) override {
    by.wait_for(std::make_shared<inside_call>([this, until, done = std::move(done)] {
      on_->wait(who_, until, stop_.get_token());
      done(std::nullopt);
    }));
  }
  void wake() override { stop_.request_stop(); }
  void withdraw(core::time_point until, caller& by, on_removal done) override {
    static_cast<void>(by);
    done(on_->withdraw(who_, until));
  }

 private:
  const std::shared_ptr<blocking::store_lock> on_;
  blocking::attempt who_;
  std::stop_source stop_;
};

class told_lock final : public stores::store_lock {
 public:
  explicit told_lock(std::shared_ptr<blocking::store_lock> on) : on_{std::move(on)} {}

  std::unique_ptr<stores::attempt> begin(attempt_spec what) override {
    return std::make_unique<told_attempt>(on_, std::move(what));
  }
  void release(const core::owner_id& id, core::time_point until, caller& by,
               on_removal done) override {
    static_cast<void>(by);
    done(on_->release(id, until));
  }
  void release_later(const core::owner_id& id, core::time_point give_up) noexcept override {
    on_->release_later(id, give_up);
  }
  void extend(const core::owner_id& id, fencing_token token, core::duration ttl,
              core::time_point until, caller& by, on_renewal done) override {
    static_cast<void>(by);
    done(on_->extend(id, token, ttl, until));
  }
  void forget(const core::owner_id& id) noexcept override { on_->forget(id); }
  result<lock_status> inspect(core::time_point until) override { return on_->inspect(until); }
  result<void> break_with(fencing_token token, core::time_point until) override {
    return on_->break_with(token, until);
  }

  [[nodiscard]] blocking::store_lock* blocks() const noexcept { return on_.get(); }

 private:
  const std::shared_ptr<blocking::store_lock> on_;
};

class told_store final : public stores::store {
 public:
  explicit told_store(std::unique_ptr<blocking::store> blocks) : on_{std::move(blocks)} {}

  void on_events(store_events events) override { on_->on_events(std::move(events)); }
  result<std::shared_ptr<stores::store_lock>> open(std::string_view name) override {
    auto lock = on_->open(name);
    if (!lock) return fail(std::move(lock.error()));
    return std::make_shared<told_lock>(std::move(*lock));
  }
  std::size_t renewal_batch_max() const noexcept override { return on_->renewal_batch_max(); }
  void renew(std::vector<stores::held> leases, core::time_point until, caller& by,
             on_renewals done) override {
    static_cast<void>(by);
    std::vector<blocking::held> all;
    all.reserve(leases.size());
    for (const auto& one : leases)
      all.push_back({static_cast<told_lock*>(one.lock)->blocks(), one.id, one.ttl, one.token});
    done(on_->renew(all, until));
  }
  bool await_doubt(int wake_fd) override { return on_->await_doubt(wake_fd); }
  result<std::vector<lock_status>> list(std::string_view pattern, core::duration timeout) override {
    return on_->list(pattern, timeout);
  }
  guarantees describe() const override { return on_->describe(); }
  void flush(core::time_point until) noexcept override { on_->flush(until); }
  void close() noexcept override { on_->close(); }

 private:
  const std::unique_ptr<blocking::store> on_;
};

}  // namespace

std::unique_ptr<stores::store> told_by_events(std::unique_ptr<store> blocks) {
  return std::make_unique<told_store>(std::move(blocks));
}

}  // namespace holdfast::stores::blocking
