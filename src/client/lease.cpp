#include <new>
#include <utility>

#include <holdfast/lease.hpp>

#include "client/client_state.hpp"
#include "client/lease_state.hpp"
#include "client/value_or_throw.hpp"

namespace holdfast {

namespace {

using state = std::shared_ptr<detail::lease_state>;

// Moved from, or inherited through fork().
bool inert(const state& s) noexcept { return !s || s->forked(); }

failure inert_failure(const state& s) {
  if (!s) return {errc::invalid_argument, "this lease object was moved from", {}};
  return {errc::forked, "this lease was acquired before fork() and belongs to the parent", {}};
}

// Gives the lock back, unless it is not ours to give. In a forked child the state is leaked: what
// it refers to may be locked by threads that do not exist there.
void let_go(state s) noexcept {
  if (!s) return;
  if (s->forked()) {
    static_cast<void>(new (std::nothrow) state{std::move(s)});
    return;
  }
  s->abandon();
}

}  // namespace

lease::lease(state s) noexcept : state_{std::move(s)} {}
lease::lease(lease&& other) noexcept = default;

lease& lease::operator=(lease&& other) noexcept {
  if (this != &other) let_go(std::exchange(state_, std::move(other.state_)));
  return *this;
}

lease::~lease() { let_go(std::move(state_)); }

fencing_token lease::token() const noexcept { return state_ ? state_->token : fencing_token{}; }

const std::string& lease::name() const noexcept {
  static const std::string none;
  return state_ ? state_->lock->name : none;
}

std::string_view lease::owner() const noexcept {
  return state_ ? state_->id.text() : std::string_view{};
}

bool lease::held() const noexcept { return !inert(state_) && state_->held(); }

std::chrono::nanoseconds lease::remaining() const noexcept {
  return inert(state_) ? std::chrono::nanoseconds::zero() : state_->remaining();
}

std::stop_token lease::lost() const { return inert(state_) ? std::stop_token{} : state_->lost(); }

loss lease::why_lost() const noexcept { return inert(state_) ? loss::none : state_->why_lost(); }

result<void> lease::renew() {
  if (inert(state_)) return detail::fail(inert_failure(state_));
  return stores::wait_here<result<void>>(
      [&](auto& by, auto done) { state_->renew(by, std::move(done)); });
}

result<fencing_token> lease::counted_token(std::string_view counter) {
  if (inert(state_)) return detail::fail(inert_failure(state_));
  return state_->count(counter);
}

void lease::progress() noexcept {
  if (!inert(state_)) state_->progress();
}

result<void> lease::release() {
  if (inert(state_)) return detail::fail(inert_failure(state_));
  return stores::wait_here<result<void>>(
      [&](auto& by, auto done) { state_->release(by, std::move(done)); });
}

lease_ticket lease::detach() {
  if (inert(state_)) throw error{inert_failure(state_)};
  return detail::value_or_throw(state_->detach());
}

}  // namespace holdfast
