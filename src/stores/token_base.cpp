#include "stores/token_base.hpp"

#include <utility>
#include <variant>

#include "core/fail.hpp"

namespace holdfast::stores {

namespace {

constexpr std::uint64_t token_max = (std::uint64_t{1} << 53) - 1;

// The number that is added. Knows both directions.
class shift {
 public:
  explicit shift(std::uint64_t base) noexcept : base_{base} {}

  [[nodiscard]] fencing_token shown(fencing_token of) const noexcept {
    return of == fencing_token{} ? of : fencing_token{of.value() + base_};
  }
  // Zero stays zero, which means any token, so what the store cannot have granted becomes one that
  // it never grants.
  [[nodiscard]] fencing_token own(fencing_token token) const noexcept {
    if (token == fencing_token{}) return token;
    return fencing_token{token.value() > base_ ? token.value() - base_ : token_max};
  }

  void show(holder& of) const noexcept { of.token = shown(of.token); }
  void show(core::grant& of) const noexcept { of.token = shown(of.token); }
  void show(renewal& of) const noexcept { of.token = shown(of.token); }
  void show(core::answer& of) const noexcept {
    if (auto* const granted = std::get_if<core::grant>(&of)) show(*granted);
    if (auto* const held = std::get_if<core::busy>(&of)) show(held->holder);
  }
  void show(lock_status& of) const noexcept {
    for (auto& one : of.holders)
      show(one);
    if (of.holder) show(*of.holder);
    for (auto& node : of.nodes)
      if (node.holder) show(*node.holder);
  }

 private:
  std::uint64_t base_;
};

class shifted_attempt : public attempt {
 public:
  shifted_attempt(std::unique_ptr<attempt> inner, shift by) : inner_{std::move(inner)}, by_{by} {}

  [[nodiscard]] core::owner_id id() const override { return inner_->id(); }
  void ask(core::time_point until, caller& by, on_answer done) override {
    inner_->ask(until, by, [shown = by_, done = std::move(done)](result<core::answer> got) {
      if (got) shown.show(*got);
      done(std::move(got));
    });
  }
  void wait(core::time_point until, caller& by, on_woken done) override {
    inner_->wait(until, by, [shown = by_, done = std::move(done)](std::optional<core::grant> got) {
      if (got) shown.show(*got);
      done(std::move(got));
    });
  }
  void wake() override { inner_->wake(); }
  void withdraw(core::time_point until, caller& by, on_removal done) override {
    inner_->withdraw(until, by, std::move(done));
  }

 private:
  std::unique_ptr<attempt> inner_;
  shift by_;
};

class shifted_lock : public store_lock {
 public:
  shifted_lock(std::shared_ptr<store_lock> inner, shift by) : inner_{std::move(inner)}, by_{by} {}

  [[nodiscard]] store_lock& inner() const noexcept { return *inner_; }

  [[nodiscard]] std::unique_ptr<attempt> begin(attempt_spec what) override {
    return std::make_unique<shifted_attempt>(inner_->begin(std::move(what)), by_);
  }
  void release(const core::owner_id& id, core::time_point until, caller& by,
               on_removal done) override {
    inner_->release(id, until, by, std::move(done));
  }
  void release_later(const core::owner_id& id, core::time_point give_up) noexcept override {
    inner_->release_later(id, give_up);
  }
  void extend(const core::owner_id& id, fencing_token token, core::duration ttl,
              core::time_point until, caller& by, on_renewal done) override {
    inner_->extend(id, by_.own(token), ttl, until, by, shown(std::move(done)));
  }
  void downgrade(const core::owner_id& id, fencing_token token, core::duration ttl,
                 core::time_point until, caller& by, on_renewal done) override {
    inner_->downgrade(id, by_.own(token), ttl, until, by, shown(std::move(done)));
  }
  [[nodiscard]] result<void> resize(std::uint32_t permits, core::time_point until) override {
    return inner_->resize(permits, until);
  }
  [[nodiscard]] result<fencing_token> count(const core::owner_id& id, std::string_view counter,
                                            core::time_point until) override {
    return inner_->count(id, counter, until);
  }
  void forget(const core::owner_id& id) noexcept override { inner_->forget(id); }

