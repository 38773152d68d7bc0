#include "sim/observed_store.hpp"

#include <utility>

#include "runtime/clock.hpp"

namespace holdfast::sim {

namespace {

using stores::attempt;
using stores::caller;
using stores::removal;

class observed_attempt final : public attempt {
 public:
  observed_attempt(std::unique_ptr<attempt> of, const store_observer& tell)
      : of_{std::move(of)}, tell_{tell} {
    tell_.trace(id(), "begins");
  }
  // The client is done with it. It may hold, and then a release ends it.
  ~observed_attempt() override {
    if (!holds_ && surely_withdrawn_) tell_.over(id());
  }

  core::owner_id id() const override { return of_->id(); }
  void ask(core::time_point until, caller& by, on_answer done) override {
    of_->ask(until, by, [this, done = std::move(done)](result<core::answer> answer) {
      holds_ = answer && std::holds_alternative<core::grant>(*answer);
      tell_.trace(id(), !answer ? answer.error().message.c_str() : holds_ ? "granted" : "busy");
      done(std::move(answer));
    });
  }
  void wait(core::time_point until, caller& by, on_woken done) override {
    of_->wait(until, by, [this, done = std::move(done)](std::optional<core::grant> granted) {
      holds_ = granted.has_value();
      done(granted);
    });
  }
  void wake() override { of_->wake(); }
  void withdraw(core::time_point until, caller& by, on_removal done) override {
    of_->withdraw(until, by, [this, done = std::move(done)](result<removal> said) {
      holds_ = false;
      surely_withdrawn_ = said && *said != removal::unsure;
      tell_.trace(id(), "withdrawn");
      done(std::move(said));
    });
  }

 private:
  const std::unique_ptr<attempt> of_;
  const store_observer& tell_;
  bool holds_ = false;
  bool surely_withdrawn_ = true;
};

class observed_lock final : public stores::store_lock {
 public:
  observed_lock(std::shared_ptr<store_lock> of, std::shared_ptr<const store_observer> tell)
      : of_{std::move(of)}, tell_{std::move(tell)} {}

  [[nodiscard]] store_lock& beneath() const noexcept { return *of_; }

  std::unique_ptr<attempt> begin(stores::attempt_spec what) override {
    return std::make_unique<observed_attempt>(of_->begin(std::move(what)), *tell_);
  }
  // What is unanswered when the release begins may arrive after it.
  void release(const core::owner_id& id, core::time_point until, caller& by,
               on_removal done) override {
    tell_->trace(id, "is given back");
    const bool alone = !tell_->may_arrive(id);
    of_->release(id, until, by,
                 [tell = tell_, id, alone, done = std::move(done)](result<removal> said) {
                   if (alone && said && *said == removal::released) tell->over(id);
                   done(std::move(said));
                 });
  }
  void release_later(const core::owner_id& id, core::time_point give_up) noexcept override {
    tell_->trace(id, "is given back, later");
    of_->release_later(id, give_up);
  }
  void extend(const core::owner_id& id, fencing_token token, core::duration ttl,
              core::time_point until, caller& by, on_renewal done) override {
    of_->extend(id, token, ttl, until, by, told_of_refusal(id, std::move(done)));
  }
  void downgrade(const core::owner_id& id, fencing_token token, core::duration ttl,
                 core::time_point until, caller& by, on_renewal done) override {
    tell_->trace(id, "becomes a reader");
    of_->downgrade(id, token, ttl, until, by, told_of_refusal(id, std::move(done)));
  }
  result<void> resize(std::uint32_t permits, core::time_point until) override {
    return of_->resize(permits, until);
  }
  void forget(const core::owner_id& id) noexcept override { of_->forget(id); }
  result<lock_status> inspect(core::time_point until) override { return of_->inspect(until); }
  result<void> break_with(fencing_token token, core::time_point until) override {
    return of_->break_with(token, until);
  }

 private:
  [[nodiscard]] on_renewal told_of_refusal(const core::owner_id& id, on_renewal done) const {
    return [tell = tell_, id, done = std::move(done)](result<stores::renewal> got) {
      if (got && !got->renewed && got->why != loss::none) tell->refused(id, got->why);
      done(std::move(got));
    };
  }

  const std::shared_ptr<store_lock> of_;
  const std::shared_ptr<const store_observer> tell_;
};

class observed_store final : public stores::store {
 public:
  observed_store(std::unique_ptr<store> of, store_observer tell)
      : of_{std::move(of)}, tell_{std::make_shared<const store_observer>(std::move(tell))} {}

  void on_events(stores::store_events events) override { of_->on_events(std::move(events)); }
  result<std::shared_ptr<stores::store_lock>> open(std::string_view name,
                                                   const core::lock_kind& kind) override {
    auto lock = of_->open(name, kind);
    if (!lock) return lock;
    return std::make_shared<observed_lock>(std::move(*lock), tell_);
  }
  // The judge of latches asks what their users were told.
  result<std::shared_ptr<stores::store_counter>> open_counter(
      std::string_view name, const core::counter_kind& kind) override {
    return of_->open_counter(name, kind);
  }
  std::size_t renewal_batch_max() const noexcept override { return of_->renewal_batch_max(); }
  void renew(std::vector<stores::held> leases, core::time_point until, caller& by,
             on_renewals done) override {
    std::vector<core::owner_id> ids;
    for (auto& one : leases) {
      ids.push_back(one.id);
      one.lock = &static_cast<observed_lock*>(one.lock)->beneath();
    }
    of_->renew(std::move(leases), until, by,
               [tell = tell_, ids = std::move(ids), sent = runtime::now(),
                done = std::move(done)](result<std::vector<stores::renewal>> answers) {
                 for (std::size_t i = 0; answers && i < ids.size(); ++i) {
                   const auto& one = (*answers)[i];
                   if (one.renewed) {
                     tell->renewed(ids[i], sent);
                   } else if (one.why != loss::none) {
                     tell->refused(ids[i], one.why);
                   }
                 }
                 done(std::move(answers));
               });
  }
  result<std::vector<lock_status>> list(std::string_view pattern, core::duration timeout) override {
    return of_->list(pattern, timeout);
  }
  guarantees describe() const override { return of_->describe(); }
  // A process that dies waits for nothing.
  void flush(core::time_point until) noexcept override { static_cast<void>(until); }
  void close() noexcept override { of_->close(); }

 private:
  const std::unique_ptr<store> of_;
  const std::shared_ptr<const store_observer> tell_;
};

}  // namespace

std::unique_ptr<stores::store> observe(std::unique_ptr<stores::store> store, store_observer tell) {
  return std::make_unique<observed_store>(std::move(store), std::move(tell));
}

const stores::store_lock& observed(const stores::store_lock& lock) {
  return static_cast<const observed_lock&>(lock).beneath();
}

}  // namespace holdfast::sim
