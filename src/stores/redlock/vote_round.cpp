#include "stores/redlock/vote_round.hpp"

#include <utility>

#include "runtime/clock.hpp"

namespace holdfast::stores::redlock {

namespace {

// Answers to an acquire come back with this; those to a raise with what it raises to.
constexpr std::uint64_t to_acquire = 0;

}  // namespace

vote_round::vote_round(std::shared_ptr<node_set> on, std::shared_ptr<redlock_lock> lock,
                       const core::owner_id& id, const core::quorum_rule& rule,
                       std::shared_ptr<place_in_line> line)
    : round{on->calls(), on->config.node_timeout, on->polling},
      set_{std::move(on)},
      lock_{std::move(lock)},
      id_{id},
      ttl_{rule.ttl},
      line_{std::move(line)},
      machine_{rule} {}

template <class Event>
bool vote_round::tell(Event event) {
  core::quorum_machine::steps next;
  std::shared_ptr<const redlock_lock::acquire_words> words;
  {
    const std::lock_guard guard{m_};
    const bool was_over = machine_.over();
    next = event(machine_);
    if (machine_.over() && !was_over) to_give_back_.swap(next);
    words = words_;
  }
  perform(next, words);
  return !next.empty();
}

void vote_round::stand(node_mask at, core::time_point since) {
  const std::lock_guard guard{m_};
  for (std::size_t i = 0; i < all().size(); ++i) {
    if (has(at, i)) machine_.stand(i, since);
  }
}

void vote_round::ask(core::quorum_ask how, core::duration patience,
                     redlock_lock::acquire_words words,
                     const std::vector<vote_inbox::call>& calls) {
  patience_ = patience;
  auto shared = std::make_shared<const redlock_lock::acquire_words>(std::move(words));
  tell([&](auto& machine) {
    words_ = std::move(shared);
    for (const auto& one : calls)
      machine.on_call(one.node, one.token);
    return machine.ask(std::move(how));
  });
}

void vote_round::perform(const core::quorum_machine::steps& steps,
                         const std::shared_ptr<const redlock_lock::acquire_words>& words) {
  using verb = core::quorum_step::verb;
  for (const auto& one : steps) {
    switch (one.what) {
      case verb::acquire:
        // Another one failed at once, and that was decisive: this would come after its release.
        if (is_over()) break;
        all()[one.node]->note_vote_asked(runtime::now());
        send(one.node, lock_->acquire_request(one.node, id_, *words), to_acquire);
        break;
      case verb::raise:
        send(one.node, lock_->raise_request(one.node, id_, one.token), one.token);
        break;
      case verb::release:
        release(one.node, {});
        break;
    }
  }
}

void vote_round::release(std::size_t node, const redlock_lock::release_words& words) {
  set_->nodes()[node].calls->send_for_sure(lock_->release_request(node, id_, words),
                                           core::after(runtime::now(), ttl_), nullptr);
  set_->watch_replies();
}

bool vote_round::retire(core::time_point now) {
  const std::lock_guard guard{m_};
  if (!machine_.is_too_old(now)) return false;
  to_give_back_ = machine_.retire();
  return true;
}

void vote_round::give_back(std::string_view stays_as) {
  core::quorum_machine::steps what;
  {
    const std::lock_guard guard{m_};
    what.swap(to_give_back_);
  }
  redlock_lock::release_words words;
  if (line_) words = {line_->entry(id_), std::string{stays_as}, line_->ticket};
  for (const auto& one : what)
    release(one.node, words);
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
  const bool in_line = line_ && v.what == core::vote::kind::busy;
  if (in_line) line_->joined = true;
  bool over = false;
  const bool followed = tell([&](auto& machine) {
    if (tag == to_acquire && !machine.decided()) all()[node]->note_vote(since_sent(node));
    over = machine.over();
    return machine.on_vote(node, std::move(v), runtime::now());
  });
  // Put in line here after it had been served elsewhere: leaves with its lease, or now.
  if (in_line && (over || !line_->waits) && !lock_->leaves_line(id_, line_->entry(id_))) {
    release(node, {.leaves_as = line_->entry(id_)});
  }
  // Granted here after it was given back: a node that had to be sent the script itself may have run
  // the release before it.
  if (grants && !followed && !lock_->holds(id_)) release(node, {});
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

bool vote_round::is_over() {
  const std::lock_guard guard{m_};
  return machine_.over();
}

bool vote_round::decided() {
  const std::lock_guard guard{m_};
  return machine_.decided();
}

bool vote_round::waits_for_all() {
  const std::lock_guard guard{m_};
  return machine_.waits_for_all();
}

bool vote_round::waits_for(std::size_t node) {
  const std::lock_guard guard{m_};
  return machine_.waits_for(node);
}

node_mask vote_round::asked() {
  const std::lock_guard guard{m_};
  node_mask some = 0;
  for (std::size_t i = 0; i < all().size(); ++i)
    some |= machine_.was_asked(i) ? only(i) : 0;
  return some;
}

std::size_t vote_round::calls_missing() {
  const std::lock_guard guard{m_};
  return machine_.calls_missing();
}

vote_round::verdict vote_round::look() {
  const std::lock_guard guard{m_};
  verdict v{
      machine_.outcome(), machine_.over(), machine_.granted(), machine_.highest_seen(), {}, {}};
  if (v.outcome == core::quorum_outcome::busy) v.met = machine_.met();
  if (v.outcome == core::quorum_outcome::failed) {
    v.why = machine_.why(set_->names(), set_->config.node_timeout);
  }
  return v;
}

}  // namespace holdfast::stores::redlock
