#include "stores/zookeeper/contender.hpp"

#include <zookeeper/zookeeper.h>

#include <utility>

#include "runtime/host.hpp"
#include "stores/zookeeper/failures.hpp"
#include "stores/zookeeper/node_data.hpp"

namespace holdfast::stores::zookeeper {

std::shared_ptr<contender> contender::made_elsewhere(std::shared_ptr<connection> on, place where,
                                                     const core::owner_id& id, core::duration ttl) {
  auto made =
      std::make_shared<contender>(std::move(on), std::move(where), id, attempt_spec{.ttl = ttl});
  made->may_have_node_ = true;
  return made;
}

// ---- what is asked for --------------------------------------------------------------------------

void contender::ask(on_answer done) {
  {
    const std::lock_guard guard{m_};
    ask_done_ = std::move(done);
    if (std::exchange(under_way_, true)) return;  // answers this one, too
    goal_ = goal::ask;
    rounds_ = 0;
  }
  step();
}

void contender::leave(on_removal done) {
  bool over = false;
  {
    const std::lock_guard guard{m_};
    leaving_ = true;
    // What is under way sends nothing any more then.
    over = node_.empty() && !may_have_node_;
    if (!over) {
      leave_done_ = std::move(done);
      if (std::exchange(under_way_, true)) return;  // and leaves when it is over
      goal_ = goal::leave;
    }
  }
  if (over) return done(removal::gone);
  step();
}

void contender::replace(as what, fencing_token token, on_renewal done) {
  bool busy = false;
  {
    const std::lock_guard guard{m_};
    busy = std::exchange(under_way_, true);
    if (!busy) {
      replace_done_ = std::move(done);
      goal_ = goal::replace;
      kind_wanted_ = what;
      token_wanted_ = token;
      rounds_ = 0;
    }
  }
  if (busy)
    return done(stores::fail(errc::outcome_unknown, "the request before has no answer yet"));
  step();
}

contender::holding contender::held() const {
  const std::lock_guard guard{m_};
  return {session_, node_.empty() ? std::string{} : path_of(node_), token_};
}

bool contender::may_have_node() const {
  const std::lock_guard guard{m_};
  return may_have_node_ || !node_.empty();
}

// ---- going on -----------------------------------------------------------------------------------

void contender::step() {
  if (goal_ == goal::leave) {
    // The server removed its nodes with the session.
    if (session_ && session_->ended()) {
      no_node();
      return finish(removal_unanswered_ ? removal::unsure : removal::gone);
    }
    if (!may_have_node()) return finish(removed_one_ ? removal::released : removal::gone);
  }
  connection_->use(spec_.ttl, [self = shared_from_this()](const auto& got) {
    if (!got) return self->fail_with(got.error());
    self->with(*got);
  });
}

void contender::with(const std::shared_ptr<session>& in) {
  bool changed_mind = false;
  {
    const std::lock_guard guard{m_};
    changed_mind = goal_ == goal::ask && leaving_;
    if (session_ && session_ != in) {
      // The server may not have removed yet what the session before had.
      may_have_node_ = may_have_node_ || !node_.empty();
      node_.clear();
    }
    session_ = in;
  }
  if (changed_mind) return fail_with({errc::stopped, "given up", {}});
  switch (goal_) {
    case goal::ask:
      if (may_have_node_) return find();
      if (node_.empty()) return create();
      return look();
    case goal::leave:
      if (may_have_node_) return find();
      return remove();
    case goal::replace:
      return find();
  }
}

template <class Done, class Got>
void contender::finish_with(Done contender::*done, Got got) {
  Done told;
  bool leaves = false;
  {
    const std::lock_guard guard{m_};
    told = std::exchange(this->*done, nullptr);
    leaves = goal_ != goal::leave && leaving_;
    under_way_ = leaves;
    if (leaves) goal_ = goal::leave;
  }
  // The one who asked may ask again at once.
  if (told) told(std::move(got));
  if (leaves) step();
}

void contender::finish(result<core::answer> got) {
  finish_with(&contender::ask_done_, std::move(got));
}
void contender::finish(result<removal> got) {
  finish_with(&contender::leave_done_, std::move(got));
}
void contender::finish(result<renewal> got) {
  finish_with(&contender::replace_done_, std::move(got));
}

void contender::fail_with(failure why) {
  switch (goal_) {
    case goal::ask:
      return finish(result<core::answer>{stores::fail(std::move(why))});
    case goal::leave:
      return finish(result<removal>{stores::fail(std::move(why))});
    case goal::replace:
      return finish(result<renewal>{stores::fail(std::move(why))});
  }
}

// ---- its node -----------------------------------------------------------------------------------

void contender::set_node(std::string name, fencing_token token) {
  const std::lock_guard guard{m_};
  node_ = std::move(name);
  token_ = token;
  may_have_node_ = false;
}

void contender::no_node() {
  const std::lock_guard guard{m_};
  node_.clear();
  may_have_node_ = false;
}

std::string contender::path_of(std::string_view node) const {
  return place_.path + "/" + std::string{node};
}

std::string contender::data(fencing_token token) const {
  node_note note;
  note.who.host = runtime::host_name();
  note.who.pid = runtime::process_id();
  note.who.label = spec_.label;
  note.who.token = token;
  note.session_ttl = std::chrono::floor<std::chrono::milliseconds>(session_->ttl());
  return node_data(note);
}

}  // namespace holdfast::stores::zookeeper
