#include "stores/etcd/etcd_lock.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "core/fail.hpp"
#include "core/lock_kind.hpp"
#include "runtime/clock.hpp"
#include "stores/background_caller.hpp"
#include "stores/etcd/etcd_attempt.hpp"

namespace holdfast::stores::etcd {

namespace {

renewal refused(loss why) { return {false, why, {}, {}, {}}; }

revision revision_of(fencing_token token) { return static_cast<revision>(token.value()); }

}  // namespace

std::unique_ptr<attempt> etcd_lock::begin(attempt_spec what) {
  return std::make_unique<etcd_attempt>(*this, std::move(what));
}

read etcd_lock::all_keys() const {
  return {.from = folder_, .to = end_of_prefix(folder_), .sorted = read::order::oldest_first};
}

// ---- giving back -------------------------------------------------------------------------------

removing etcd_lock::removing_of(const core::owner_id& id) {
  const auto held = of_->held->remove(id);
  return {.folder = folder_,
          .key = key_of(id),
          .created = held ? held->created : 0,
          .lease = held ? held->lease : 0};
}

void etcd_lock::release(const core::owner_id& id, core::time_point until, caller& by,
                        on_removal done) {
  remove_key(of_, removing_of(id), until, by, std::move(done));
}

// Whatever keeps the quick way from working, the slow way is tried in the background.
void etcd_lock::release_later(const core::owner_id& id, core::time_point give_up) noexcept {
  const auto what = removing_of(id);
  of_->release_began();
  {
    const std::lock_guard guard{m_};
    ++releases_;
  }
  const auto first = core::release_machine{give_up, 0}.patience(runtime::now());
  remove_key_once(of_, what, first,
                  [self = shared_from_this(), what, give_up](const result<removal>& how) {
                    if (how) return self->release_over(how);
                    auto again = what;
                    again.is_repeated = how.error().code == errc::outcome_unknown;
                    begin_in_background(*self->of_->background, [self, again, give_up](caller& by) {
                      remove_key(self->of_, again, give_up, by,
                                 [self](const result<removal>& said) { self->release_over(said); });
                    });
                  });
}

void etcd_lock::release_over(const result<removal>& how) {
  std::vector<std::shared_ptr<pause>> waiting;
  {
    const std::lock_guard guard{m_};
    if (--releases_ == 0) waiting = std::exchange(until_released_, {});
  }
  for (const auto& one : waiting)
    one->end();
  if (!how && of_->events.release_given_up) of_->events.release_given_up(name_, how.error());
  of_->release_ended();
}

void etcd_lock::after_releases(core::time_point until, caller& by,
                               std::function<void(result<void>)> done) {
  std::unique_lock lock{m_};
  if (releases_ == 0) {
    lock.unlock();
    return done({});
  }
  auto turn = std::make_shared<pause>(until, [until, done = std::move(done)] {
    if (runtime::now() < until) return done({});
    done(fail(errc::store_unreachable,
              "the cluster has not answered that the lock was given back, which comes first"));
  });
  until_released_.push_back(turn);
  lock.unlock();
  by.wait_for(std::move(turn));
}

// The session that it is under must not be ended with this client.
void etcd_lock::forget(const core::owner_id& id) noexcept {
  if (const auto held = of_->held->remove(id)) of_->sessions.outlives_us(held->lease);
}

// ---- extending ---------------------------------------------------------------------------------

void etcd_lock::extend(const core::owner_id& id, fencing_token token, core::duration ttl,
                       core::time_point until, caller& by, on_renewal done) {
  of_->sessions.use(ttl, until, by,
                    [=, this, &by, done = std::move(done)](const result<session>& in) {
                      if (!in) return done(fail(in.error()));
                      extend_in(*in, id, token, {}, until, by, done);
                    });
}

// The key stays, and so does its token; it is kept by this session from now on.
void etcd_lock::extend_in(const session& in, const core::owner_id& id, fencing_token token,
                          const std::string& value, core::time_point until, caller& by,
                          const on_renewal& done) {
  const auto key = key_of(id);
  const auto created = revision_of(token);
  auto first = all_keys();
  first.limit = 1;
  first.keys_only = true;
  const transaction what{
      {{key, {}, created, created == 0}},
      {put{.key = key, .value = value, .lease = in.id, .keeps_value = value.empty()},
       read{.from = key, .keys_only = true}},
      {first}};
  of_->servers.call(
      {"/v3/kv/txn", to_json(what), true}, until, by, [=, this](const result<answer>& got) {
        if (!got && is_lease_missing(got.error())) {
          of_->sessions.retire(in.id);
          of_->held->lose_all_under(in.id);
          return done(fail(errc::outcome_unknown, "the lease ended meanwhile: try again"));
        }
        if (!got) return done(fail(got.error()));
        const auto said = read_transaction(got->body);
        if (!said) return done(fail(said.error()));
        if (!said->succeeded) {
          const bool is_free = said->reads.empty() || said->reads[0].keys.empty();
          return done(refused(is_free ? loss::deleted : loss::taken));
        }
        if (said->reads.size() < 2 || said->reads[1].keys.empty())
          return done(fail(errc::incompatible, "the cluster's answer lacks the key"));
        const auto there = said->reads[1].keys[0].created;
        of_->held->add(id, {key, there, in.id});
        done(renewal{true, loss::none, in.ttl, in.counted_from,
                     fencing_token{static_cast<std::uint64_t>(there)}});
      });
}

// The value is read, and put again as a reader's: the key stays, and so does the token.
void etcd_lock::downgrade(const core::owner_id& id, fencing_token token, core::duration ttl,
                          core::time_point until, caller& by, on_renewal done) {
  of_->servers.call({"/v3/kv/range", to_json(read{.from = key_of(id)}), false}, until, by,
                    [=, this, &by, done = std::move(done)](const result<answer>& got) {
                      if (!got) return done(fail(got.error()));
                      const auto said = read_found(got->body);
                      if (!said) return done(fail(said.error()));
                      if (said->keys.empty()) return done(refused(loss::deleted));
                      const auto value = as_readers(said->keys[0].value);
                      of_->sessions.use(ttl, until, by, [=, this, &by](const result<session>& in) {
                        if (!in) return done(fail(in.error()));
                        extend_in(*in, id, token, value, until, by, done);
                      });
                    });
}

// ---- looking -----------------------------------------------------------------------------------

result<std::vector<key_value>> etcd_lock::keys_here(core::time_point until) {
  const auto got = of_->servers.call({"/v3/kv/range", to_json(all_keys()), false}, until);
  if (!got) return fail(got.error());
  auto all = read_found(got->body);
  if (!all) return fail(std::move(all.error()));
  std::erase_if(all->keys, [&](const auto& one) { return !is_of(folder_, one.key); });
  return std::move(all->keys);
}

result<lock_status> etcd_lock::inspect(core::time_point until) {
  const auto all = keys_here(until);
  if (!all) return fail(all.error());
  lock_status status;
  status.name = name_;
  if (all->empty()) return status;
  if (part_of(all->front()) != part::whole) {
    status.kind = lock_status::form::shared_mutex;
    status.capacity = core::units_max;
  }
  status.holding = holders_in(*all);
  status.waiting = all->size() - status.holding;
  for (std::size_t i = 0; i < all->size(); ++i) {
    const auto& one = (*all)[i];
    if (i < status.holding) {
      auto who = holder_of(one);
      status.units_in_use += who.units;
      if (status.holders.size() < waiters_shown_max) status.holders.push_back(std::move(who));
    } else if (status.waiters.size() < waiters_shown_max) {
      status.waiters.push_back(waiter_of(one));
    }
  }
  status.holder = status.holders.front();
  std::set<lease_id> leases;
  for (std::size_t i = 0; i < status.holders.size(); ++i)
    leases.insert((*all)[i].lease);
  for (const auto lease : leases) {
    if (lease == 0) continue;
    const auto asked = of_->servers.call({"/v3/lease/timetolive", lease_json(lease), false}, until);
    if (!asked) return fail(asked.error());
    const auto left = read_lease(asked->body);
    if (!left) return fail(left.error());
    const std::chrono::seconds remaining{std::max<std::int64_t>(0, left->ttl_s)};
    // Until all have let go.
    status.remaining = std::max<std::chrono::milliseconds>(
        remaining, status.remaining.value_or(std::chrono::milliseconds{}));
  }
  return status;
}

result<void> etcd_lock::break_with(fencing_token token, core::time_point until) {
  const auto all = keys_here(until);
  if (!all) return fail(all.error());
  if (all->empty()) return fail(errc::not_held, "nobody holds the lock; nothing was changed");
  const auto end = all->begin() + static_cast<std::ptrdiff_t>(holders_in(*all));
  const auto at = std::find_if(all->begin(), end,
                               [&](const auto& one) { return one.created == revision_of(token); });
  if (at == end) {
    return fail(errc::not_held, "the lock is held with token " +
                                    std::to_string(all->front().created) + ", not " +
                                    to_string(token) + "; nothing was changed");
  }
  const auto how = wait_here<result<removal>>([&](auto& by, auto done) {
    remove_key(of_, {.folder = folder_, .key = at->key, .created = at->created}, until, by,
               std::move(done));
  });
  if (!how) return fail(how.error());
  if (*how == removal::released) return {};
  if (*how == removal::unsure) {
    return fail(errc::outcome_unknown,
                "the cluster did not answer the first time: it is not held with that token now");
  }
  return fail(errc::not_held, "the lock was given back meanwhile; nothing was changed");
}

}  // namespace holdfast::stores::etcd
