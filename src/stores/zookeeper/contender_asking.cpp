// Getting a place in the queue, and looking at it.
#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "runtime/clock.hpp"
#include "stores/zookeeper/contender.hpp"
#include "stores/zookeeper/failures.hpp"
#include "stores/zookeeper/node_data.hpp"
#include "stores/zookeeper/paths.hpp"

namespace holdfast::stores::zookeeper {

namespace {

fencing_token token_of(const node_stat& made) {
  return fencing_token{static_cast<std::uint64_t>(made.created)};
}

bool in_the_way(const std::vector<contender_node>& queue, node_kind of) {
  if (of != node_kind::reader) return !queue.empty();
  return std::any_of(queue.begin(), queue.end(),
                     [](const auto& one) { return one.kind != node_kind::reader; });
}

}  // namespace

// A creation and a look at the queue, which leave together: the server does them in this order, so
// that a free lock costs one round trip.
struct contender::creation {
  std::atomic<int> unanswered{2};
  core::time_point sent{};
  int create_rc = ZOK;
  std::string path{};
  node_stat made{};
  int look_rc = ZOK;
  children all{};
};

void contender::create() {
  if (spec_.may_wait) return create_and_look();
  // One that only tries does not write when another is there.
  session_->at().children(place_.path, handle::watch_it::no,
                          [self = shared_from_this()](int rc, const children& all) {
                            if (rc == ZNONODE) return self->create_and_look();
                            if (rc != ZOK)
                              return self->fail_with(failure_of(rc, "look at the lock"));
                            const auto queue = queue_of(all);
                            if (!in_the_way(queue, self->place_.kind))
                              return self->create_and_look();
                            self->decide(all);
                          });
}

void contender::create_and_look() {
  bool changed_mind = false;
  {
    const std::lock_guard guard{m_};
    changed_mind = leaving_;
    if (!changed_mind) may_have_node_ = true;
  }
  if (changed_mind) return fail_with({errc::stopped, "given up", {}});
  const auto got = std::make_shared<creation>();
  got->sent = runtime::now();
  session_->at().create(
      path_of(name_to_create(id_, place_.kind)), data({}), node_mode::ephemeral_sequential,
      [self = shared_from_this(), got](int rc, std::string path, const node_stat& made) {
        got->create_rc = rc;
        got->path = std::move(path);
        got->made = made;
        if (--got->unanswered == 0) self->created(*got);
      });
  session_->at().children(place_.path, handle::watch_it::no,
                          [self = shared_from_this(), got](int rc, children all) {
                            got->look_rc = rc;
                            got->all = std::move(all);
                            if (--got->unanswered == 0) self->created(*got);
                          });
}

void contender::created(const creation& got) {
  const int rc = got.create_rc;
  if (rc == ZOK) {
    session_->confirm(got.sent);
    set_node(got.path.substr(place_.path.size() + 1), token_of(got.made));
    if (got.look_rc != ZOK) return fail_with(failure_of(got.look_rc, "look at the lock"));
    return decide(got.all);
  }
  // Unanswered: perhaps there is a node. The next ask looks for it.
  if (!is_unanswered(rc)) no_node();
  if (rc == ZNONODE) return make_parents();
  fail_with(failure_of(rc, "create the lock's node"));
}

// Containers, which the server removes when they have become empty.
void contender::make_parents() {
  if (++rounds_ > rounds_max) return again();
  const auto all = ancestry(place_.path);
  const auto unanswered = std::make_shared<std::atomic<std::size_t>>(all.size());
  for (const auto& path : all) {
    session_->at().create(
        path, {}, node_mode::container,
        [self = shared_from_this(), unanswered](int rc, const std::string&, const node_stat&) {
          if (--*unanswered != 0) return;
          // The answer for the last one is that of the lock's own path.
          if (rc != ZOK && rc != ZNODEEXISTS && rc != ZNONODE)
            return self->fail_with(failure_of(rc, "create the lock's path"));
          self->create_and_look();
        });
  }
}

void contender::look() {
  session_->at().children(place_.path, handle::watch_it::no,
                          [self = shared_from_this()](int rc, const children& all) {
                            if (rc == ZNONODE || rc == ZOK) return self->decide(all);
                            self->fail_with(failure_of(rc, "look at the lock"));
                          });
}

// With children of a path that does not exist, too: there are none.
void contender::decide(const children& all) {
  const auto queue = queue_of(all);
  const bool other_kind = std::any_of(queue.begin(), queue.end(), [&](const auto& one) {
    return !may_share(one.kind, place_.kind);
  });
  if (other_kind) {
    const std::lock_guard guard{m_};
    leaving_ = true;
  }
  if (other_kind) {
    return fail_with(
        {errc::wrong_type, "the name stands for another kind of lock, which is in use", {}});
  }
  if (node_.empty()) return meet(queue, {});
  const auto where = standing_of(queue, node_);
  // Removed by somebody, perhaps with the whole path.
  if (!where.exists) {
    no_node();
    if (++rounds_ > rounds_max) return again();
    return create();
  }
  if (where.owns) return grant();
  meet(queue, where);
}

void contender::again() {
  fail_with({errc::store_busy,
             "the lock's node was removed again and again: another program deletes the lock's path",
             {}});
}

// A waiter's session was confirmed long ago: that it is first says nothing about the session.
void contender::grant() {
  const auto now = runtime::now();
  const auto in = session_;
  if (now - in->confirmed() < in->ttl() / 2)
    return finish(core::answer{core::grant{token_, in->ttl(), in->confirmed()}});
  in->at().change_all(
      {{.verb = change::what::check, .path = path_of(node_)}},
      [self = shared_from_this(), in, sent = now](int rc, const auto&) {
        if (rc == ZNONODE) return self->look();
        if (rc != ZOK) return self->fail_with(failure_of(rc, "confirm the session"));
        in->confirm(sent);
        self->finish(core::answer{core::grant{self->token_, in->ttl(), in->confirmed()}});
      });
}

// Watches the one that comes before, and reads who has the lock.
void contender::meet(const std::vector<contender_node>& queue, const standing& where) {
  // One that only tries has had its try.
  if (!spec_.may_wait && !node_.empty()) {
    const std::lock_guard guard{m_};
    leaving_ = true;
  }
  const auto& owner = queue[where.owner].name;
  const auto before = path_of(queue[where.watched].name);
  if (spec_.may_wait) {
    if (!watched_.empty()) session_->unwatch(watched_, turn_);
    watched_ = before;
    turn_->expect();
    session_->watch(before, turn_);
    if (where.watched != where.owner) {
      session_->at().get(before, handle::watch_it::yes,
                         [self = shared_from_this()](int rc, const std::string&, const auto&) {
                           // Gone before it was watched. What reads the owner is behind this.
                           if (rc != ZOK) self->turn_->come();
                         });
    }
  }
  const bool watches = spec_.may_wait && where.watched == where.owner;
  session_->at().get(
      path_of(owner), watches ? handle::watch_it::yes : handle::watch_it::no,
      [self = shared_from_this()](int rc, const std::string& value, const node_stat& of) {
        self->met(rc, value, of);
      });
}

void contender::met(int rc, const std::string& value, const node_stat& of) {
  // It is another's now, or nobody's.
  if (rc == ZNONODE && (spec_.may_wait || node_.empty())) {
    if (!node_.empty()) return look();
    return ++rounds_ > rounds_max ? again() : create();
  }
  if (rc != ZOK && rc != ZNONODE) return fail_with(failure_of(rc, "read who has the lock"));
  core::busy busy;
  busy.holder = note_in(value, {of.created, of.created_ms}).who;
  busy.queued = spec_.may_wait;
  busy.ask_within = look_again;
  finish(core::answer{std::move(busy)});
}

}  // namespace holdfast::stores::zookeeper
