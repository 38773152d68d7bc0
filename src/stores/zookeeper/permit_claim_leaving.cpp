// Giving permits back, and finding those whose change was not answered.
#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "stores/zookeeper/failures.hpp"
#include "stores/zookeeper/permit_claim.hpp"
#include "stores/zookeeper/queue_nodes.hpp"

namespace holdfast::stores::zookeeper {

// ---- after an answer that did not come ----------------------------------------------------------

void permit_claim::find() {
  connection_->use(spec_.ttl, [self = shared_from_this()](const auto& got) {
    if (!got) return self->fail_with(got.error());
    {
      const std::lock_guard guard{self->m_};
      self->session_ = *got;
    }
    (*got)->at().sync(self->leases_, [](int) {});
    (*got)->at().children(self->leases_, handle::watch_it::no,
                          [self](int rc, const children& all) { self->found(rc, all); });
  });
}

void permit_claim::found(int rc, const children& all) {
  if (is_unanswered(rc) && leaves_) return find();
  if (rc != ZOK && rc != ZNONODE) return fail_with(failure_of(rc, "look for the permits"));
  const auto prefix = own_prefix(id_);
  std::vector<std::string> mine;
  for (const auto& name : all) {
    if (name.starts_with(prefix)) mine.push_back(leases_ + "/" + name);
  }
  {
    const std::lock_guard guard{m_};
    may_have_taken_ = false;
    paths_ = mine;
  }
  if (leaves_) return remove();
  if (!mine.empty()) return read_token();
  go();
}

// ---- leaving ------------------------------------------------------------------------------------

void permit_claim::begin_to_leave() {
  queued_->leave([self = shared_from_this()](const auto& got) {
    if (self->may_have_taken_) return self->find();
    if (!self->paths_.empty()) return self->remove();
    if (!got) return self->fail_with(got.error());
    self->finish(removal::gone);
  });
}

void permit_claim::remove() {
  if (paths_.empty() || !session_ || session_->ended()) {
    {
      const std::lock_guard guard{m_};
      paths_.clear();
    }
    return finish(removal_unanswered_ ? removal::unsure : removal::gone);
  }
  struct removals {
    std::atomic<std::size_t> unanswered;
    std::vector<int> each;
  };
  const auto all = std::make_shared<removals>();
  all->unanswered = paths_.size();
  all->each.resize(paths_.size());
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    session_->at().remove(paths_[i], [self = shared_from_this(), all, i](int rc) {
      all->each[i] = rc;
      if (--all->unanswered == 0) self->removed(all->each);
    });
  }
}

void permit_claim::removed(const std::vector<int>& each) {
  if (std::any_of(each.begin(), each.end(), is_unanswered)) {
    removal_unanswered_ = true;
    return find();
  }
  const auto refused =
      std::find_if(each.begin(), each.end(), [](int rc) { return rc != ZOK && rc != ZNONODE; });
  if (refused != each.end()) return fail_with(failure_of(*refused, "give the permits back"));
  {
    const std::lock_guard guard{m_};
    paths_.clear();
  }
  const bool any = std::find(each.begin(), each.end(), static_cast<int>(ZOK)) != each.end();
  if (any) return finish(removal::released);
  finish(removal_unanswered_ ? removal::unsure : removal::gone);
}

}  // namespace holdfast::stores::zookeeper
