#include "stores/zookeeper/permit_claim.hpp"

#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <utility>

#include "runtime/clock.hpp"
#include "runtime/host.hpp"
#include "stores/zookeeper/failures.hpp"
#include "stores/zookeeper/node_data.hpp"
#include "stores/zookeeper/queue_nodes.hpp"

namespace holdfast::stores::zookeeper {

namespace {
constexpr std::string_view size_is = "holdfast permits ";
}

std::string size_data(std::uint32_t permits) {
  return std::string{size_is} + std::to_string(permits);
}

std::optional<std::uint32_t> size_in(std::string_view data) {
  if (!data.starts_with(size_is)) return std::nullopt;
  data.remove_prefix(size_is.size());
  std::uint32_t permits = 0;
  const auto got = std::from_chars(data.data(), data.data() + data.size(), permits);
  if (got.ec != std::errc{} || got.ptr != data.data() + data.size()) return std::nullopt;
  return permits;
}

permit_claim::permit_claim(std::shared_ptr<connection> on, std::string path, std::uint32_t permits,
                           const core::owner_id& id, attempt_spec what)
    : connection_{std::move(on)},
      path_{std::move(path)},
      permits_{permits},
      id_{id},
      spec_{std::move(what)},
      queued_{std::make_shared<contender>(
          connection_, contender::place{path_ + "/locks", node_kind::mutex}, id, spec_)} {}

std::shared_ptr<permit_claim> permit_claim::made_elsewhere(std::shared_ptr<connection> on,
                                                           std::string path,
                                                           const core::owner_id& id,
                                                           core::duration ttl) {
  auto made = std::make_shared<permit_claim>(std::move(on), std::move(path), 1U, id,
                                             attempt_spec{.ttl = ttl});
  made->may_have_taken_ = true;
  return made;
}

// ---- what is asked for --------------------------------------------------------------------------

void permit_claim::ask(on_answer done) {
  if (spec_.units > units_at_once_max) {
    return done(stores::fail(errc::unsupported,
                             "on ZooKeeper at most " + std::to_string(units_at_once_max) +
                                 " permits are taken at once, as each is a node"));
  }
  {
    const std::lock_guard guard{m_};
    ask_done_ = std::move(done);
    if (std::exchange(under_way_, true)) return;
    leaves_ = false;
    rounds_ = 0;
  }
  go();
}

void permit_claim::leave(on_removal done) {
  {
    const std::lock_guard guard{m_};
    leaving_ = true;
    leave_done_ = std::move(done);
    if (std::exchange(under_way_, true)) {
      // It may wait for a connection: then it goes no further.
      queued_->leave([](const auto&) {});
      return;
    }
    leaves_ = true;
  }
  begin_to_leave();
}

void permit_claim::replace(as, fencing_token, on_renewal done) {
  done(stores::fail(errc::unsupported,
                    "permits on ZooKeeper stay with the session that took them: another client "
                    "cannot take them over"));
}

permit_claim::holding permit_claim::held() const {
  const std::lock_guard guard{m_};
  return {session_, paths_, token_, spec_.ttl};
}

bool permit_claim::may_have_node() const {
  const std::lock_guard guard{m_};
  return may_have_taken_ || !paths_.empty() || queued_->may_have_node();
}

template <class Done, class Got>
void permit_claim::finish_with(Done permit_claim::*done, Got got) {
  Done told;
  bool leaves = false;
  {
    const std::lock_guard guard{m_};
    told = std::exchange(this->*done, nullptr);
    leaves = !leaves_ && leaving_;
    under_way_ = leaves;
    if (leaves) leaves_ = true;
  }
  if (told) told(std::move(got));
  if (leaves) begin_to_leave();
}

void permit_claim::finish(result<core::answer> got) {
  finish_with(&permit_claim::ask_done_, std::move(got));
}
void permit_claim::finish(result<removal> got) {
  finish_with(&permit_claim::leave_done_, std::move(got));
}

void permit_claim::fail_with(failure why) {
  if (leaves_) return finish(result<removal>{stores::fail(std::move(why))});
  finish(result<core::answer>{stores::fail(std::move(why))});
}

// A failure that will not pass: others are not to wait behind it.
void permit_claim::refuse(failure why) {
  {
    const std::lock_guard guard{m_};
    leaving_ = true;
  }
  fail_with(std::move(why));
}

// ---- asking -------------------------------------------------------------------------------------

void permit_claim::go() {
  if (may_have_taken_) return find();
  queued_->ask([self = shared_from_this()](const auto& got) { self->queued(got); });
}

void permit_claim::queued(const result<core::answer>& got) {
  if (!got) return fail_with(got.error());
  if (!std::holds_alternative<core::grant>(*got)) {
    if (!spec_.may_wait) {
      const std::lock_guard guard{m_};
      leaving_ = true;
    }
    return finish(*got);
  }
  const auto in = queued_->held().in;
  if (!in) return fail_with({errc::stopped, "given up", {}});
  look(in);
}

// What the first in the queue looks at.
struct permit_claim::count {
  std::atomic<int> unanswered{4};
  children beside{};
  children leases{};
  std::optional<std::uint32_t> named{};  // by those who use it now
  std::optional<std::uint32_t> set{};    // by a person
  bool has_leases = true;
  int failed = ZOK;
};

void permit_claim::look(const std::shared_ptr<session>& in) {
  {
    const std::lock_guard guard{m_};
    session_ = in;
  }
  const auto seen = std::make_shared<count>();
  const auto answered = [self = shared_from_this(), seen](int rc) {
    if (rc != ZOK && rc != ZNONODE) seen->failed = rc;
    if (--seen->unanswered == 0) self->counted(*seen);
  };
  queued_->watch(in, leases_);
  in->at().children(path_, handle::watch_it::no, [seen, answered](int rc, children all) {
    seen->beside = std::move(all);
    answered(rc);
  });
  in->at().get(path_ + "/permits", handle::watch_it::no,
               [seen, answered](int rc, const std::string& data, const auto&) {
                 if (rc == ZOK) seen->set = size_in(data);
                 answered(rc);
               });
  in->at().get(leases_, handle::watch_it::yes,
               [seen, answered](int rc, const std::string& data, const auto&) {
                 seen->has_leases = rc != ZNONODE;
                 if (rc == ZOK) seen->named = size_in(data);
                 answered(rc);
               });
  in->at().children(leases_, handle::watch_it::yes, [seen, answered](int rc, children all) {
    seen->leases = std::move(all);
    answered(rc);
  });
}

void permit_claim::counted(const count& seen) {
  if (seen.failed != ZOK) return fail_with(failure_of(seen.failed, "look at the semaphore"));
  if (!queue_of(seen.beside).empty()) {
    return refuse(
        {errc::wrong_type, "the name stands for another kind of lock, which is in use", {}});
  }
  const bool in_use = !seen.leases.empty();
  if (!seen.set && in_use && seen.named && *seen.named != permits_) {
    return refuse({errc::invalid_argument,
                   "the semaphore has " + std::to_string(*seen.named) + " permits, not " +
                       std::to_string(permits_) +
                       ": all who use it must name the same number, or resize() it",
                   {}});
  }
  const auto permits = seen.set.value_or(permits_);
  if (spec_.units > permits) {
    return refuse(
        {errc::invalid_argument,
         "more permits are asked for than the " + std::to_string(permits) + " that there are",
         {}});
  }
  if (seen.leases.size() + spec_.units > permits) return meet(seen);
  if (seen.has_leases) return take(seen);
  if (++rounds_ > contender::rounds_max)
    return fail_with({errc::store_busy, "the semaphore's path is removed again and again", {}});
  session_->at().create(leases_, size_data(permits_), node_mode::container,
                        [self = shared_from_this()](int rc, const std::string&, const auto&) {
                          if (rc == ZOK || rc == ZNODEEXISTS || rc == ZNONODE) return self->go();
                          self->fail_with(failure_of(rc, "create the semaphore's path"));
                        });
}

std::vector<std::string> permit_claim::new_paths() const {
  std::vector<std::string> paths;
  for (std::uint32_t i = 0; i < spec_.units; ++i) {
    std::array<char, 16> number{};
    std::snprintf(number.data(), number.size(), "%010u", static_cast<unsigned>(i));
    paths.push_back(leases_ + "/" + name_to_create(id_, node_kind::permit) + number.data());
  }
  return paths;
}

void permit_claim::take(const count& seen) {
  const auto queued = queued_->held();
  if (queued.paths.empty()) return go();
  node_note note;
  note.who.host = runtime::host_name();
  note.who.pid = runtime::process_id();
  note.who.label = spec_.label;
  note.session_ttl = std::chrono::floor<std::chrono::milliseconds>(session_->ttl());
  std::vector<change> all{{.verb = change::what::remove, .path = queued.paths.front()}};
  if (!seen.set && seen.named != permits_)
    all.push_back({.verb = change::what::set, .path = leases_, .data = size_data(permits_)});
  for (const auto& path : new_paths())
    all.push_back({.verb = change::what::create, .path = path, .data = node_data(note)});
  {
    const std::lock_guard guard{m_};
    may_have_taken_ = true;
  }
  session_->at().change_all(all, [self = shared_from_this(), sent = runtime::now()](
                                     int rc, const auto&) { self->taken(rc, sent); });
}

void permit_claim::taken(int rc, core::time_point sent) {
  if (is_unanswered(rc)) return fail_with(failure_of(rc, "take permits"));
  {
    const std::lock_guard guard{m_};
    may_have_taken_ = false;
    if (rc == ZOK) paths_ = new_paths();
  }
  if (rc == ZOK) {
    queued_->node_is_gone();
    session_->confirm(sent);
    return read_token();
  }
  if (rc == ZNONODE && ++rounds_ <= contender::rounds_max) return go();
  fail_with(failure_of(rc, "take permits"));
}

void permit_claim::read_token() {
  session_->at().get(paths_.front(), handle::watch_it::no,
                     [self = shared_from_this()](int rc, const std::string&, const node_stat& of) {
                       if (rc != ZOK) {
                         const std::lock_guard guard{self->m_};
                         self->may_have_taken_ = true;
                         self->paths_.clear();
                       }
                       if (rc == ZNONODE) return self->go();
                       if (rc != ZOK) return self->fail_with(failure_of(rc, "read the permit"));
                       {
                         const std::lock_guard guard{self->m_};
                         self->token_ = fencing_token{static_cast<std::uint64_t>(of.created)};
                       }
                       const auto& in = self->session_;
                       self->finish(core::answer{core::grant{
                           self->token_, in->ttl_for(self->spec_.ttl), in->confirmed()}});
                     });
}

// All are taken: says by whom.
void permit_claim::meet(const count& seen) {
  if (!spec_.may_wait) {
    const std::lock_guard guard{m_};
    leaving_ = true;
  }
  const auto first = *std::min_element(seen.leases.begin(), seen.leases.end());
  session_->at().get(
      leases_ + "/" + first, handle::watch_it::no,
      [self = shared_from_this()](int rc, const std::string& data, const node_stat& of) {
        if (rc != ZOK && rc != ZNONODE)
          return self->fail_with(failure_of(rc, "read who has the permits"));
        core::busy busy;
        busy.holder = note_in(data, {of.created, of.created_ms}).who;
        busy.queued = self->spec_.may_wait;
        busy.ask_within = contender::look_again;
        self->finish(core::answer{std::move(busy)});
      });
}

}  // namespace holdfast::stores::zookeeper
