// Nodes of an attempt's own whose creation was not answered, or that another session made.
#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <utility>

#include "runtime/clock.hpp"
#include "runtime/random.hpp"
#include "stores/zookeeper/contender.hpp"
#include "stores/zookeeper/failures.hpp"
#include "stores/zookeeper/node_data.hpp"

namespace holdfast::stores::zookeeper {

namespace {
stores::renewal refused(loss why) { return {false, why, {}, {}, {}}; }
}  // namespace

void contender::find() {
  // Another server may lag behind the one that was asked to create it.
  session_->at().sync(place_.path, [](int) {});
  session_->at().children(place_.path, handle::watch_it::no,
                          [self = shared_from_this()](int rc, const children& all) {
                            if (rc == ZNONODE || rc == ZOK) return self->found(all);
                            if (is_unanswered(rc) && self->goal_ == goal::leave)
                              return self->step();
                            self->fail_with(failure_of(rc, "look for the lock's node"));
                          });
}

void contender::found(const children& all) {
  const auto queue = queue_of(all);
  const auto prefix = own_prefix(id_);
  const auto mine = std::find_if(queue.begin(), queue.end(), [&](const contender_node& one) {
    return one.name.starts_with(prefix);
  });
  const bool exists = mine != queue.end();
  switch (goal_) {
    case goal::ask:
      if (exists) return take_found(all, *mine);
      no_node();
      return create();
    case goal::leave:
      if (!exists) {
        no_node();
        if (removed_one_) return finish(removal::released);
        if (removal_unanswered_) return finish(removal::unsure);
        return finish(queue.empty() ? removal::gone : removal::taken);
      }
      {
        const std::lock_guard guard{m_};
        node_ = mine->name;
      }
      return remove();
    case goal::replace:
      if (exists) return move(all, *mine);
      no_node();
      return finish(result<renewal>{refused(queue.empty() ? loss::deleted : loss::taken)});
  }
}

// Ours if this session made it. What the session before made is about to go, and holds nothing.
void contender::take_found(const children& all, const contender_node& mine) {
  session_->at().get(
      path_of(mine.name), handle::watch_it::no,
      [self = shared_from_this(), all, mine](int rc, const std::string& value,
                                             const node_stat& of) {
        if (rc != ZOK && rc != ZNONODE)
          return self->fail_with(failure_of(rc, "read the lock's node"));
        if (rc == ZOK && of.session == self->session_->id()) {
          self->set_node(mine.name, note_in(value, {of.created, of.created_ms}).who.token);
          return self->decide(all);
        }
        if (++self->rounds_ > rounds_max) return self->again();
        if (rc == ZNONODE) return self->find();
        self->session_->at().remove(self->path_of(mine.name), [self](int removed) {
          if (removed != ZOK && removed != ZNONODE)
            return self->fail_with(failure_of(removed, "remove a node of an ended session"));
          self->find();
        });
      });
}

// ---- leaving ------------------------------------------------------------------------------------

void contender::remove() {
  if (!watched_.empty()) session_->unwatch(std::exchange(watched_, {}), turn_);
  const auto sent = runtime::now();
  session_->at().remove(path_of(node_), [self = shared_from_this(), sent](int rc) {
    if (rc == ZOK) self->session_->confirm(sent);
    self->removed(rc);
  });
}

void contender::removed(int rc) {
  if (rc == ZOK) removed_one_ = true;
  if (is_unanswered(rc)) {
    removal_unanswered_ = true;
    return step();  // once there is a connection again
  }
  if (rc != ZOK && rc != ZNONODE) return fail_with(failure_of(rc, "remove the lock's node"));
  // Perhaps there are two, if a creation was not answered.
  if (may_have_node_) {
    {
      const std::lock_guard guard{m_};
      node_.clear();
    }
    return find();
  }
  no_node();
  if (rc == ZOK) return finish(removal::released);
  if (removal_unanswered_) return finish(removal::unsure);
  say_who_has_it();
}

void contender::say_who_has_it() {
  session_->at().children(place_.path, handle::watch_it::no,
                          [self = shared_from_this()](int, const children& all) {
                            const bool free = queue_of(all).empty();
                            self->finish(free ? removal::gone : removal::taken);
                          });
}

// ---- taking over --------------------------------------------------------------------------------

void contender::move(const children& all, const contender_node& old) {
  if (!standing_of(queue_of(all), old.name).owns)
    return finish(result<renewal>{refused(loss::taken)});
  session_->at().get(
      path_of(old.name), handle::watch_it::no,
      [self = shared_from_this(), old](int rc, const std::string& value, const node_stat& of) {
        if (rc == ZNONODE) return self->find();
        if (rc != ZOK) return self->fail_with(failure_of(rc, "read the lock's node"));
        self->moved(old, value, of);
      });
}

void contender::moved(const contender_node& old, const std::string& value, const node_stat& of) {
  const auto token = note_in(value, {of.created, of.created_ms}).who.token;
  if (token_wanted_ != fencing_token{} && token != token_wanted_)
    return finish(result<renewal>{refused(loss::taken)});
  const bool ours = of.session == session_->id();
  const auto kind = kind_wanted_ == as::reader ? node_kind::reader : old.kind;
  const auto fresh = name_in_place_of(old, id_, kind, runtime::fresh_owner());
  const auto name = ours && kind == old.kind ? old.name : fresh;
  std::vector<change> all{{.verb = change::what::check, .path = path_of(old.name)}};
  if (name != old.name) {
    all = {{.verb = change::what::remove, .path = path_of(old.name)},
           {.verb = change::what::create, .path = path_of(name), .data = data(token)}};
  }
  const auto in = session_;
  in->at().change_all(all, [self = shared_from_this(), in, name, token, sent = runtime::now()](
                               int rc, const auto&) {
    if (rc == ZNONODE && ++self->rounds_ <= rounds_max) return self->find();
    if (rc != ZOK) return self->fail_with(failure_of(rc, "take the lock's node over"));
    in->confirm(sent);
    self->set_node(name, token);
    self->finish(
        result<renewal>{stores::renewal{true, loss::none, in->ttl(), in->confirmed(), token}});
  });
}

}  // namespace holdfast::stores::zookeeper
