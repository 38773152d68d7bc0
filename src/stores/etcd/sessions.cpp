#include "stores/etcd/sessions.hpp"

#include <algorithm>
#include <utility>

#include "core/fail.hpp"
#include "runtime/clock.hpp"

namespace holdfast::stores::etcd {

namespace {

// A lock is granted for what is left of its session's time, so that is kept near the whole.
constexpr int parts_before_refresh = 6;

std::int64_t seconds_of(core::duration ttl) {
  return std::max<std::int64_t>(1, std::chrono::ceil<std::chrono::seconds>(ttl).count());
}

bool is_fresh(const session& one, core::time_point now) {
  return one.id != 0 && now - one.counted_from < one.ttl / parts_before_refresh;
}

}  // namespace

void session_pool::use(core::duration ttl, core::time_point until, caller& by,
                       const on_session& done) {
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
    return done(fail(errc::store_unreachable, "the cluster opened no lease in time"));
  }
  if (mine.is_busy) {
    auto turn = std::make_shared<pause>(
        until, [this, ttl, until, &by, done] { use(ttl, until, by, done); });
    mine.waiting.push_back(turn);
    lock.unlock();
    by.wait_for(std::move(turn));
    return;
  }
  mine.is_busy = true;
  const auto known = mine.open;
  lock.unlock();
  refresh(ttl_s, known, until, by, done);
}

void session_pool::refresh(std::int64_t ttl_s, session known, core::time_point until, caller& by,
                           const on_session& done) {
  if (known.id == 0) return grant(ttl_s, until, by, done);
  keep_alive(known.id, until, by, [=, this, &by](result<session> got) {
    if (!got && got.error().code == errc::lease_lost) return grant(ttl_s, until, by, done);
    refreshed(ttl_s, std::move(got), done);
  });
}

void session_pool::grant(std::int64_t ttl_s, core::time_point until, caller& by,
                         const on_session& done) {
  const auto sent = runtime::now();
  // One that was granted and not heard of is used by nobody, and ends by itself.
  cluster_.call(
      {"/v3/lease/grant", lease_grant_json(ttl_s), false}, until, by,
      [=, this](result<answer> got) {
        if (!got) return refreshed(ttl_s, fail(std::move(got.error())), done);
        const auto granted = read_lease(got->body);
        if (!granted) return refreshed(ttl_s, fail(granted.error()), done);
        refreshed(ttl_s, session{granted->id, std::chrono::seconds{granted->ttl_s}, sent}, done);
      });
}

void session_pool::refreshed(std::int64_t ttl_s, result<session> got, const on_session& done) {
  {
    const std::lock_guard guard{m_};
    auto& mine = by_ttl_[ttl_s];
    mine.is_busy = false;
    if (got && !retired_.contains(got->id)) {
      mine.open = *got;
      ours_.insert(got->id);
    }
    for (const auto& one : std::exchange(mine.waiting, {}))
      one->end();
  }
  done(std::move(got));
}

void session_pool::keep_alive(lease_id id, core::time_point until, caller& by, on_session done) {
  const auto sent = runtime::now();
  cluster_.call({"/v3/lease/keepalive", lease_json(id), false}, until, by,
                [=, this, done = std::move(done)](result<answer> got) {
                  if (!got) return done(fail(std::move(got.error())));
                  const auto kept = read_lease(got->body);
                  if (!kept) return done(fail(kept.error()));
                  if (kept->ttl_s <= 0) {
                    retire(id);
                    return done(fail(errc::lease_lost, "the cluster has ended our lease"));
                  }
                  const session now{id, std::chrono::seconds{kept->ttl_s}, sent};
                  {
                    const std::lock_guard guard{m_};
                    for (auto& [ttl_s, one] : by_ttl_)
                      if (one.open.id == id) one.open = now;
                  }
                  done(now);
                });
}

void session_pool::retire(lease_id id) {
  const std::lock_guard guard{m_};
  retired_.insert(id);
  for (auto& [ttl_s, one] : by_ttl_)
    if (one.open.id == id) one.open = {};
}

bool session_pool::is_retired(lease_id id) const {
  const std::lock_guard guard{m_};
  return retired_.contains(id);
}

void session_pool::outlives_us(lease_id id) {
  const std::lock_guard guard{m_};
  kept_.insert(id);
}

void session_pool::end_all(core::time_point until) noexcept {
  std::vector<lease_id> over;
  {
    const std::lock_guard guard{m_};
    for (const auto id : std::exchange(ours_, {}))
      if (!kept_.contains(id)) over.push_back(id);
    by_ttl_.clear();
  }
  for (const auto id : over) {
    if (runtime::now() >= until) return;
    static_cast<void>(cluster_.call({"/v3/lease/revoke", lease_json(id), false}, until));
  }
}

}  // namespace holdfast::stores::etcd
