#include "stores/zookeeper/resizing.hpp"

#include <zookeeper/zookeeper.h>

#include <atomic>
#include <utility>

#include "core/fail.hpp"
#include "stores/zookeeper/failures.hpp"
#include "stores/zookeeper/paths.hpp"
#include "stores/zookeeper/permit_claim.hpp"
#include "stores/zookeeper/queue_nodes.hpp"

namespace holdfast::stores::zookeeper {

namespace {

class resizing : public std::enable_shared_from_this<resizing> {
 public:
  using on_done = std::function<void(result<void>)>;
  resizing(std::string path, std::uint32_t permits, on_done done)
      : path_{std::move(path)}, permits_{permits}, done_{std::move(done)} {}

  void begin(const std::shared_ptr<session>& in) {
    in_ = in;
    in->at().children(
        path_, handle::watch_it::no, [self = shared_from_this()](int rc, const auto& all) {
          if (rc != ZOK && rc != ZNONODE) return self->fail_with(rc);
          if (!queue_of(all).empty()) {
            return self->done_(fail(errc::wrong_type,
                                    "the name stands for another kind of lock, which is in use"));
          }
          self->make_path();
        });
  }

 private:
  void fail_with(int rc) { done_(fail(failure_of(rc, "resize the semaphore"))); }

  void make_path() {
    auto all = ancestry(path_ + "/leases");
    const auto unanswered = std::make_shared<std::atomic<std::size_t>>(all.size());
    for (const auto& path : all) {
      in_->at().create(
          path, {}, node_mode::container,
          [self = shared_from_this(), unanswered](int rc, const std::string&, const auto&) {
            if (--*unanswered != 0) return;
            if (rc != ZOK && rc != ZNODEEXISTS) return self->fail_with(rc);
            self->set(true);
          });
    }
  }

  // Who waits for permits watches PATH/leases, so that changes, too.
  void set(bool exists) {
    const auto data = size_data(permits_);
    const auto size = path_ + "/permits";
    std::vector<change> all{{.verb = change::what::set, .path = path_ + "/leases", .data = data}};
    if (exists) {
      all.push_back({.verb = change::what::set, .path = size, .data = data});
    } else {
      all.push_back({.verb = change::what::create,
                     .path = size,
                     .data = data,
                     .mode = node_mode::persistent});
    }
    in_->at().change_all(all, [self = shared_from_this(), exists](int rc, const auto&) {
      if (rc == ZOK) return self->done_({});
      // Another may make it at the same moment.
      if (rc == ZNONODE && exists) return self->set(false);
      if (rc == ZNODEEXISTS && !exists) return self->set(true);
      self->fail_with(rc);
    });
  }

  const std::string path_;
  const std::uint32_t permits_;
  const on_done done_;
  std::shared_ptr<session> in_;
};

}  // namespace

void resize_semaphore(const std::shared_ptr<connection>& on, const std::string& path,
                      std::uint32_t permits, std::function<void(result<void>)> done) {
  on->use(looking_ttl, [path, permits, done = std::move(done)](const auto& got) {
    if (!got) return done(fail(got.error()));
    std::make_shared<resizing>(path, permits, done)->begin(*got);
  });
}

}  // namespace holdfast::stores::zookeeper
