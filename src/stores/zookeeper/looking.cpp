#include "stores/zookeeper/looking.hpp"

#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <deque>
#include <map>
#include <string_view>
#include <utility>

#include "core/fail.hpp"
#include "core/lock_kind.hpp"
#include "stores/store.hpp"
#include "stores/zookeeper/failures.hpp"
#include "stores/zookeeper/node_data.hpp"
#include "stores/zookeeper/permit_claim.hpp"
#include "stores/zookeeper/queue_nodes.hpp"

namespace holdfast::stores::zookeeper {

namespace {

// One that holds a lock, or waits for it.
struct party {
  std::vector<std::string> paths{};  // of its nodes: one, or one for each permit
  node_kind kind = node_kind::mutex;
  node_note note{};  // empty if the node has gone meanwhile, or there are too many to read
};

struct seen_lock {
  lock_status::form form = lock_status::form::mutex;
  std::uint32_t capacity = 1;
  bool capacity_is_set = false;
  std::vector<party> owners;
  std::vector<party> waiters;
};

party party_of(const std::string& path, const contender_node& node) {
  return {{path + "/" + node.name}, node.kind, {}};
}

// Permits of one holder have names that differ in their numbers.
std::vector<party> holders_of_permits(const std::string& path,
                                      const std::vector<std::string>& names) {
  std::map<std::string, party> by_holder;
  for (const auto& name : names) {
    auto& one = by_holder[name.substr(0, name.rfind(mark_of(node_kind::permit)))];
    one.kind = node_kind::permit;
    one.paths.push_back(path + "/" + name);
  }
  std::vector<party> all;
  for (auto& [holder, one] : by_holder)
    all.push_back(std::move(one));
  return all;
}

class reading : public std::enable_shared_from_this<reading> {
 public:
  using on_seen = std::function<void(const std::shared_ptr<session>&, result<seen_lock>)>;
  reading(std::string path, on_seen done) : path_{std::move(path)}, done_{std::move(done)} {}

  void begin(const std::shared_ptr<session>& in) {
    in_ = in;
    in->at().sync(path_, [](int) {});
    in->at().children(path_, handle::watch_it::no,
                      [self = shared_from_this()](int rc, const auto& all) {
                        if (self->failed(rc)) return self->finish();
                        self->take(all);
                      });
  }

 private:
  bool failed(int rc) {
    if (rc != ZOK && rc != ZNONODE) failed_ = rc;
    return failed_ != ZOK;
  }

  void take(const std::vector<std::string>& all) {
    const auto queue = queue_of(all);
    if (queue.empty() && std::any_of(all.begin(), all.end(), [](const auto& name) {
          return name == "leases" || name == "locks";
        })) {
      return take_semaphore();
    }
    const auto owners = owners_of(queue);
    for (std::size_t i = 0; i < queue.size(); ++i)
      (i < owners ? seen_.owners : seen_.waiters).push_back(party_of(path_, queue[i]));
    if (!queue.empty() && queue.front().kind != node_kind::mutex) {
      seen_.form = lock_status::form::shared_mutex;
      seen_.capacity = core::units_max;
    }
    read();
  }

  void take_semaphore() {
    seen_.form = lock_status::form::semaphore;
    unanswered_ = 4;
    const auto answered = [self = shared_from_this()](int rc) {
      static_cast<void>(self->failed(rc));
      if (--self->unanswered_ == 0) self->read();
    };
    const auto size_of = [this, answered](const std::string& node, bool is_set) {
      in_->at().get(path_ + node, handle::watch_it::no,
                    [self = shared_from_this(), answered, is_set](int rc, const std::string& data,
                                                                  const auto&) {
                      const auto size = rc == ZOK ? size_in(data) : std::nullopt;
                      if (size) self->seen_.capacity = *size;
                      if (size && is_set) self->seen_.capacity_is_set = true;
                      answered(rc);
                    });
    };
    size_of("/leases", false);
    size_of("/permits", true);
    in_->at().children(path_ + "/leases", handle::watch_it::no,
                       [self = shared_from_this(), answered](int rc, const auto& all) {
                         self->seen_.owners = holders_of_permits(self->path_ + "/leases", all);
                         answered(rc);
                       });
    in_->at().children(path_ + "/locks", handle::watch_it::no,
                       [self = shared_from_this(), answered](int rc, const auto& all) {
                         for (const auto& one : queue_of(all))
                           self->seen_.waiters.push_back(party_of(self->path_ + "/locks", one));
                         answered(rc);
                       });
  }