  [[nodiscard]] result<lock_status> inspect(core::time_point until) override {
    auto status = inner_->inspect(until);
    if (status) by_.show(*status);
    return status;
  }
  [[nodiscard]] result<void> break_with(fencing_token token, core::time_point until) override {
    return in_shown_words(inner_->break_with(by_.own(token), until), token);
  }
  [[nodiscard]] result<core::duration> recall(fencing_token token,
                                              core::time_point until) override {
    return in_shown_words(inner_->recall(by_.own(token), until), token);
  }

 private:
  // In the words of the store it would name the store's own tokens.
  template <class Result>
  [[nodiscard]] static Result in_shown_words(Result got, fencing_token token) {
    if (got || got.error().code != errc::not_held) return got;
    return core::fail(errc::not_held, "the lock is not held with token " + to_string(token) +
                                          "; nothing was changed");
  }
  [[nodiscard]] on_renewal shown(on_renewal done) const {
    return [shown = by_, done = std::move(done)](result<renewal> got) {
      if (got) shown.show(*got);
      done(std::move(got));
    };
  }

  std::shared_ptr<store_lock> inner_;
  shift by_;
};

class shifted_store : public store {
 public:
  shifted_store(std::unique_ptr<store> inner, shift by) : inner_{std::move(inner)}, by_{by} {}

  void on_events(store_events events) override { inner_->on_events(std::move(events)); }
  [[nodiscard]] result<std::shared_ptr<store_lock>> open(std::string_view name,
                                                         const core::lock_kind& kind) override {
    auto lock = inner_->open(name, kind);
    if (!lock) return core::fail(std::move(lock.error()));
    return std::make_shared<shifted_lock>(std::move(*lock), by_);
  }
  [[nodiscard]] result<std::shared_ptr<store_counter>> open_counter(
      std::string_view name, const core::counter_kind& kind) override {
    return inner_->open_counter(name, kind);
  }

  [[nodiscard]] std::size_t renewal_batch_max() const noexcept override {
    return inner_->renewal_batch_max();
  }
  void renew(std::vector<held> leases, core::time_point until, caller& by,
             on_renewals done) override {
    for (auto& lease : leases) {
      lease.lock = &static_cast<shifted_lock*>(lease.lock)->inner();  // this store opened it
      lease.token = by_.own(lease.token);
    }
    inner_->renew(std::move(leases), until, by,
                  [shown = by_, done = std::move(done)](result<std::vector<renewal>> got) {
                    if (got)
                      for (auto& one : *got)
                        shown.show(one);
                    done(std::move(got));
                  });
  }
  [[nodiscard]] doubt await_doubt(int wake_fd) override { return inner_->await_doubt(wake_fd); }
  [[nodiscard]] bool tells_changes() const noexcept override { return inner_->tells_changes(); }

  [[nodiscard]] result<std::vector<lock_status>> list(std::string_view pattern,
                                                      core::duration timeout) override {
    auto all = inner_->list(pattern, timeout);
    if (all)
      for (auto& one : *all)
        by_.show(one);
    return all;
  }
  [[nodiscard]] guarantees describe() const override { return inner_->describe(); }
  void flush(core::time_point until) noexcept override { inner_->flush(until); }
  void close() noexcept override { inner_->close(); }

 private:
  std::unique_ptr<store> inner_;
  shift by_;
};

}  // namespace

std::unique_ptr<store> with_token_base(std::unique_ptr<store> inner, std::uint64_t base) {
  if (base == 0) return inner;
  return std::make_unique<shifted_store>(std::move(inner), shift{base});
}

}  // namespace holdfast::stores
