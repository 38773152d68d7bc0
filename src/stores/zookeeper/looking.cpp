#include "stores/zookeeper/looking.hpp"

#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "core/fail.hpp"
#include "core/lock_kind.hpp"
#include "stores/store.hpp"
#include "stores/zookeeper/failures.hpp"
#include "stores/zookeeper/node_data.hpp"
#include "stores/zookeeper/queue_nodes.hpp"

namespace holdfast::stores::zookeeper {

namespace {

// A queue, and what its first nodes say.
struct seen_queue {
  std::vector<contender_node> nodes;
  std::vector<node_note> notes;  // of as many from the front; of a node that has gone, empty
};

class reading : public std::enable_shared_from_this<reading> {
 public:
  using on_seen = std::function<void(const std::shared_ptr<session>&, result<seen_queue>)>;
  reading(std::string path, on_seen done) : path_{std::move(path)}, done_{std::move(done)} {}

  void begin(const std::shared_ptr<session>& in) {
    in_ = in;
    in->at().sync(path_, [](int) {});
    in->at().children(path_, handle::watch_it::no,
                      [self = shared_from_this()](int rc, const auto& all) {
                        if (rc != ZOK && rc != ZNONODE) return self->fail_with(rc);
                        self->seen_.nodes = queue_of(all);
                        self->read();
                      });
  }

  void fail_with(int rc) {
    auto why = failure_of(rc, "look at the lock");
    if (why.code == errc::outcome_unknown) why.code = errc::store_unreachable;
    done_(in_, fail(std::move(why)));
  }

 private:
  void read() {
    const auto shown = std::min(seen_.nodes.size(), 2 * waiters_shown_max);
    seen_.notes.resize(shown);
    unanswered_ = shown;
    if (shown == 0) return done_(in_, std::move(seen_));
    for (std::size_t i = 0; i < shown; ++i) {
      in_->at().get(
          path_ + "/" + seen_.nodes[i].name, handle::watch_it::no,
          [self = shared_from_this(), i](int rc, const std::string& value, const node_stat& of) {
            if (rc == ZOK) self->seen_.notes[i] = note_in(value, {of.created, of.created_ms});
            if (rc != ZOK && rc != ZNONODE) self->failed_ = rc;
            if (--self->unanswered_ == 0) self->finish();
          });
    }
  }

  void finish() {
    if (failed_ != ZOK) return fail_with(failed_);
    done_(in_, std::move(seen_));
  }

  const std::string path_;
  const on_seen done_;
  std::shared_ptr<session> in_;
  seen_queue seen_;
  std::size_t unanswered_ = 0;
  int failed_ = ZOK;
};

void read_queue(const std::shared_ptr<connection>& on, const std::string& path,
                const reading::on_seen& done) {
  on->use(looking_ttl, [path, done](const auto& got) {
    if (!got) return done(nullptr, fail(got.error()));
    std::make_shared<reading>(path, done)->begin(*got);
  });
}

lock_status status_of(const std::string& name, const seen_queue& seen) {
  lock_status status;
  status.name = name;
  if (seen.nodes.empty()) return status;
  const auto owners = owners_of(seen.nodes);
  const bool shared = seen.nodes.front().kind != node_kind::mutex;
  const bool writes = seen.nodes.front().kind == node_kind::writer;
  status.kind = shared ? lock_status::form::shared_mutex : lock_status::form::mutex;
  status.capacity = shared ? core::units_max : 1;
  status.holding = owners;
  status.units_in_use = writes ? core::units_max : static_cast<std::uint32_t>(owners);
  status.waiting = seen.nodes.size() - owners;
  for (std::size_t i = 0; i < seen.notes.size(); ++i) {
    const auto& note = seen.notes[i];
    if (i < owners && status.holders.size() < waiters_shown_max) {
      status.holders.push_back(note.who);
      status.holders.back().units = writes ? core::units_max : 1;
      if (note.session_ttl &&
          status.remaining.value_or(note.session_ttl.value()) <= note.session_ttl.value())
        status.remaining = note.session_ttl;
    } else if (i >= owners && status.waiters.size() < waiters_shown_max) {
      status.waiters.push_back({note.who.host, note.who.pid, note.who.label, note.who.since});
    }
  }
  if (!status.holders.empty()) status.holder = status.holders.front();
  return status;
}

// Breadth first, one request at a time: a list is for people.
class walk : public std::enable_shared_from_this<walk> {
 public:
  using on_found = std::function<void(result<std::vector<std::string>>)>;
  walk(std::string chroot, on_found done) : done_{std::move(done)} {
    ahead_.push_back(std::move(chroot));
  }

