#include "sim/redis_model.hpp"

#include <algorithm>
#include <charconv>

#include "stores/redis/inbox.hpp"
#include "stores/redis/redis_lock.hpp"

namespace holdfast::sim {

namespace {

using stores::redis::hand_over_calls_max;
using stores::redis::hand_over_unfinished;

constexpr std::string_view queue_entries_max = "10000";  // as in redis_lock.cpp

std::string milliseconds_text(core::duration value) {
  return std::to_string(std::chrono::ceil<std::chrono::milliseconds>(value).count());
}

std::uint64_t number(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

core::owner_id fresh_id(random_stream& random) {
  const auto high = random.bits();
  return core::owner_id::from_bits(high, random.bits());
}

std::vector<std::string_view> four_keys(std::size_t lock) {
  const auto& keys = keys_of(lock);
  return {keys.lock, keys.slot, keys.queue, keys.waiters};
}

std::size_t lock_named(std::string_view key) {
  for (std::size_t lock = 0; lock < locks_max; ++lock) {
    if (keys_of(lock).lock == key) return lock;
  }
  return 0;
}

}  // namespace

redis_model::redis_model(network& net, process& in, node& to, const lock_scripts& scripts,
                         const left_out& without, std::uint64_t seed)
    : in_{in},
      to_{to},
      scripts_{scripts},
      without_{without},
      random_{seed, 11},
      calls_{net, in, to, 2, random_.bits()},
      renewals_{net, in, to, 1, random_.bits()},
      locks_(locks_max),
      inbox_name_{std::string{stores::redis::inbox_prefix} +
                  std::string{fresh_id(random_).text()}} {}

redis_model::waiting& redis_model::memory_of(stores::blocking::attempt& who) {
  if (!who.memory) who.memory = std::make_shared<waiting>();
  return *static_cast<waiting*>(who.memory.get());
}

redis_model::call redis_model::release_script(std::size_t lock, std::string_view value_begins,
                                              std::string_view entry,
                                              std::string_view spared) const {
  return std::make_shared<script_request>(
      script_request{scripts_.release,
                     four_keys(lock),
                     {std::string{value_begins}, std::string{entry}, std::string{spared}}});
}

// As in redis_lock.cpp: a release behind each ask that was not answered, on its own connection.
std::size_t redis_model::follow_unanswered(std::size_t lock, stores::blocking::attempt& who,
                                           std::string_view spared) {
  auto& mine = memory_of(who);
  const auto script = release_script(lock, who.id.text(), mine.entry, spared);
  std::size_t open = 0;
  for (const auto& one : mine.unanswered) {
    if (one.answered() && !one.on->broken()) continue;
    ++open;
    if (!one.on->broken()) one.on->post(script, nullptr);
  }
  return open;
}

// ---- asking ------------------------------------------------------------------------------------

void redis_model::ask(std::size_t lock, stores::blocking::attempt& who, core::time_point until,
                      on_answer given) {
  auto done = [this, lock, &who, given = std::move(given)](result<core::answer> answer) {
    const auto* granted = answer ? std::get_if<core::grant>(&*answer) : nullptr;
    if (granted != nullptr && who.memory && !memory_of(who).unanswered.empty()) {
      follow_unanswered(lock, who, stores::redis::value_begins(who.id, granted->token));
    }
    given(std::move(answer));
  };
  if (auto granted = take_delivered(who)) return done(core::answer{*granted});
  auto what = std::make_shared<asking>(
      asking{lock, &who, until, std::move(done), who.may_wait && inbox_ != nullptr});
  ask_once(what);
}

std::optional<core::grant> redis_model::take_delivered(stores::blocking::attempt& who) {
  if (!who.memory || memory_of(who).entry.empty()) return std::nullopt;
  const auto found = waiters_.find(who.id);
  if (found == waiters_.end()) return std::nullopt;
  const auto sent = std::exchange(found->second.granted, std::nullopt);
  if (!sent) return std::nullopt;
  auto granted = memory_of(who).place.accept(sent->token, sent->claim, sent->block);
  if (!granted && without_.stale_grants) {
    granted =
        memory_of(who).place.accept(fencing_token{~std::uint64_t{0}}, sent->claim, sent->block);
    granted->token = sent->token;
  }
  if (granted && without_.early_count) granted->counted_from = in_.now();
  if (granted && without_.claim) granted->ttl = who.ttl;
  if (granted) waiters_.erase(who.id);
  return granted;
}

void redis_model::ask_once(const std::shared_ptr<asking>& what) {
  auto& who = *what->who;
  if (what->calls++ == hand_over_calls_max) {
    return what->done(fail(errc::store_busy, "the lock's queue is full of waiters that are gone"));
  }
  const std::string holder = "host=" + in_.name + ";pid=1;label=";
  if (what->joining && memory_of(who).entry.empty()) {
    stores::redis::queue_entry entry;
    entry.id = who.id;
    entry.claim = std::chrono::ceil<std::chrono::milliseconds>(who.claim_ttl);
    entry.block = who.block;
    entry.inbox = inbox_name_;
    entry.joined = std::chrono::milliseconds{in_.wall_ms()};
    entry.holder = holder;
    memory_of(who).entry = entry.text();
    waiters_[who.id];
  }
  auto script = std::make_shared<script_request>(
      script_request{scripts_.acquire,
                     four_keys(what->lock),
                     {std::string{who.id.text()}, milliseconds_text(who.ttl),
                      std::to_string(stores::redis::layout_written),
                      std::to_string(stores::redis::layout_readable_max), holder,
                      what->joining ? memory_of(who).entry : std::string{},
                      std::string{queue_entries_max}, std::to_string(who.block)}});
  ++who.asks;
  const auto counted_from = in_.now();
  auto& mine = locks_[what->lock];
  if (mine.last_release.answered()) mine.last_release = {};
  calls_.run(std::move(script), what->until, mine.last_release,
             [this, what, counted_from, releasing = mine.releasing](auto said, trace_model used) {
               if (said) return read_answer(what, *said, counted_from, releasing);
               if (said.error().code == errc::outcome_unknown) {
                 memory_of(*what->who).unanswered.push_back(used);
               }
               what->done(fail(std::move(said.error())));
             });
}

void redis_model::read_answer(const std::shared_ptr<asking>& what, const reply& said,
                              core::time_point counted_from,
                              const std::vector<core::owner_id>& releasing) {
  auto& who = *what->who;
  const auto& fields = said.items;
  if (fields.empty()) return what->done(fail(errc::incompatible, said.shown()));
  const auto kind = fields[0].integer;
  if (kind == 3) return ask_once(what);
  if (kind == 1) {
    const fencing_token token{number(fields[1].text)};
    const bool granted_before = fields.size() > 2;
    const auto mine = waiters_.find(who.id);
    const bool came =
        mine != waiters_.end() && mine->second.granted && mine->second.granted->token >= token;
    if (mine != waiters_.end()) waiters_.erase(mine);
    if (granted_before && !came && !without_.settling && !settled_.add(who.id, token)) {
      return what->done(fail(errc::overloaded, "more grants to settle than one world can have"));
    }
    const auto from = without_.early_count ? in_.now() : counted_from;
    return what->done(core::answer{core::grant{token, who.ttl, from, who.block}});
  }
  const auto& value = fields[2].text;
  auto holder = stores::redis::parse_holder(value);
  if (!holder) return what->done(fail(std::move(holder.error())));
  core::busy busy{std::move(*holder), std::nullopt, kind == 2, {}};
  if (fields[1].integer >= 0) busy.remaining = std::chrono::milliseconds{fields[1].integer};
  if (kind == 2) {
    memory_of(who).place.queued(counted_from, number(fields[3].text));
    if (fields[4].integer != 1) busy.ask_within = core::ask_within(who.claim_ttl);
  } else {
    const auto id =
        core::owner_id::parse(std::string_view{value}.substr(0, core::owner_id::digits));
    if (id && std::find(releasing.begin(), releasing.end(), *id) != releasing.end()) {
      // Our own release did not get through yet.
      return by_id(release_script(what->lock, id->text(), {}), what->until, false,
                   [this, what](auto freed) {
                     if (freed) return ask_once(what);
                     what->done(fail(std::move(freed.error())));
                   });
    }
  }
  if (what->joining || !who.may_wait) return what->done(core::answer{std::move(busy)});
  // Busy, and we are to wait. If there can be no inbox, that is by polling.
  open_inbox(what->until, [this, what, busy = std::move(busy)](bool open) {
    if (!open) return what->done(core::answer{busy});
    what->joining = true;
    ask_once(what);
  });
}

// ---- the inbox ---------------------------------------------------------------------------------

// One at a time; the others are answered with it.
void redis_model::open_inbox(core::time_point until, std::function<void(bool)> done) {
  if (inbox_ != nullptr) return done(true);
  opening_.push_back(std::move(done));
  if (opening_.size() > 1) return;
  const auto finish = [this, settled = std::make_shared<bool>(false)](connection* open) {
    if (std::exchange(*settled, true)) return;
    inbox_ = open;
    for (const auto& one : std::exchange(opening_, {}))
      one(open != nullptr);
  };
  calls_.open_apart(until, [this, until, finish](connection* fresh) {
    if (fresh == nullptr) return finish(nullptr);
    fresh->tell.answered = [fresh, finish](const reply&) { finish(fresh); };
    fresh->tell.pushed = [this](std::string text) {
      unread_.push_back(std::move(text));
      read_inbox();
    };
    fresh->tell.broken = [this, fresh, finish] {
      finish(nullptr);
      if (inbox_ == fresh) inbox_broke();
    };
    in_.at(until, [this, fresh, finish] {
      if (inbox_ != fresh) fresh->close();
      finish(nullptr);
    });
    fresh->subscribe(inbox_name_);
  });
}

// Whoever waits asks again, and that opens it anew.
void redis_model::inbox_broke() {
  inbox_ = nullptr;
  unread_.clear();
  settled_.clear();
  std::vector<core::owner_id> ids;
  for (const auto& [id, one] : waiters_) {
    if (one.wake) ids.push_back(id);
  }
  for (const auto& id : ids)
    wake_waiter(id);
}

// There is no thread behind it: of those who wait, one reads for all.
void redis_model::read_inbox() {
  const bool somebody = std::any_of(waiters_.begin(), waiters_.end(),
                                    [](const auto& one) { return one.second.wake != nullptr; });
  if (!somebody) return;
  for (const auto& text : std::exchange(unread_, {})) {
    const auto sent = stores::redis::parse_grant(text);
    if (!sent) continue;
    const auto found = waiters_.find(sent->id);
    if (found != waiters_.end()) {
      found->second.granted = message{sent->token, sent->claim, sent->block};
      wake_waiter(sent->id);
    } else if (sent->token != fencing_token{} && !settled_.knows(sent->id, sent->token)) {
      // Granted to an attempt that nobody here knows any more.
      const auto value = without_.stray_token ? std::string{sent->id.text()}
                                              : stores::redis::value_begins(sent->id, sent->token);
      calls_.post(release_script(lock_named(sent->key), value, {}), {}, nullptr);
    }
  }
}

void redis_model::wait(std::size_t, stores::blocking::attempt& who, core::time_point until,
                       on_woken done) {
  // At `until`, by a message or by a stop, whichever is first.
  const auto settled = std::make_shared<bool>(false);
  const bool joined = who.memory && !memory_of(who).entry.empty();
  auto& mine = joined ? waiters_[who.id] : sleepers_[who.id];
  mine.wake = [settled, done = std::move(done)] {
    *settled = true;
    done();
  };
  in_.at(until, [this, settled, id = who.id] {
    if (!*settled) wake_waiter(id);
  });
  if (!joined) return;
  if (mine.granted || inbox_ == nullptr) return wake_waiter(who.id);
  read_inbox();
}

void redis_model::wake_waiter(const core::owner_id& id) {
  for (auto* all : {&waiters_, &sleepers_}) {
    const auto found = all->find(id);
    if (found == all->end()) continue;
    if (const auto woken = std::exchange(found->second.wake, nullptr)) return woken();
  }
}

void redis_model::wake(stores::blocking::attempt& who) { wake_waiter(who.id); }

// ---- giving back -------------------------------------------------------------------------------

void redis_model::by_id(call script, core::time_point until, bool unanswered_before,
                        on_removal done) {
  auto what = std::make_shared<releasing_by_id>(releasing_by_id{
      std::move(script), until, core::release_machine{until, random_.bits()}, std::move(done)});
  if (unanswered_before) {
    static_cast<void>(what->machine.on_failure(errc::outcome_unknown, until));
  }
  by_id_again(what);
}

void redis_model::by_id_again(const std::shared_ptr<releasing_by_id>& what) {
  calls_.run(what->script, what->machine.patience(in_.now()), {}, [this, what](auto said, auto) {
    if (said) {
      const auto code = said->integer;
      if (code == hand_over_unfinished && ++what->calls < hand_over_calls_max) {
        what->was_ours = true;
        return by_id_again(what);
      }
      return what->done(what->machine.on_answer(code > 0 || what->was_ours ? core::removal::released
                                                : code == 0                ? core::removal::gone
                                                                           : core::removal::taken));
    }
    const auto again = what->machine.on_failure(said.error().code, in_.now());
    if (!again) {
      if (what->machine.went_unanswered()) said.error().code = errc::outcome_unknown;
      return what->done(fail(std::move(said.error())));
    }
    in_.at(*again, [this, what] { by_id_again(what); });
  });
}

void redis_model::withdraw(std::size_t lock, stores::blocking::attempt& who, core::time_point until,
                           on_removal done) {
  if (without_.withdrawing) return done(core::removal::gone);
  const auto open = follow_unanswered(lock, who, {});
  const auto script = release_script(lock, who.id.text(), memory_of(who).entry);
  by_id(script, until, false, [this, &who, open, done = std::move(done)](auto said) {
    waiters_.erase(who.id);
    if (!said) return done(std::move(said));
    const bool sure =
        without_.doubt || core::surely_withdrawn(who.asks, open, *said == core::removal::released);
    done(sure ? *said : core::removal::unsure);
  });
}

void redis_model::release(std::size_t lock, const core::owner_id& id, core::time_point until,
                          on_removal done) {
  by_id(release_script(lock, id.text(), {}), until, false, std::move(done));
}

void redis_model::release_later(std::size_t lock, const core::owner_id& id,
                                core::time_point give_up) {
  const auto script = release_script(lock, id.text(), {});
  auto& mine = locks_[lock];
  const auto ended = [this, lock, id] { std::erase(locks_[lock].releasing, id); };
  const auto try_again = [this, script, give_up, ended](bool unanswered) {
    by_id(script, give_up, unanswered, [ended](const auto&) { ended(); });
  };
  mine.releasing.push_back(id);
  auto sent = calls_.post(script, mine.last_release, [ended, try_again](auto said) {
    if (said && said->integer != hand_over_unfinished) return ended();
    try_again(!said);
  });
  if (sent.on == nullptr) return try_again(false);
  mine.last_release = sent;
}

void redis_model::renew(const std::vector<renewing>& leases, core::time_point until,
                        on_renewals done) {
  auto script = std::make_shared<script_request>(script_request{scripts_.renew, {}, {}});
  for (const auto& one : leases) {
    script->keys.push_back(keys_of(one.lock).lock);
    script->args.emplace_back(one.id.text());
    script->args.push_back(milliseconds_text(one.ttl));
    script->args.push_back(std::to_string(one.token.value()));
  }
  const auto counted_from = in_.now();
  renewals_.run(
      std::move(script), until, {},
      [this, leases, counted_from, done = std::move(done)](auto said, auto) {
        if (!said) return done(fail(std::move(said.error())));
        if (said->items.size() != leases.size() + 2) {
          return done(fail(errc::incompatible, said->shown()));
        }
        std::vector<stores::renewal> all;
        for (std::size_t i = 0; i < leases.size(); ++i) {
          const auto& one = said->items[i + 2];
          if (one.type == reply::kind::text) {
            all.push_back({true, loss::none, leases[i].ttl,
                           without_.early_count ? in_.now() : counted_from,
                           fencing_token{number(one.text)}});
          } else {
            all.push_back({false, one.integer == 0 ? loss::deleted : loss::taken, {}, {}, {}});
          }
        }
        done(std::move(all));
      });
}

bool redis_model::may_arrive_late(const stores::blocking::attempt& who) const {
  if (!who.memory) return false;
  const auto& mine = *static_cast<const waiting*>(who.memory.get());
  return std::any_of(mine.unanswered.begin(), mine.unanswered.end(),
                     [](const auto& one) { return !one.answered() || one.on->broken(); });
}

bool redis_model::has_at_store(std::size_t lock, const core::owner_id& id) {
  const auto* found = to_.data.find(keys_of(lock).lock, to_.wall_us() / 1000);
  const auto* value = found == nullptr ? nullptr : std::get_if<std::string>(&found->value);
  return value != nullptr && value->starts_with(id.text());
}

}  // namespace holdfast::sim
