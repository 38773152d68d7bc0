#include "stores/etcd/etcd_attempt.hpp"

#include <algorithm>
#include <utility>

#include "core/fail.hpp"
#include "core/lock_kind.hpp"
#include "runtime/clock.hpp"
#include "runtime/random.hpp"

namespace holdfast::stores::etcd {

namespace {

// A waiter that hears nothing asks again, and keeps its session alive by that.
constexpr core::duration quiet_max = std::chrono::seconds{5};
constexpr int asks_per_ttl = 4;
// With no watch, because there are too many.
constexpr core::duration poll_pause = std::chrono::milliseconds{250};

// Keys in the way of one attempt; the oldest of them, if there are more.
constexpr std::size_t watched_max = 64;

part part_wanted(bool is_shared, std::uint32_t units) {
  if (!is_shared) return part::whole;
  return units == core::whole ? part::writer : part::reader;
}

core::duration ask_within(core::duration ttl) { return std::min(quiet_max, ttl / asks_per_ttl); }

}  // namespace

etcd_attempt::etcd_attempt(etcd_lock& at, attempt_spec what)
    : lock_{at},
      of_{at.of()},
      spec_{std::move(what)},
      id_{runtime::fresh_owner()},
      key_{at.key_of(id_)},
      part_{part_wanted(at.is_shared(), spec_.units)},
      value_{value_of(spec_.label, part_)} {}

etcd_attempt::~etcd_attempt() = default;

// ---- asking ------------------------------------------------------------------------------------

// One that only asks puts no key where others have theirs. One that waits is put into the queue by
// the same transaction that says who is there: the last of those before it is the one to watch.
// Once its place is known it only reads, which etcd does without writing anything to disks.
transaction etcd_attempt::asking(lease_id lease) const {
  const auto all = lock_.all_keys();
  const put mine{.key = key_, .value = value_, .lease = lease};
  if (lock_.is_shared()) {
    if (created_ > 0) return {{{key_, {}, created_}}, {all}, {}};
    return {{{key_}}, {all, mine}, {all}};
  }
  auto first = all;
  first.limit = 1;
  auto last = first;
  last.sorted = read::order::newest_first;
  last.keys_only = true;
  const read own{.from = key_, .keys_only = true};
  if (created_ > 0) {
    last.created_by = created_ - 1;
    return {{{key_, {}, created_}}, {own, first, last}, {}};
  }
  if (only_asks()) return {{{all.from, all.to}}, {mine}, {own, first}};
  return {{{key_}}, {first, last, mine}, {own, first}};
}

void etcd_attempt::ask(core::time_point until, caller& by, on_answer done) {
  lock_.after_releases(until, by, [=, this, &by](const result<void>& over) {
    if (!over) return done(fail(over.error()));
    of_.sessions.use(spec_.ttl, until, by, [=, this, &by](const result<session>& in) {
      if (!in) return done(fail(in.error()));
      ask_in(*in, false, until, by, done);
    });
  });
}

void etcd_attempt::ask_in(const session& in, bool again, core::time_point until, caller& by,
                          const on_answer& done) {
  of_.servers.call({"/v3/kv/txn", to_json(asking(in.id)), created_ == 0}, until, by,
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
                     const auto said = read_transaction(got->body);
                     if (!said) return done(fail(said.error()));
                     seen_at_ = said->at;
                     if (created_ > 0 && !said->succeeded) {
                       // Its key is gone, with its lease: it comes again, at the end.
                       created_ = 0;
                       return ask_in(in, again, until, by, done);
                     }
                     if (lock_.is_shared()) return told_shared(in, *said, until, by, done);
                     told(in, *said, until, by, done);
                   });
}

bool etcd_attempt::is_in_place(const session& in, const key_value* own, core::time_point until,
                               caller& by, const on_answer& done) {
  is_queued_ = true;
  created_ = own->created;
  lease_ = own->lease;
  if (lease_ == in.id) return true;
  move_to(in, until, by, done);
  return false;
}

void etcd_attempt::told(const session& in, const transaction_answer& said, core::time_point until,
                        caller& by, const on_answer& done) {
  const auto key_at = [&](std::size_t at) -> const key_value* {
    return at < said.reads.size() && !said.reads[at].keys.empty() ? &said.reads[at].keys[0]
                                                                  : nullptr;
  };
  const auto is_ours = [&](const key_value* one) {
    return one != nullptr && is_of(lock_.folder(), one->key);
  };
  const bool was_put = said.succeeded && created_ == 0;
  if (was_put) {
    const bool only_asked = only_asks();
    is_queued_ = true;
    created_ = said.at;
    lease_ = in.id;
    const auto *const first = key_at(0), *const last = key_at(1);
    if (only_asked || first == nullptr) {
      return settle(in, standing{true, true, {}, {}}, until, by, done);
    }
    if (!is_ours(first) || !is_ours(last)) return look(in, until, by, done);
    return settle(in, standing{true, false, *first, *last}, until, by, done);
  }
  const auto *const own = key_at(0), *const first = key_at(1), *const last = key_at(2);
  if (own == nullptr) {
    // Others have keys here, and this attempt only asked.
    if (is_ours(first)) return settle(in, standing{false, false, *first, *first}, until, by, done);
    is_queued_ = true;  // only those of other locks, further down: look at all of them
    return ask_in(in, false, until, by, done);
  }
  if (!is_in_place(in, own, until, by, done)) return;
  if (first != nullptr && first->key == key_) {
    return settle(in, standing{true, true, {}, {}}, until, by, done);
  }
  if (!is_ours(first) || !is_ours(last)) return look(in, until, by, done);
  settle(in, standing{true, false, *first, *last}, until, by, done);
}

