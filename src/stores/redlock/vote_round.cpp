#include "stores/redlock/vote_round.hpp"

#include <utility>

#include "runtime/clock.hpp"

namespace holdfast::stores::redlock {

namespace {

// Answers to an acquire come back with this; those to a raise with what it raises to.
constexpr std::uint64_t to_acquire = 0;

}  // namespace

vote_round::vote_round(std::shared_ptr<node_set> on, std::shared_ptr<redlock_lock> lock,
                       attempt who, std::shared_ptr<place_in_line> line,
                       const core::quorum_rule& rule, core::duration patience)
    : round{on->calls(), on->config.node_timeout, on->polling},
      set_{std::move(on)},
      lock_{std::move(lock)},
      who_{std::move(who)},
      line_{std::move(line)},
      words_{lock_->words_of(who_, rule.proposal)},
      machine_{rule} {
  patience_ = patience;
}

template <class Event>
void vote_round::tell(Event event) {
  core::quorum_machine::steps next;
  {
    const std::lock_guard guard{m_};
    next = event(machine_);
  }
  perform(next);
}

void vote_round::start() {
  tell([](auto& machine) { return machine.start(); });
}

void vote_round::perform(const core::quorum_machine::steps& steps) {
  using verb = core::quorum_step::verb;
  const std::string_view ticket = line_ ? line_->ticket : std::string_view{};
  const std::string_view waiter = line_ ? line_->waiter : std::string_view{};
  for (const auto& one : steps) {
    switch (one.what) {
      case verb::acquire:
        if (line_) line_->at |= only(one.node);
        all()[one.node]->note_vote_asked(runtime::now());
        send(one.node, lock_->acquire_request(one.node, who_.id, words_, ticket, waiter),
             to_acquire);
        break;
      case verb::raise:
        send(one.node, lock_->raise_request(one.node, who_.id, one.token), one.token);
        break;
      case verb::release: {
        // Only after a split vote: one that failed may not be asked again, and nobody would leave.
        const bool stays = line_ && line_->waits && is_busy();
        if (stays) line_->joined = true;
        set_->nodes()[one.node].calls->send_for_sure(
            lock_->release_request(who_.id, stays ? "stay" : "", waiter, ticket),
            core::after(runtime::now(), who_.ttl), nullptr);
        set_->watch_replies();
        break;
      }
    }
  }
}

void vote_round::on_answer(std::size_t node, std::uint64_t tag, result<redis::reply> answer) {
  core::vote v;
  const auto& name = set_->names()[node];
  if (!answer) {
    v = {.what = core::vote::kind::failed, .why = std::move(answer.error())};
  } else if (tag == to_acquire) {
    v = read_acquire(**answer, name, set_->set());
    all()[node]->note_answer(v.what == core::vote::kind::refused);
  } else {
    v = read_raise(**answer, tag, name, set_->set());
  }
  if (answer && asks_for_admission(**answer)) set_->look_after_nodes();
  const bool grants = v.what == core::vote::kind::fresh || v.what == core::vote::kind::stale;
  if (line_ && v.what == core::vote::kind::busy) {
    line_->joined = true;
    // Put in line here after it had been served elsewhere: leaves with its lease, or now.
    if (!line_->waits && !lock_->leaves_line(who_.id, line_->waiter)) {
      set_->nodes()[node].calls->send_for_sure(
          lock_->release_request(who_.id, "leave", line_->waiter),
          core::after(runtime::now(), who_.ttl), nullptr);
    }
  }
  core::quorum_machine::steps next;
  {
    const std::lock_guard guard{m_};
    if (tag == to_acquire && !machine_.decided()) all()[node]->note_vote(since_sent(node));
    next = machine_.on_vote(node, std::move(v), runtime::now());
  }
  // Granted here after it was given back: a node that had to be sent the script itself may have run
  // the release before it.
  if (grants && next.empty() && !lock_->holds(who_.id)) {
    next.push_back({core::quorum_step::verb::release, node, 0});
  }
  perform(next);
}

void vote_round::on_silence(std::size_t node) {
  tell([node](auto& machine) { return machine.on_silence(node, runtime::now()); });
}

void vote_round::on_give_up() {
  tell([](auto& machine) { return machine.on_give_up(runtime::now()); });
}

void vote_round::on_delay() {
  tell([](auto& machine) { return machine.on_delay(); });
}

bool vote_round::decided() {
  const std::lock_guard guard{m_};
  return machine_.decided();
}

bool vote_round::waits_for_all() {
  const std::lock_guard guard{m_};
  return machine_.waits_for_all();
}

bool vote_round::is_busy() {
  const std::lock_guard guard{m_};
  return machine_.outcome() == core::quorum_outcome::busy;
}

bool vote_round::waits_for(std::size_t node) {
  const std::lock_guard guard{m_};
  return machine_.waits_for(node);
}

vote_round::verdict vote_round::look() {
  const std::lock_guard guard{m_};
  verdict v{machine_.outcome(), machine_.token(), machine_.highest_seen(), 0, {}, {}};
  for (std::size_t i = 0; i < all().size(); ++i) {
    if (machine_.was_asked(i)) v.asked |= only(i);
  }
  if (v.outcome == core::quorum_outcome::busy) v.met = machine_.met();
  if (v.outcome == core::quorum_outcome::failed) {
    v.why = machine_.why(set_->names(), set_->config.node_timeout);
  }
  return v;
}

}  // namespace holdfast::stores::redlock