  void begin(const std::shared_ptr<session>& in) {
    in_ = in;
    go_on();
  }

 private:
  void go_on() {
    if (ahead_.empty() || ++walked_ > nodes_walked_max) return done_(std::move(found_));
    at_ = std::move(ahead_.front());
    ahead_.pop_front();
    in_->at().children(
        at_.empty() ? "/" : at_, handle::watch_it::no,
        [self = shared_from_this()](int rc, const auto& all) {
          if (is_unanswered(rc) || rc == ZSESSIONEXPIRED) {
            return self->done_(fail(errc::store_unreachable, "the connection to ZooKeeper ended"));
          }
          self->take(all);
          self->go_on();
        });
  }

  void take(const std::vector<std::string>& children) {
    bool contended = false;
    for (const auto& child : children) {
      if (parse_node(child)) {
        contended = true;
      } else if (!at_.empty() || child != "zookeeper") {
        ahead_.push_back(at_ + "/" + child);
      }
    }
    if (contended) found_.push_back(at_);
  }

  const on_found done_;
  std::shared_ptr<session> in_;
  std::string at_;
  std::deque<std::string> ahead_;
  std::vector<std::string> found_;
  std::size_t walked_ = 0;
};

}  // namespace

void look_at_lock(const std::shared_ptr<connection>& on, const std::string& name,
                  const std::string& path, std::function<void(result<lock_status>)> done) {
  read_queue(on, path, [name, done = std::move(done)](const auto&, result<seen_queue> seen) {
    if (!seen) return done(fail(std::move(seen.error())));
    done(status_of(name, *seen));
  });
}

void break_lock(const std::shared_ptr<connection>& on, const std::string& path, fencing_token token,
                std::function<void(result<void>)> done) {
  read_queue(on, path,
             [path, token, done = std::move(done)](const std::shared_ptr<session>& in,
                                                   result<seen_queue> seen) {
               if (!seen) return done(fail(std::move(seen.error())));
               const auto owners = std::min(owners_of(seen->nodes), seen->notes.size());
               if (owners == 0)
                 return done(fail(errc::not_held, "nobody holds the lock; nothing was changed"));
               for (std::size_t i = 0; i < owners; ++i) {
                 if (seen->notes[i].who.token != token) continue;
                 return in->at().remove(path + "/" + seen->nodes[i].name, [done](int rc) {
                   if (rc == ZOK) return done({});
                   if (rc == ZNONODE)
                     return done(fail(errc::not_held, "the lock was just given back"));
                   done(fail(failure_of(rc, "remove the holder's node")));
                 });
               }
               done(fail(errc::not_held, "the lock is held with token " +
                                             to_string(seen->notes.front().who.token) + ", not " +
                                             to_string(token) + "; nothing was changed"));
             });
}

void find_locks(const std::shared_ptr<connection>& on, const std::string& chroot,
                std::function<void(result<std::vector<std::string>>)> done) {
  on->use(looking_ttl, [chroot, done = std::move(done)](const auto& got) {
    if (!got) return done(fail(got.error()));
    std::make_shared<walk>(chroot, done)->begin(*got);
  });
}

}  // namespace holdfast::stores::zookeeper
