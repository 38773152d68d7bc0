#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include <holdfast/acquire_all.hpp>

#include "client/acquisition.hpp"
#include "client/client_access.hpp"
#include "client/locking.hpp"
#include "client/value_or_throw.hpp"
#include "core/passing.hpp"
#include "runtime/clock.hpp"

namespace holdfast {

namespace detail {

// One call of acquire_all().
class acquiring_all {
 public:
  acquiring_all(std::vector<mutex> locks, std::stop_token stop)
      : locks_{std::move(locks)}, stop_{std::move(stop)}, leases_(locks_.size()) {}

  [[nodiscard]] result<void> check();
  [[nodiscard]] core::duration wait_limit() const { return client().options.wait_limit; }
  [[nodiscard]] result<std::vector<lease>> run(core::duration wait);

 private:
  using acquired = result<client_state::acquired>;

  [[nodiscard]] terms_ptr terms(std::size_t which) const {
    return client_access::state_of(locks_[which]);
  }
  [[nodiscard]] client_state& client() const { return *terms(0)->client; }
  [[nodiscard]] const std::string& name(std::size_t which) const { return locks_[which].name(); }
  [[nodiscard]] result<void> ask_for_the_rest();
  void drop_lost();
  [[nodiscard]] std::vector<lease> all();

  std::vector<mutex> locks_;
  const std::stop_token stop_;
  std::vector<std::size_t> order_;            // by name: in which they are waited for
  std::vector<std::optional<lease>> leases_;  // as the locks are
};

result<void> acquiring_all::check() {
  if (locks_.empty()) return fail(errc::invalid_argument, "acquire_all() needs a lock");
  if (locks_.size() > acquired_together_max) {
    return fail(errc::invalid_argument,
                "acquire_all() takes " + std::to_string(acquired_together_max) +
                    " locks at the most, not " + std::to_string(locks_.size()));
  }
  for (const auto& one : locks_) {
    const auto& s = client_access::state_of(one);
    if (auto ok = detail::check(s); !ok) return ok;
    if (s->client != terms(0)->client) {
      return fail(errc::invalid_argument,
                  "acquire_all() takes locks of one client: those of several have no common order");
    }
  }
  order_.resize(locks_.size());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::sort(order_.begin(), order_.end(),
            [this](std::size_t a, std::size_t b) { return name(a) < name(b); });
  const auto twice =
      std::adjacent_find(order_.begin(), order_.end(),
                         [this](std::size_t a, std::size_t b) { return name(a) == name(b); });
  if (twice == order_.end()) return {};
  return fail(errc::invalid_argument,
              "acquire_all() was given \"" + escape(name(*twice)) + "\" twice");
}

// All requests leave before the first answer is waited for.
result<void> acquiring_all::ask_for_the_rest() {
  struct asked {
    std::size_t which;
    std::shared_ptr<acquisition> what;
    std::optional<acquired> got;
  };
  std::vector<asked> all;
  for (const auto which : order_) {
    if (!leases_[which]) all.push_back({which, nullptr, {}});
  }
  stores::blocking_caller here;
  for (auto& one : all) {
    one.what =
        std::make_shared<acquisition>(terms(one.which), core::duration::zero(), stop_, here,
                                      [&one](acquired got) { one.got.emplace(std::move(got)); });
    one.what->begin();
  }
  here.run();
  result<void> outcome;
  for (auto& one : all) {
    auto& got = *one.got;
    if (!got) {
      // One that will not pass counts before one that may.
      if (outcome || core::is_passing(outcome.error().code)) outcome = fail(std::move(got.error()));
    } else if (*got) {
      leases_[one.which] = lease_access::make(std::move(**got));
    }
  }
  return outcome;
}

// What was lost while another lock was waited for has to be had anew.
void acquiring_all::drop_lost() {
  for (auto& one : leases_) {
    if (one && !one->held()) one.reset();
  }
}

std::vector<lease> acquiring_all::all() {
  std::vector<lease> them;
  for (auto& one : leases_)
    them.push_back(std::move(*one));
  return them;
}

result<std::vector<lease>> acquiring_all::run(core::duration wait) {
  const auto until = core::after(runtime::now(), wait);
  for (;;) {
    if (auto ok = ask_for_the_rest(); !ok) {
      // What passes is waited for like a lock that is held: below, with the first that is missing.
      const bool waits = wait > core::duration::zero() && core::is_passing(ok.error().code);
      if (!waits) return fail(std::move(ok.error()));
    }
    drop_lost();
    const auto missing = std::find_if(order_.begin(), order_.end(),
                                      [this](std::size_t which) { return !leases_[which]; });
    if (missing == order_.end()) return all();
    std::for_each(missing, order_.end(), [this](std::size_t which) { leases_[which].reset(); });
    const auto left = std::max(until - runtime::now(), core::duration::zero());
    auto next = locks_[*missing].acquire_result(left, stop_);
    if (!next) {
      auto& why = next.error();
      if (why.code == errc::timed_out) why.message = escape(name(*missing)) + ": " + why.message;
      return fail(std::move(why));
    }
    leases_[*missing] = std::move(*next);
  }
}

}  // namespace detail

result<std::vector<lease>> acquire_all_result(std::vector<mutex> locks, any_nanoseconds wait,
                                              const std::stop_token& stop) {
  detail::acquiring_all all{std::move(locks), stop};
  if (auto ok = all.check(); !ok) return detail::fail(std::move(ok.error()));
  return all.run(wait);
}

std::vector<lease> acquire_all(std::vector<mutex> locks, any_nanoseconds wait,
                               const std::stop_token& stop) {
  return detail::value_or_throw(acquire_all_result(std::move(locks), wait, stop));
}

std::vector<lease> acquire_all(std::vector<mutex> locks, const std::stop_token& stop) {
  detail::acquiring_all all{std::move(locks), stop};
  detail::value_or_throw(all.check());
  return detail::value_or_throw(all.run(all.wait_limit()));
}

std::optional<std::vector<lease>> try_acquire_all(std::vector<mutex> locks, any_nanoseconds wait,
                                                  const std::stop_token& stop) {
  auto got = acquire_all_result(std::move(locks), wait, stop);
  if (got) return std::move(*got);
  if (got.error().code == errc::timed_out || got.error().code == errc::stopped) return std::nullopt;
  throw error{std::move(got.error())};
}

}  // namespace holdfast
