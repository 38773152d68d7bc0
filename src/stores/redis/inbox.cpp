#include "stores/redis/inbox.hpp"

#include <utility>

#include "core/planted.hpp"
#include "runtime/clock.hpp"
#include "runtime/random.hpp"
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

inbox::inbox(connection_pool& via, std::string_view name_begins,
             std::function<void(const grant_message&)> stray, std::function<void()> last_left)
    : via_{via},
      name_{std::string{name_begins} + std::string{runtime::fresh_owner().text()}},
      stray_{std::move(stray)},
      last_left_{std::move(last_left)},
      reader_{{.open =
                   [this] {
                     const lock held{m_};
                     message_reader::sources open;
                     if (subscription_) open.push_back(subscription_);
                     return open;
                   },
               .received = [this](const message_source& from) { received(from); }}} {}

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
  std::vector<grant_message> strays;
  lock held{m_};
  opening_ = false;
  const auto others = std::exchange(until_open_, {});
  if (std::exchange(drops_what_is_opened_, false) && made) {
    made = fail(errc::overloaded, "too many grants were answered while the inbox was opened");
  }
  if (made) {
    subscription_ = std::move(*made);
    subscription_->on_readable([this] { reader_.read_now(); });
    // What came right behind the answer was read with it: no socket will tell of that any more.
    strays = take_messages();
  } else {
    not_before_ = core::after(runtime::now(), open_pause);
    last_failure_ = made.error();
    settled_.clear();  // nothing will come of them
    ready = fail(std::move(made.error()));
  }
  held.unlock();
  for (const auto& one : strays)
    stray_(one);
  for (const auto& one : others)
    one->end();
  done(std::move(ready));
}

// Under m_. Attempts that wait ask again, and that opens it anew.
void inbox::disconnect() {
  subscription_.reset();
  if (!opening_) settled_.clear();  // whatever was on its way is lost
  for (auto& [id, one] : waiters_) {
    if (one.wait) one.wait->end();
  }
}

void inbox::close() {
  const lock held{m_};
  disconnect();
}

bool inbox::rest() {
  {
    const lock held{m_};
    if (!subscription_) return true;
    if (std::exchange(used_, false) || !waiters_.empty()) return false;
  }
  if (!reader_.read_now()) return false;
  const lock held{m_};
  if (used_ || !waiters_.empty()) return false;
  disconnect();
  return true;
}

// ---- attempts ----------------------------------------------------------------------------------

void inbox::expect(const core::owner_id& id, unsigned slot) {
  const lock held{m_};
  waiters_.try_emplace(id).first->second.slot = slot;
  used_ = true;
}

void inbox::ask_again(const std::function<bool(unsigned slot)>& is_meant) {
  const lock held{m_};
  for (auto& [id, one] : waiters_) {
    if (one.wait && is_meant(one.slot)) one.wait->end();
  }
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
  // The server may have subscribed us already, and have sent the message behind its word of that.
  const bool message_may_come = !came && (subscription_ || opening_);
  if (!message_may_come || settled_.add(id, token)) return last;
  drops_what_is_opened_ = opening_;
  disconnect();
  return last;
}

std::shared_ptr<pause> inbox::wait(const core::owner_id& id, core::time_point until,
                                   on_woken done) {
  auto made = reader_.wait(until, [this, id, done = std::move(done)] { done(end_wait(id)); });
  const lock held{m_};
  const auto found = waiters_.find(id);
  const bool expected = found != waiters_.end();
  if (expected) found->second.wait = made;
  if (!expected || found->second.granted || !subscription_) made->end();
  return made;
}

std::optional<grant_message> inbox::end_wait(const core::owner_id& id) {
  const lock held{m_};
  const auto found = waiters_.find(id);
  if (found == waiters_.end()) return std::nullopt;
  found->second.wait = nullptr;
  return std::exchange(found->second.granted, std::nullopt);
}

// ---- messages ----------------------------------------------------------------------------------

void inbox::received(const message_source& from) {
  std::vector<grant_message> strays;
  {
    const lock held{m_};
    // Of one that was given up, nothing counts: what was settled on it is forgotten.
    if (subscription_.get() == &from) strays = take_messages();
  }
  for (const auto& one : strays)
    stray_(one);
}

// Under m_. Gives the strays among them.
std::vector<grant_message> inbox::take_messages() {
  std::vector<grant_message> strays;
  while (const auto message = subscription_->next()) {
    auto grant = parse_grant(*message);
    if (grant && !deliver(*grant)) strays.push_back(std::move(*grant));
  }
  if (subscription_->over()) disconnect();
  return strays;
}

// Under m_. False: it is a stray.
bool inbox::deliver(const grant_message& grant) {
  const auto found = waiters_.find(grant.id);
  if (found == waiters_.end()) {
    const bool is_grant = grant.token != fencing_token{};  // otherwise nothing to be given back
    return !is_grant || settled_.knows(grant.id, grant.token);
  }
  auto& mine = found->second;
  if (!mine.granted || mine.granted->token < grant.token) mine.granted = grant;
  if (mine.wait) mine.wait->end();
  return true;
}

}  // namespace holdfast::stores::redis