  void read() {
    std::vector<party*> all;
    for (auto* each : {&seen_.owners, &seen_.waiters}) {
      const auto shown = std::min(each->size(), waiters_shown_max);
      for (std::size_t i = 0; i < shown; ++i)
        all.push_back(&(*each)[i]);
    }
    unanswered_ = all.size();
    if (failed_ != ZOK || all.empty()) return finish();
    for (auto* const one : all) {
      in_->at().get(
          one->paths.front(), handle::watch_it::no,
          [self = shared_from_this(), one](int rc, const std::string& data, const node_stat& of) {
            if (rc == ZOK) one->note = note_in(data, {of.created, of.created_ms});
            static_cast<void>(self->failed(rc));
            if (--self->unanswered_ == 0) self->finish();
          });
    }
  }

  void finish() {
    if (failed_ != ZOK) {
      auto why = failure_of(failed_, "look at the lock");
      if (why.code == errc::outcome_unknown) why.code = errc::store_unreachable;
      return done_(in_, fail(std::move(why)));
    }
    if (seen_.form == lock_status::form::semaphore) {
      std::sort(seen_.owners.begin(), seen_.owners.end(),
                [](const party& a, const party& b) { return a.note.who.token < b.note.who.token; });
    }
    done_(in_, std::move(seen_));
  }

  const std::string path_;
  const on_seen done_;
  std::shared_ptr<session> in_;
  seen_lock seen_;
  std::size_t unanswered_ = 0;
  int failed_ = ZOK;
};

void read_lock(const std::shared_ptr<connection>& on, const std::string& path,
               const reading::on_seen& done) {
  on->use(looking_ttl, [path, done](const auto& got) {
    if (!got) return done(nullptr, fail(got.error()));
    std::make_shared<reading>(path, done)->begin(*got);
  });
}

std::uint32_t units_of(const party& one) {
  if (one.kind == node_kind::writer) return core::units_max;
  return static_cast<std::uint32_t>(one.paths.size());
}

lock_status status_of(const std::string& name, const seen_lock& seen) {
  lock_status status;
  status.name = name;
  status.waiting = seen.waiters.size();
  for (std::size_t i = 0; i < std::min(seen.waiters.size(), waiters_shown_max); ++i) {
    const auto& who = seen.waiters[i].note.who;
    status.waiters.push_back({who.host, who.pid, who.label, who.since});
  }
  if (seen.owners.empty() && !seen.capacity_is_set) return status;
  status.kind = seen.form;
  status.capacity = seen.capacity;
  status.holding = seen.owners.size();
  for (const auto& one : seen.owners) {
    status.units_in_use += units_of(one);
    if (status.holders.size() == waiters_shown_max) continue;
    status.holders.push_back(one.note.who);
    status.holders.back().units = units_of(one);
    if (one.note.session_ttl &&
        status.remaining.value_or(*one.note.session_ttl) <= *one.note.session_ttl)
      status.remaining = one.note.session_ttl;
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
    if (!contended) return;
    // Of a semaphore, whose nodes lie one further down.
    for (const std::string_view part : {"/leases", "/locks"}) {
      if (at_.ends_with(part)) at_.resize(at_.size() - part.size());
    }
    if (std::find(found_.begin(), found_.end(), at_) == found_.end()) found_.push_back(at_);
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
  read_lock(on, path, [name, done = std::move(done)](const auto&, result<seen_lock> seen) {
    if (!seen) return done(fail(std::move(seen.error())));
    done(status_of(name, *seen));
  });
}

void break_lock(const std::shared_ptr<connection>& on, const std::string& path, fencing_token token,
                std::function<void(result<void>)> done) {
  read_lock(
      on, path,
      [token, done = std::move(done)](const std::shared_ptr<session>& in, result<seen_lock> seen) {
        if (!seen) return done(fail(std::move(seen.error())));
        const auto& all = seen->owners;
        if (all.empty())
          return done(fail(errc::not_held, "nobody holds the lock; nothing was changed"));
        const auto found = std::find_if(
            all.begin(), all.end(), [&](const party& one) { return one.note.who.token == token; });
        if (found == all.end()) {
          return done(fail(errc::not_held, "the lock is held with token " +
                                               to_string(all.front().note.who.token) + ", not " +
                                               to_string(token) + "; nothing was changed"));
        }
        std::vector<change> removals;
        for (const auto& node : found->paths)
          removals.push_back({.verb = change::what::remove, .path = node});
        in->at().change_all(removals, [done](int rc, const auto&) {
          if (rc == ZOK) return done({});
          if (rc == ZNONODE) return done(fail(errc::not_held, "the lock was just given back"));
          done(fail(failure_of(rc, "remove the holder's node")));
        });
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
