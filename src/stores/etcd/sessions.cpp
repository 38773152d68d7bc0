#include "stores/etcd/sessions.hpp"

#include <algorithm>
#include <utility>

#include "core/fail.hpp"
#include "runtime/clock.hpp"

namespace holdfast::stores::etcd {

namespace {

// A lock is granted for what is left of its session's time, so that is kept near the whole.
constexpr int parts_before_refresh = 6;
constexpr auto no_lease_in_time = "the cluster opened no lease in time";
// A request that failed is repeated for those who have more time than it was given by so much.
constexpr core::duration little_time = std::chrono::seconds{1};

std::int64_t seconds_of(core::duration ttl) {
  return std::max<std::int64_t>(1, std::chrono::ceil<std::chrono::seconds>(ttl).count());
}

bool is_fresh(const session& one, core::time_point now) {
  return one.id != 0 && now - one.counted_from < one.ttl / parts_before_refresh;
}

bool has(const std::deque<lease_id>& all, lease_id one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

// The last ones only.
void remember(std::deque<lease_id>& all, lease_id one) {
  if (has(all, one)) return;
  all.push_back(one);
  if (all.size() > session_pool::remembered_max) all.pop_front();
}

}  // namespace

void session_pool::use(core::duration ttl, core::time_point until, caller& by, on_session done) {
  const auto ttl_s = seconds_of(ttl);
  const auto now = runtime::now();
  std::unique_lock lock{m_};
  auto& mine = by_ttl_[ttl_s];
  if (is_fresh(mine.open, now)) {
    const auto open = mine.open;
    lock.unlock();
    return done(open);
  }
  if (now >= until) {
    lock.unlock();
    return done(fail(errc::store_unreachable, no_lease_in_time));
  }
  const auto told = std::make_shared<news>();
  const auto turn = std::make_shared<pause>(
      until, [=, this, &by, done = std::move(done)] { told_of(*told, ttl, until, by, done); });
  mine.waiting.push_back({turn, told});
  const bool is_first = !std::exchange(mine.is_busy, true);
  if (is_first) mine.asked_until = until;
  const auto known = mine.open.id;
  lock.unlock();
  if (is_first) {
    // An answer that comes after the TTL is worth nothing.
    const auto late = core::after(now, std::chrono::seconds{ttl_s});
    refresh(ttl_s, known, std::min(until - cluster::last_moment, late));
  }
  by.wait_for(turn);
}

void session_pool::told_of(const news& what, core::duration ttl, core::time_point until, caller& by,
                           const on_session& done) {
  result<session> got = fail(errc::store_unreachable, no_lease_in_time);
  bool had_little_time = false;
  {
    const std::lock_guard guard{m_};
    if (what.got) got = *what.got;
    had_little_time = what.got && !got && until - what.asked_until > little_time;
  }
  if (had_little_time) return use(ttl, until, by, done);
  done(std::move(got));
}

void session_pool::refresh(std::int64_t ttl_s, lease_id known, core::time_point until) {
  if (known == 0) return grant(ttl_s, until);
  const auto sent = runtime::now();
  cluster_.call({"/v3/lease/keepalive", lease_json(known), false}, until,
                [=, this](const result<answer>& said) {
                  const auto got = kept(known, sent, said);
                  const bool is_over =
                      got ? is_retired(known) : got.error().code == errc::lease_lost;
                  if (is_over) return grant(ttl_s, until);
                  refreshed(ttl_s, got);
                });
}

void session_pool::grant(std::int64_t ttl_s, core::time_point until) {
  const auto sent = runtime::now();
  // One that was granted and not heard of is used by nobody, and ends by itself.
  cluster_.call(
      {"/v3/lease/grant", lease_grant_json(ttl_s), false}, until,
      [=, this](const result<answer>& got) {
        if (!got) return refreshed(ttl_s, fail(got.error()));
        const auto granted = read_lease(got->body);
        if (!granted) return refreshed(ttl_s, fail(granted.error()));
        {
          const std::lock_guard guard{m_};
          remember(ours_, granted->id);
        }
        refreshed(ttl_s, session{granted->id, std::chrono::seconds{granted->ttl_s}, sent});
      });
}

void session_pool::refreshed(std::int64_t ttl_s, const result<session>& got) {
  std::vector<waiter> waiting;
  {
    const std::lock_guard guard{m_};
    auto& mine = by_ttl_[ttl_s];
    mine.is_busy = false;
    if (got && !has(retired_, got->id)) mine.open = *got;
    waiting = std::exchange(mine.waiting, {});
    for (const auto& one : waiting)
      *one.told = {got, mine.asked_until};
  }
  for (const auto& one : waiting)
    one.over->end();
}

void session_pool::keep_alive(lease_id id, core::time_point until, caller& by, on_session done) {
  const auto sent = runtime::now();
  cluster_.call(
      {"/v3/lease/keepalive", lease_json(id), false}, until, by,
      [=, this, done = std::move(done)](const result<answer>& got) { done(kept(id, sent, got)); });
}

result<session> session_pool::kept(lease_id id, core::time_point sent, const result<answer>& got) {
  if (!got) return fail(got.error());
  const auto said = read_lease(got->body);
  if (!said) return fail(said.error());
  if (said->ttl_s <= 0) {
    retire(id);
    outlives_us(id);
    return fail(errc::lease_lost, "the cluster has ended our lease");
  }
  const session now{id, std::chrono::seconds{said->ttl_s}, sent};
  const std::lock_guard guard{m_};
  for (auto& [ttl_s, one] : by_ttl_)
    if (one.open.id == id) one.open = now;
  return now;
}

void session_pool::retire(lease_id id) {
  const std::lock_guard guard{m_};
  remember(retired_, id);
  for (auto& [ttl_s, one] : by_ttl_)
    if (one.open.id == id) one.open = {};
}

bool session_pool::is_retired(lease_id id) const {
  const std::lock_guard guard{m_};
  return has(retired_, id);
}

void session_pool::outlives_us(lease_id id) {
  const std::lock_guard guard{m_};
  std::erase(ours_, id);
}

void session_pool::end_all(core::time_point until) noexcept {
  std::deque<lease_id> over;
  {
    const std::lock_guard guard{m_};
    over = std::exchange(ours_, {});
    for (auto& [ttl_s, one] : by_ttl_)
      one.open = {};
  }
  // The latest first: those before may be over by now.
  std::reverse(over.begin(), over.end());
  for (const auto id : over) {
    if (runtime::now() >= until) return;
    static_cast<void>(cluster_.call({"/v3/lease/revoke", lease_json(id), false}, until));
  }
}

}  // namespace holdfast::stores::etcd
