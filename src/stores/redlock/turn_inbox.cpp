#include "stores/redlock/turn_inbox.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/quorum_machine.hpp"
#include "runtime/clock.hpp"
#include "runtime/random.hpp"
#include "stores/background_caller.hpp"

namespace holdfast::stores::redlock {

namespace {

constexpr std::string_view channel_prefix = "holdfast:turn:";
// A node where subscribing failed is left alone for so long: polling covers for it.
constexpr core::duration subscribe_pause = std::chrono::milliseconds{500};

}  // namespace

turn_inbox::turn_inbox(std::vector<std::shared_ptr<node_connection>> nodes,
                       std::shared_ptr<runtime::background> connecting)
    : name_{runtime::fresh_owner()},
      nodes_{std::move(nodes)},
      connecting_{std::move(connecting)},
      sources_(nodes_.size()),
      reader_{{.open = [this] { return all_open(); },
               .received = [this](const redis::message_source& from) { received(from); }}} {}

void turn_inbox::close() {
  const lock held{m_};
  closed_ = true;
  end_those_told();
}

// ---- subscriptions -----------------------------------------------------------------------------

void turn_inbox::open() {
  const lock held{m_};
  if (closed_) return;
  const auto now = runtime::now();
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    auto& one = sources_[i];
    if (one.open || one.under_way || now < one.not_before) continue;
    one.under_way = true;
    begin_in_background(*connecting_, [weak = weak_from_this(), i](caller& by) {
      if (const auto self = weak.lock()) self->subscribe(i, by);
    });
  }
}

void turn_inbox::subscribe(std::size_t node, caller& by) {
  const auto until = core::after(runtime::now(), node_connection::connect_patience);
  redis::subscription::open(nodes_[node]->dial(),
                            std::string{channel_prefix} + std::string{inbox()}, until, by,
                            [weak = weak_from_this(), node](auto made) {
                              const auto self = weak.lock();
                              if (self) self->subscribed(node, std::move(made));
                            });
}

void turn_inbox::subscribed(std::size_t node, result<std::shared_ptr<redis::subscription>> made) {
  const lock held{m_};
  auto& one = sources_[node];
  one.under_way = false;
  one.not_before = core::after(runtime::now(), subscribe_pause);
  if (!made || closed_) return;
  one.open = std::move(*made);
  one.open->on_readable([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->reader_.read_now();
  });
  // What came right behind the answer was read with it.
  take_messages(node);
  reader_.look_again();
  end_those_told();
}

redis::message_reader::sources turn_inbox::all_open() {
  redis::message_reader::sources open;
  const lock held{m_};
  for (const auto& one : sources_) {
    if (one.open) open.push_back(one.open);
  }
  return open;
}

void turn_inbox::received(const redis::message_source& from) {
  const lock held{m_};
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    if (sources_[i].open.get() == &from) return take_messages(i);
  }
}

void turn_inbox::take_messages(std::size_t node) {
  auto& from = sources_[node].open;
  while (const auto message = from->next())
    hear(node, *message);
  if (from->over()) from.reset();
}

// The message is the waiter's id.
void turn_inbox::hear(std::size_t node, std::string_view message) {
  const auto id = core::owner_id::parse(message);
  const auto found = id ? waiters_.find(*id) : waiters_.end();
  if (found == waiters_.end()) return;
  auto& one = *found->second;
  if (one.news.turns == 0) one.news.gathered_by = core::after(runtime::now(), gathering_max);
  one.news.turns |= std::uint64_t{1} << node;
  if (!one.wait) return;
  if (is_told(one)) {
    one.wait->end();
  } else {
    one.wait->end_by(one.news.gathered_by);
  }
}

bool turn_inbox::most_can_tell() const {
  const auto open = std::count_if(sources_.begin(), sources_.end(),
                                  [](const source& one) { return one.open != nullptr; });
  return static_cast<std::size_t>(open) >= core::majority_of(sources_.size());
}

// ---- waiters -----------------------------------------------------------------------------------

void turn_inbox::expect(const waiter& who) {
  const lock held{m_};
  who->news.could_be_told = most_can_tell();
  waiters_[who->id] = who;
}

void turn_inbox::forget(queued_waiter& who) {
  const lock held{m_};
  waiters_.erase(who.id);
  who.wait = nullptr;
}

bool turn_inbox::expects(const core::owner_id& who) const {
  const lock held{m_};
  return waiters_.contains(who);
}

void turn_inbox::asks(queued_waiter& who) {
  const lock held{m_};
  who.news = {.could_be_told = most_can_tell()};
}

void turn_inbox::wake(queued_waiter& who) {
  const lock held{m_};
  who.woken = true;
  if (who.wait) who.wait->end();
}

bool turn_inbox::is_told(const queued_waiter& one) const {
  return closed_ || one.woken ||
         static_cast<std::size_t>(std::popcount(one.news.turns)) >= one.wanted ||
         (!one.news.could_be_told && most_can_tell());
}

void turn_inbox::end_those_told() {
  for (const auto& [id, one] : waiters_) {
    if (one->wait && is_told(*one)) one->wait->end();
  }
}

void turn_inbox::wait(const waiter& who, std::size_t nodes, core::time_point until, caller& by,
                      std::function<void()> done) {
  std::shared_ptr<pause> made;
  {
    const lock held{m_};
    made = reader_.wait(std::min(until, who->news.gathered_by),
                        [self = shared_from_this(), who, done = std::move(done)] {
                          {
                            const lock again{self->m_};
                            who->wait = nullptr;
                          }
                          done();
                        });
    who->wanted = nodes;
    who->wait = made;
    if (is_told(*who)) made->end();
  }
  by.wait_for(std::move(made));
}

}  // namespace holdfast::stores::redlock