void etcd_attempt::told_shared(const session& in, const transaction_answer& said,
                               core::time_point until, caller& by, const on_answer& done) {
  if (said.reads.empty()) return done(fail(errc::incompatible, "the answer lacks the keys"));
  auto all = said.reads[0].keys;
  if (said.succeeded && created_ == 0) all.push_back({key_, value_, said.at, in.id});
  const auto own =
      std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.key == key_; });
  if (own == all.end()) return done(fail(errc::incompatible, "the answer lacks the key"));
  if (!is_in_place(in, &*own, until, by, done)) return;
  const auto place = shared_standing_of(key_, lock_.folder(), all);
  if (place.is_other_kind) return refuse(until, by, done);
  ahead_.clear();
  for (const auto& one : place.ahead)
    if (ahead_.size() < watched_max) ahead_.push_back(one.key);
  settle(in, place.is_in, place.first, done);
}

void etcd_attempt::look(const session& in, core::time_point until, caller& by,
                        const on_answer& done) {
  auto before = lock_.all_keys();
  before.created_by = created_;
  of_.servers.call({"/v3/kv/txn", to_json(transaction{{}, {before}, {}}), false}, until, by,
                   [=, this, &by](const result<answer>& got) {
                     if (!got) return done(fail(got.error()));
                     const auto said = read_transaction(got->body);
                     if (!said) return done(fail(said.error()));
                     seen_at_ = said->at;
                     if (lock_.is_shared()) return told_shared(in, *said, until, by, done);
                     const auto place = said->reads.empty() ? standing{}
                                                            : standing_of(key_, lock_.folder(),
                                                                          said->reads[0].keys);
                     settle(in, place, until, by, done);
                   });
}

// Its session is retired: the key goes on under the new one, where it stands.
void etcd_attempt::move_to(const session& in, core::time_point until, caller& by,
                           const on_answer& done) {
  const transaction what{
      {{key_, {}, created_}}, {put{.key = key_, .lease = in.id, .keeps_value = true}}, {}};
  of_.servers.call({"/v3/kv/txn", to_json(what), true}, until, by,
                   [=, this, &by](const result<answer>& got) {
                     if (!got && is_lease_missing(got.error())) {
                       of_.sessions.retire(in.id);
                       return done(fail(errc::store_unreachable, "the lease ended meanwhile"));
                     }
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

void etcd_attempt::settle(const session& in, const standing& place, core::time_point until,
                          caller& by, const on_answer& done) {
  if (place.first && part_of(*place.first) != part::whole) return refuse(until, by, done);
  ahead_.clear();
  if (place.ahead) ahead_.push_back(place.ahead->key);
  if (!place.is_there) created_ = 0;
  settle(in, place.owns, place.first, done);
}

void etcd_attempt::settle(const session& in, bool is_granted, const std::optional<key_value>& first,
                          const on_answer& done) {
  if (is_granted) {
    of_.held->add(id_, {key_, created_, lease_});
    return done(
        core::grant{fencing_token{static_cast<std::uint64_t>(created_)}, in.ttl, in.counted_from});
  }
  core::busy busy;
  if (first) busy.holder = holder_of(*first);
  busy.queued = is_queued_;
  busy.ask_within = ask_within(in.ttl);
  done(std::move(busy));
}

// A name stands for one kind at a time. What was put to find that out is taken back.
void etcd_attempt::refuse(core::time_point until, caller& by, const on_answer& done) {
  const auto why =
      fail(errc::wrong_type, "this name is in use for a lock of another kind: choose another one");
  if (!is_queued_) return done(why);
  remove_key(lock_.shared(), {.folder = lock_.folder(), .key = key_, .lease = lease_}, until, by,
             [this, why, done](const result<removal>&) {
               is_queued_ = false;
               created_ = 0;
               done(why);
             });
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
  if (!ahead_.empty()) {
    // From after what was seen: a removal since then is told at once.
    std::string keys;
    for (const auto& one : ahead_)
      keys += watch_json(one, seen_at_ + 1, lock_.is_shared());  // a writer may become a reader
    const auto wake = [over] { over->end(); };
    const auto stream = of_.servers.open_stream(
        {"/v3/watch", std::move(keys), false},
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
