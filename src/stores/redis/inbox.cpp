#include "stores/redis/inbox.hpp"

#include <poll.h>

#include <algorithm>
#include <condition_variable>
#include <utility>

#include "core/planted.hpp"
#include "runtime/clock.hpp"
#include "runtime/random.hpp"
#include "runtime/socket.hpp"
#include "stores/redis/layout.hpp"
#include "stores/redis/script_values.hpp"

namespace holdfast::stores::redis {

namespace {

// A server that refuses a subscription is asked again no sooner: every attempt is a connection.
constexpr core::duration open_pause = std::chrono::milliseconds{250};

// Takes the text up to the next ; off `rest`.
std::string_view field(std::string_view& rest) {
  const auto end = rest.find(';');
  const auto text = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  return text;
}

}  // namespace

std::optional<grant_message> parse_grant(std::string_view payload) {
  const auto id = core::owner_id::parse(field(payload));
  if (!id) return std::nullopt;
  grant_message grant;
  grant.id = *id;
  grant.token = fencing_token{read_number(field(payload))};
  grant.claim = std::chrono::milliseconds{read_number(field(payload))};
  grant.block = read_number(field(payload));
  grant.key = std::string{payload};
  return grant;
}

// One wait of one attempt.
class inbox::listening final : public interruptible,
                               public std::enable_shared_from_this<listening> {
 public:
  listening(inbox& in, const core::owner_id& id, core::time_point until, on_woken done)
      : in_{in}, id_{id}, until_{until}, done_{std::move(done)} {}

  void wait() override;
  void watch(timers& by) override;
  void end() override;

  // Under the inbox's mutex.
  void tell();
  [[nodiscard]] bool reads_by_itself() const noexcept { return by_ == nullptr; }

 private:
  [[nodiscard]] waiter* begin();
  [[nodiscard]] bool is_over(const waiter& mine) const;
  void finish();

  inbox& in_;
  const core::owner_id id_;
  const core::time_point until_;
  on_woken done_;  // the caller's; empty: it was called

  // Protected by the inbox's mutex.
  std::condition_variable woken_;
  timers* by_ = nullptr;
  bool ended_ = false;
};

inbox::inbox(connection_pool& via, std::function<void(const grant_message&)> stray,
             std::function<void()> last_left)
    : via_{via},
      name_{std::string{inbox_prefix} + std::string{runtime::fresh_owner().text()}},
      stray_{std::move(stray)},
      last_left_{std::move(last_left)} {}

// ---- opening and closing -----------------------------------------------------------------------

bool inbox::is_open() {
  const lock held{m_};
  return subscription_ != nullptr;
}

void inbox::open(core::time_point until, caller& by, on_open done) {
  lock held{m_};
  const auto now = runtime::now();
  result<void> ready;
  if (!subscription_ && now < not_before_) {
    ready = fail(last_failure_);
  } else if (!subscription_ && !opening_) {
    opening_ = true;
    held.unlock();
    return subscription::open(
        via_.dial(), name_, until, by,
        [this, done = std::move(done)](auto made) { opened(std::move(made), done); });
  } else if (!subscription_ && now < until) {
    const auto turn = std::make_shared<pause>(
        until, [this, until, &by, done = std::move(done)] { open(until, by, done); });
    until_open_.push_back(turn);
    held.unlock();
    return by.wait_for(turn);
  } else if (!subscription_) {
    ready = fail(errc::store_unreachable, "no inbox at " + via_.node() + " in time");
  }
  held.unlock();
  done(std::move(ready));
}

void inbox::opened(result<std::shared_ptr<subscription>> made, const on_open& done) {
  result<void> ready;
  lock held{m_};
  opening_ = false;
  const auto others = std::exchange(until_open_, {});
  if (made) {
    subscription_ = std::move(*made);
    subscription_->on_readable([this] { read_what_came(); });
    // What came right behind the answer was read with it: no socket will tell of that any more.
    take_messages(held);
  } else {
    not_before_ = core::after(runtime::now(), open_pause);
    last_failure_ = made.error();
    ready = fail(std::move(made.error()));
  }
  held.unlock();
  for (const auto& one : others)
    one->end();
  done(std::move(ready));
}

// Under m_. Whoever waits asks again, and that opens it anew.
void inbox::disconnect() {
  subscription_.reset();
  settled_.clear();  // whatever was on its way is lost
  for (auto& [id, one] : waiters_) {
    if (one.listens) one.listens->tell();
  }
}

void inbox::close() {
  const lock held{m_};
  disconnect();
  wake_.wake();
}

bool inbox::rest() {
  lock held{m_};
  if (!subscription_) return true;
  if (std::exchange(used_, false) || !waiters_.empty() || someone_reads_) return false;
  while (subscription_ && read_once(held, core::time_point{}, false)) {
  }
  if (!waiters_.empty()) {
    wake_another();
    return false;
  }
  disconnect();
  return true;
}

// ---- attempts ----------------------------------------------------------------------------------

void inbox::expect(const core::owner_id& id) {
  const lock held{m_};
  waiters_.try_emplace(id);
  used_ = true;
}

void inbox::forget(const core::owner_id& id) {
  {
    const lock held{m_};
    if (waiters_.erase(id) == 0 || !waiters_.empty()) return;
  }
  last_left_();
}

void inbox::settle(const core::owner_id& id, fencing_token token) {
  if (settle_locked(id, token)) last_left_();
}

// True if nobody waits any more.
bool inbox::settle_locked(const core::owner_id& id, fencing_token token) {
  const lock held{m_};
  const auto found = waiters_.find(id);
  const bool came =
      found != waiters_.end() && found->second.granted && found->second.granted->token >= token;
  const bool last = waiters_.erase(id) > 0 && waiters_.empty();
  if (core::planted(core::planted_bug::settling)) return last;
  // While it is being opened the server may have confirmed that already, and sent the message.
  const bool none_can_come = !subscription_ && !opening_;
  if (came || none_can_come || settled_.add(id, token)) return last;
  disconnect();
  wake_.wake();
  return last;
}

std::shared_ptr<interruptible> inbox::wait(const core::owner_id& id, core::time_point until,
                                           on_woken done) {
  return std::make_shared<listening>(*this, id, until, std::move(done));
}

// Under m_. Null: the attempt is not expected.
inbox::waiter* inbox::listening::begin() {
  const auto found = in_.waiters_.find(id_);
  if (found == in_.waiters_.end()) return nullptr;
  found->second.listens = shared_from_this();
  return &found->second;
}

// Under m_.
bool inbox::listening::is_over(const waiter& mine) const {
  return mine.granted || ended_ || !in_.subscription_;
}

void inbox::listening::wait() {
  {
    lock held{in_.m_};
    const auto* mine = begin();
    while (mine != nullptr && !is_over(*mine)) {
      const auto now = runtime::now();
      if (now >= until_) break;
      if (!in_.someone_reads_) {
        static_cast<void>(in_.read_once(held, until_, true));
      } else {
        woken_.wait_for(held, std::min<core::duration>(until_ - now, std::chrono::hours{1}));
      }
    }
  }
  finish();
}

void inbox::listening::watch(timers& by) {
  bool over = false;
  {
    const lock held{in_.m_};
    by_ = &by;
    const auto* mine = begin();
    over = mine == nullptr || is_over(*mine);
  }
  by.at(over ? runtime::now() : until_, [self = shared_from_this()] { self->finish(); });
}

void inbox::listening::end() {
  const lock held{in_.m_};
  ended_ = true;
  tell();
  if (reads_by_itself()) in_.wake_.wake();
}

void inbox::listening::tell() {
  if (by_ != nullptr) {
    by_->at(runtime::now(), [self = shared_from_this()] { self->finish(); });
  } else {
    woken_.notify_all();
  }
}

void inbox::listening::finish() {
  const auto done = std::exchange(done_, nullptr);
  if (!done) return;
  std::optional<grant_message> got;
  {
    const lock held{in_.m_};
    const auto mine = in_.waiters_.find(id_);
    if (mine != in_.waiters_.end()) {
      got = std::exchange(mine->second.granted, std::nullopt);
      mine->second.listens = nullptr;
    }
    if (reads_by_itself() && !in_.someone_reads_) in_.wake_another();
  }
  done(std::move(got));
}

// ---- messages ----------------------------------------------------------------------------------

// Under m_. A thread has to read for those that still wait.
void inbox::wake_another() {
  for (auto& [id, one] : waiters_) {
    if (one.listens && one.listens->reads_by_itself() && !one.granted) return one.listens->tell();
  }
}

// The stream told.
void inbox::read_what_came() {
  lock held{m_};
  while (subscription_ && !someone_reads_ && read_once(held, core::time_point{}, false)) {
  }
}

bool inbox::read_once(lock& held, core::time_point until, bool may_wait) {
  const auto from = subscription_;
  someone_reads_ = true;
  held.unlock();
  auto ready = runtime::readiness::ready;
  if (may_wait) ready = runtime::wait_ready(from->fd(), POLLIN, until, wake_.fd());
  if (ready == runtime::readiness::woken) wake_.reset();
  const bool got = ready == runtime::readiness::ready && from->receive();
  held.lock();
  if (from == subscription_) take_messages(held);
  someone_reads_ = false;
  return got;
}

// Of what was received.
void inbox::take_messages(lock& held) {
  std::vector<grant_message> strays;
  while (const auto message = subscription_->next()) {
    if (auto grant = parse_grant(*message)) deliver(std::move(*grant), strays);
  }
  if (subscription_->over()) disconnect();
  if (strays.empty()) return;
  held.unlock();
  for (const auto& one : strays)
    stray_(one);
  held.lock();
}

void inbox::deliver(grant_message grant, std::vector<grant_message>& strays) {
  const auto found = waiters_.find(grant.id);
  if (found == waiters_.end()) {
    const bool is_grant = grant.token != fencing_token{};  // otherwise nothing to be given back
    if (is_grant && !settled_.knows(grant.id, grant.token)) strays.push_back(std::move(grant));
    return;
  }
  auto& mine = found->second;
  if (!mine.granted || mine.granted->token < grant.token) mine.granted = std::move(grant);
  if (mine.listens) mine.listens->tell();
}

}  // namespace holdfast::stores::redis
