#include "stores/redis/redis_attempt.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "core/planted.hpp"
#include "runtime/clock.hpp"
#include "runtime/host.hpp"
#include "runtime/random.hpp"
#include "stores/redis/release_by_id.hpp"
#include "stores/redis/replica_acknowledgement.hpp"
#include "stores/redis/script_replies.hpp"
#include "stores/redis/script_values.hpp"

namespace holdfast::stores::redis {

namespace {

using core::planted;
using core::planted_bug;

// Entries in one lock's queue; beyond it an acquisition fails with errc::overloaded.
constexpr std::string_view queue_entries_max = "10000";
// How long the claim of a grant that was handed over may take to be written, for replicas to have.
constexpr core::duration claim_written_max = std::chrono::seconds{1};

fencing_token read_token(std::string_view text) noexcept {
  return fencing_token{read_number(text)};
}

}  // namespace

redis_attempt::redis_attempt(redis_lock& at, attempt_spec what)
    : lock_{at},
      on_{at.on()},
      spec_{std::move(what)},
      id_{runtime::fresh_owner()},
      holder_{describe_holder(on_.host, runtime::process_id(), spec_.label)} {}

redis_attempt::~redis_attempt() {
  if (!entry_.empty()) forget_grants();
}

void redis_attempt::forget_grants() {
  if (grants_) grants_->forget(id_);
  for (const auto& one : left_inboxes_)
    one->forget(id_);
}

// ---- asking ------------------------------------------------------------------------------------

void redis_attempt::ask(core::time_point until, caller& by, on_answer done) {
  until_ = until;
  by_ = &by;
  answered_ = std::move(done);
  calls_ = 0;
  if (spec_.may_wait) {
    auto here = on_.inbox_of(lock_.key());
    if (!entry_.empty() && here && here != grants_) return follow_the_slot(std::move(here));
    if (entry_.empty()) grants_ = std::move(here);
  }
  joining_ = spec_.may_wait && grants_ && grants_->is_open();
  send();
}

void redis_attempt::follow_the_slot(std::shared_ptr<inbox> to) {
  to->open(until_, *by_, [this, to](const result<void>& open) {
    joining_ = open.has_value();
    if (!open) return send();  // then it polls
    const auto before = std::exchange(entry_, entry_for(*to));
    left_inboxes_.push_back(std::exchange(grants_, to));
    grants_->expect(id_, hash_slot(lock_.key()));
    const std::array<std::string_view, 1> keys{lock_.keys()[2]};
    const std::array<std::string_view, 2> args{before, entry_};
    // Should it fail, the attempt loses its place, no more.
    on_.calls.run({scripts::move_place, keys, args}, until_, {}, *by_,
                  [this](const auto&, const auto&) { send(); });
  });
}

void redis_attempt::send() {
  if (calls_++ == hand_over_calls_max) {
    return answer(fail(errc::store_busy, "the lock's queue is full of waiters that are gone"));
  }
  if (joining_ && entry_.empty()) join();
  // As of now: they may be answered before our own answer is read, and "busy" is outdated then.
  releases_ = lock_.pending_releases();
  const auto& last = releases_.last;
  // Sent right behind our own release, the ask would be run before the next holder is told. On a
  // connection that is stuck that would never be, and there are others.
  if (!lock_.others_wait() || !last.on || last.on->suspect()) return send_behind_releases();
  const auto soon = core::after(runtime::now(), channel::posted_reply_max);
  last.on->await(last.position, std::min(until_, soon), *by_, [this] { send_behind_releases(); });
}

void redis_attempt::join() {
  joined_ = runtime::wall_ms();
  entry_ = entry_for(*grants_);
  grants_->expect(id_, hash_slot(lock_.key()));
}

std::string redis_attempt::entry_for(const inbox& at) const {
  const bool shared = core::is_shared(lock_.kind());
  const auto wanted = shared ? units_wanted(lock_.kind(), spec_.units) : std::string{};
  return queue_entry{id_,
                     std::chrono::ceil<std::chrono::milliseconds>(spec_.claim_ttl),
                     shared ? 0 : spec_.block,
                     at.name(),
                     joined_,
                     wanted + holder_}
      .text();
}

void redis_attempt::send_behind_releases() {
  const auto ttl = milliseconds_text(spec_.ttl);
  const auto& kind = lock_.kind();
  const bool shared = core::is_shared(kind);
  const auto amount = std::to_string(shared ? spec_.units : spec_.block);
  static const auto written = std::to_string(layout_written);
  static const auto readable = std::to_string(layout_readable_max);
  const std::string_view entry = joining_ ? entry_ : std::string_view{};
  const std::array<std::string_view, 10> all{id_.text(),        ttl,     written,
                                             readable,          holder_, entry,
                                             queue_entries_max, amount,  kind_name(kind.what),
                                             lock_.capacity()};
  const auto& script = shared ? scripts::share_acquire : scripts::acquire;
  const auto args = std::span{all}.first(shared ? all.size() : all.size() - 2);
  ++asks_;
  counted_from_ = runtime::now();
  on_.calls.run({script, lock_.keys(), args}, until_, releases_.last, *by_,
                [this](result<reply> answered, const sent_position& sent) {
                  carrier_ = sent.on;
                  if (answered) return read(**answered);
                  if (answered.error().code == errc::outcome_unknown) {
                    unanswered_.push_back(sent);
                    on_.watch_replies();
                  }
                  answer(fail(std::move(answered.error())));
                });
}

void redis_attempt::read(const reply_value& answered) {
  const auto fields = elements_of(answered);
  const auto kind = fields.empty() ? acquire_reply{-1} : acquire_reply{fields[0]->integer};
  switch (kind) {
    case acquire_reply::call_again:
      return send();
    case acquire_reply::granted:
      if (fields.size() >= 2) return read_grant(fields);
      break;
    case acquire_reply::busy:
      if (fields.size() >= 3) return read_busy(fields, false);
      break;
    case acquire_reply::queued:
      if (fields.size() >= 5) return read_busy(fields, true);
      break;
  }
  answer(fail(strange_answer(on_.calls.node())));
}

void redis_attempt::read_grant(reply_elements fields) {
  const auto token = read_token(text_of(*fields[1]));
  const bool granted_before = fields.size() > 2;
  if (!entry_.empty() && granted_before) {
    grants_->settle(id_, token);
    for (const auto& one : left_inboxes_)
      one->settle(id_, token);
  } else if (!entry_.empty()) {
    forget_grants();
  }
  const auto from = planted(planted_bug::early_count) ? runtime::now() : counted_from_;
  answer_grant({token, spec_.ttl, from, spec_.block}, !granted_before);
}

void redis_attempt::answer_grant(const core::grant& granted, bool written_by_this_ask) {
  if (on_.replicas.count == 0) return answer(granted);
  await_replicas(lock_, {id_, granted, spec_.ttl, written_by_this_ask ? carrier_ : nullptr}, until_,
                 *by_, [this](result<core::grant> have) {
                   if (!have) {
                     leave();
                     return answer(fail(std::move(have.error())));
                   }
                   answer(*have);
                 });
}

void redis_attempt::leave() {
  if (!entry_.empty()) forget_grants();
  entry_.clear();
}

void redis_attempt::read_busy(reply_elements fields, bool queued) {
  const auto value = text_of(*fields[2]);
  auto holder = parse_holder(value);
  if (!holder) return answer(fail(std::move(holder.error())));
  core::busy busy{std::move(*holder), read_pttl(*fields[1]), queued, {}};
  if (queued) {
    // The slot turned out to have another node than was known: its messages come from there.
    auto here = on_.inbox_of(lock_.key());
    if (here && here != grants_ && calls_ < hand_over_calls_max) {
      return follow_the_slot(std::move(here));
    }
    place_.queued(counted_from_, read_token(text_of(*fields[3])).value());
    const bool must_look = fields[4]->integer == 1;
    if (!must_look) busy.ask_within = core::ask_within(spec_.claim_ttl);
    return join_or_say(std::move(busy));
  }
  const auto whose = core::owner_id::parse(value.substr(0, core::owner_id::digits));
  const auto& ours = releases_.ids;
  if (!whose || std::find(ours.begin(), ours.end(), *whose) == ours.end()) {
    return join_or_say(std::move(busy));
  }
  // Our own release did not get through yet. To the caller the lock is free: see to it.
  release_by_id(on_, lock_.release_script(whose->text(), {}), until_, false, *by_,
                [this](result<removal> freed) {
                  if (freed) return send();
                  answer(fail(std::move(freed.error())));
                });
}

void redis_attempt::join_or_say(core::busy busy) {
  if (joining_ || !spec_.may_wait) return answer(std::move(busy));
  // Busy, and the attempt is to wait. If there can be no inbox, it polls.
  auto here = on_.inbox_of(lock_.key());
  if (entry_.empty()) grants_ = here;
  if (!grants_ || here != grants_) return answer(std::move(busy));
  grants_->open(until_, *by_, [this, busy = std::move(busy)](const result<void>& open) {
    if (!open) return answer(busy);
    joining_ = true;
    send();
  });
}

void redis_attempt::answer(result<core::answer> with) {
  if (const auto* granted = with ? std::get_if<core::grant>(&*with) : nullptr) {
    on_.nodes->needed_for(granted->ttl);
    // An earlier ask that arrives only after this grant was given back must not take the lock
    // again.
    static_cast<void>(follow_unanswered(value_begins(id_, granted->token)));
  }
  const auto done = std::move(answered_);
  done(std::move(with));
}

// ---- waiting -----------------------------------------------------------------------------------

void redis_attempt::wait(core::time_point until, caller& by, on_woken done) {
  by_ = &by;
  woken_ = std::move(done);
  std::shared_ptr<pause> what;
  if (!entry_.empty() && grants_->is_open()) {
    what = grants_->wait(id_, until, [this](auto sent) { woken(std::move(sent)); });
  } else {
    what = std::make_shared<pause>(until, [this] { woken(std::nullopt); });
  }
  {
    const std::lock_guard guard{m_};
    wait_ = what;
    if (std::exchange(woken_before_, false)) what->end();
  }
  by.wait_for(std::move(what));
}

void redis_attempt::wake() {
  const std::lock_guard guard{m_};
  if (wait_) {
    wait_->end();
  } else {
    woken_before_ = true;
  }
}

void redis_attempt::woken(std::optional<grant_message> sent) {
  {
    const std::lock_guard guard{m_};
    wait_ = nullptr;
  }
  const auto granted = sent ? accept(*sent) : std::nullopt;
  if (!granted || on_.replicas.count == 0) return granted_or_not(granted);
  const auto until = core::after(runtime::now(), claim_written_max);
  await_replicas(lock_, {id_, *granted, spec_.ttl, nullptr}, until, *by_,
                 [this](const result<core::grant>& have) {
                   if (have) return granted_or_not(*have);
                   // The next ask says why, if it meets the same.
                   leave();
                   granted_or_not(std::nullopt);
                 });
}

void redis_attempt::granted_or_not(std::optional<core::grant> granted) {
  if (granted) {
    forget_grants();
    on_.nodes->needed_for(granted->ttl);
    static_cast<void>(follow_unanswered(value_begins(id_, granted->token)));
  }
  const auto done = std::move(woken_);
  done(granted);
}

std::optional<core::grant> redis_attempt::accept(const grant_message& sent) const {
  // A grant by units says 0.
  const auto block = std::max<std::uint64_t>(1, sent.block);
  auto granted = place_.accept(sent.token, sent.claim, block);
  if (!granted && planted(planted_bug::stale_grants)) {
    granted = place_.accept(fencing_token{~std::uint64_t{0}}, sent.claim, block);
    granted->token = sent.token;
  }
  if (granted && planted(planted_bug::early_count)) granted->counted_from = runtime::now();
  if (granted && planted(planted_bug::claim)) granted->ttl = spec_.ttl;
  return granted;
}

// ---- giving up ---------------------------------------------------------------------------------

std::size_t redis_attempt::follow_unanswered(std::string_view spared) {
  if (unanswered_.empty()) return 0;
  const auto script = lock_.release_script(id_.text(), entry_, spared);
  std::size_t open = 0;
  for (const auto& one : unanswered_) {
    if (one.answered() && !one.on->broken()) continue;
    ++open;
    // As source: nobody is there to send it again if the server does not know its hash.
    if (!one.on->broken()) static_cast<void>(one.on->post(script.by_source(), nullptr));
  }
  if (open > 0) on_.watch_replies();
  return open;
}

void redis_attempt::withdraw(core::time_point until, caller& by, on_removal done) {
  if (planted(planted_bug::withdrawing)) return done(removal::gone);
  removed_ = std::move(done);
  const auto open = follow_unanswered({});
  release_by_id(on_, lock_.release_script(id_.text(), entry_), until, false, by,
                [this, open](result<removal> said) {
                  forget_grants();
                  const bool sure = !said || planted(planted_bug::doubt) ||
                                    core::surely_withdrawn(asks_, open, *said == removal::released);
                  if (!sure) said = removal::unsure;
                  const auto removed = std::move(removed_);
                  removed(std::move(said));
                });
}

}  // namespace holdfast::stores::redis
