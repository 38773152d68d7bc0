#include "stores/etcd/etcd_attempt.hpp"

#include <algorithm>
#include <utility>

#include "core/fail.hpp"
#include "runtime/clock.hpp"
#include "runtime/random.hpp"

namespace holdfast::stores::etcd {

namespace {

// A waiter that hears nothing asks again, and keeps its session alive by that.
constexpr core::duration quiet_max = std::chrono::seconds{5};
constexpr int asks_per_ttl = 4;
// With no watch, because there are too many.
constexpr core::duration poll_pause = std::chrono::milliseconds{250};

core::duration ask_within(core::duration ttl) { return std::min(quiet_max, ttl / asks_per_ttl); }

}  // namespace

etcd_attempt::etcd_attempt(etcd_lock& at, attempt_spec what)
    : lock_{at},
      of_{at.of()},
      spec_{std::move(what)},
      id_{runtime::fresh_owner()},
      key_{at.key_of(id_)},
      value_{value_of(spec_.label)} {}

etcd_attempt::~etcd_attempt() = default;

// ---- asking ------------------------------------------------------------------------------------

// One that only asks puts no key where others have theirs. One that waits is put into the queue by
// the same transaction that says who is there: the last of those before it is the one to watch.
transaction etcd_attempt::asking(lease_id lease) const {
  const auto all = lock_.all_keys();
  auto first = all;
  first.limit = 1;
  auto last = first;
  last.sorted = read::order::newest_first;
  last.keys_only = true;
  if (created_ > 0) last.created_by = created_ - 1;
  const read own{.from = key_, .keys_only = true};
  const put mine{.key = key_, .value = value_, .lease = lease};
  if (only_asks()) return {{{all.from, all.to}}, {mine}, {own, first}};
  return {{{key_}}, {first, last, mine}, {own, first, last}};
}

void etcd_attempt::ask(core::time_point until, caller& by, on_answer done) {
  lock_.after_releases(until, by, [=, this, &by] {
    of_.sessions.use(spec_.ttl, until, by, [=, this, &by](const result<session>& in) {
      if (!in) return done(fail(in.error()));
      ask_in(*in, false, until, by, done);
    });
  });
}

void etcd_attempt::ask_in(const session& in, bool again, core::time_point until, caller& by,
                          const on_answer& done) {
  of_.servers.call({"/v3/kv/txn", to_json(asking(in.id)), true}, until, by,
                   [=, this, &by](const result<answer>& got) {
                     if (!got && is_lease_missing(got.error())) {
                       of_.sessions.retire(in.id);
                       of_.held->lose_all_under(in.id);
                       if (again)
                         return done(fail(errc::store_unreachable, "etcd ends our leases at once"));
                       return of_.sessions.use(spec_.ttl, until, by,
                                               [=, this, &by](const auto& fresh) {
                                                 if (!fresh) return done(fail(fresh.error()));
                                                 ask_in(*fresh, true, until, by, done);
                                               });
                     }
                     const bool may_come_late =
                         got ? got->is_repeated : got.error().code == errc::outcome_unknown;
                     if (may_come_late) {
                       is_unanswered_ = true;
                       of_.sessions.retire(in.id);
                     }
                     if (!got) return done(fail(got.error()));
                     told(in, *got, until, by, done);
                   });
}

void etcd_attempt::told(const session& in, const answer& got, core::time_point until, caller& by,
                        const on_answer& done) {
  const auto said = read_transaction(got.body);
  if (!said) return done(fail(said.error()));
  const auto key_of = [&](std::size_t at) -> const key_value* {
    return at < said->reads.size() && !said->reads[at].keys.empty() ? &said->reads[at].keys[0]
                                                                    : nullptr;
  };
  seen_at_ = said->at;
  const bool only_asked = only_asks();
  const auto* const own = said->succeeded ? nullptr : key_of(0);
  const auto* const first = key_of(said->succeeded ? 0 : 1);
  if (said->succeeded) {
    is_queued_ = true;
    created_ = said->at;
    lease_ = in.id;
    if (only_asked || first == nullptr) return settle(in, {true, true, {}, {}}, done);
    const auto* const last = key_of(1);
    const bool is_clear =
        is_of(lock_.folder(), first->key) && last != nullptr && is_of(lock_.folder(), last->key);
    if (!is_clear) return look(in, until, by, done);
    return settle(in, {true, false, *first, *last}, done);
  }
  if (own == nullptr) {
    // Others have keys here, and this attempt only asked.
    if (first != nullptr && is_of(lock_.folder(), first->key)) {
      return settle(in, {false, false, *first, *first}, done);
    }
    is_queued_ = true;  // only those of other locks, further down: look at all of them
    return ask_in(in, false, until, by, done);
  }
  is_queued_ = true;
  const bool knew = created_ == own->created;
  created_ = own->created;
  lease_ = own->lease;
  if (lease_ != in.id) return move_to(in, until, by, done);
  if (first != nullptr && first->key == key_) return settle(in, {true, true, {}, {}}, done);
  const auto* const last = only_asked ? nullptr : key_of(2);
  const bool is_clear = knew && first != nullptr && last != nullptr &&
                        is_of(lock_.folder(), first->key) && is_of(lock_.folder(), last->key);
  if (!is_clear) return look(in, until, by, done);
  settle(in, {true, false, *first, *last}, done);
}

void etcd_attempt::look(const session& in, core::time_point until, caller& by,
                        const on_answer& done) {
  auto before = lock_.all_keys();
  before.created_by = created_;
  of_.servers.call({"/v3/kv/txn", to_json(transaction{{}, {before}, {}}), false}, until, by,
                   [=, this](const result<answer>& got) {
                     if (!got) return done(fail(got.error()));
                     const auto said = read_transaction(got->body);
                     if (!said) return done(fail(said.error()));
                     seen_at_ = said->at;
                     const auto place = said->reads.empty() ? standing{}
                                                            : standing_of(key_, lock_.folder(),
                                                                          said->reads[0].keys);
                     settle(in, place, done);
                   });
}

// Its session is retired: the key goes on under the new one, where it stands.
void etcd_attempt::move_to(const session& in, core::time_point until, caller& by,
                           const on_answer& done) {
  const transaction what{
      {{key_, {}, created_}}, {put{.key = key_, .lease = in.id, .keeps_value = true}}, {}};
  of_.servers.call({"/v3/kv/txn", to_json(what), true}, until, by,
                   [=, this, &by](const result<answer>& got) {
                     if (!got) return done(fail(got.error()));
                     const auto said = read_transaction(got->body);
                     if (!said) return done(fail(said.error()));
                     if (!said->succeeded) {
                       return done(fail(errc::store_unreachable, "the key went meanwhile"));
                     }
                     lease_ = in.id;
                     look(in, until, by, done);
                   });
}

void etcd_attempt::settle(const session& in, const standing& place, const on_answer& done) {
  if (place.owns) {
    of_.held->add(id_, {key_, created_, lease_});
    return done(
        core::grant{fencing_token{static_cast<std::uint64_t>(created_)}, in.ttl, in.counted_from});
  }
  ahead_ = place.ahead;
  core::busy busy;
  if (place.first) busy.holder = holder_of(*place.first);
  busy.queued = place.is_there;
  // Its key is gone, with its lease: it asks at once for another place.
  busy.ask_within = place.is_there || !spec_.may_wait ? ask_within(in.ttl) : core::duration{};
  done(std::move(busy));
}

// ---- waiting -----------------------------------------------------------------------------------

void etcd_attempt::wait(core::time_point until, caller& by, on_woken done) {
  const auto state = std::make_shared<std::uint64_t>(0);
  const auto over = std::make_shared<pause>(until, [this, state, done = std::move(done)] {
    std::uint64_t stream = 0;
    {
      const std::lock_guard guard{m_};
      waiting_.reset();
      stream = *state;
    }
    if (stream != 0) of_.servers.close_stream(stream);
    done(std::nullopt);
  });
  {
    const std::lock_guard guard{m_};
    waiting_ = over;
    if (is_woken_) over->end();
  }
  if (ahead_) {
    // From after what was seen: a removal since then is told at once.
    const auto wake = [over] { over->end(); };
    const auto stream = of_.servers.open_stream(
        {"/v3/watch", watch_json(ahead_->key, seen_at_ + 1), false},
        [wake](std::string_view line) {
          const auto said = read_watch(line);
          // Canceled: it asks again, and learns what it missed.
          if (said && (said->canceled || !said->events.empty())) wake();
        },
        // Of a server that is away: soon, and on another one.
        [over] { over->end_by(runtime::now() + poll_pause); });
    if (stream == 0) over->end_by(runtime::now() + poll_pause);
    const std::lock_guard guard{m_};
    *state = stream;
  }
  by.wait_for(over);
}

void etcd_attempt::wake() {
  const std::lock_guard guard{m_};
  is_woken_ = true;
  if (waiting_) waiting_->end();
}

void etcd_attempt::withdraw(core::time_point until, caller& by, on_removal done) {
  static_cast<void>(of_.held->remove(id_));
  remove_key(
      lock_.shared(),
      {.folder = lock_.folder(), .key = key_, .lease = lease_, .is_repeated = is_unanswered_},
      until, by, std::move(done));
}

}  // namespace holdfast::stores::etcd
