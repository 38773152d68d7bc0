#include "stores/zookeeper/renewing.hpp"

#include <zookeeper/zookeeper.h>

#include <utility>

#include "core/fail.hpp"
#include "runtime/clock.hpp"
#include "stores/zookeeper/failures.hpp"

namespace holdfast::stores::zookeeper {

namespace {

renewal refused(loss why) { return {false, why, {}, {}, {}}; }

// Checks that fail together: those that stand are checked again without the one that does not.
class pass : public std::enable_shared_from_this<pass> {
 public:
  using on_done = std::function<void(result<std::vector<renewal>>)>;
  pass(std::vector<std::shared_ptr<contender>> all, on_done done)
      : all_{std::move(all)}, answers_(all_.size()), done_{std::move(done)} {}

  void begin(const std::shared_ptr<session>& in) {
    in_ = in;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const auto held = all_[i] ? all_[i]->held() : contender::holding{};
      if (held.in && held.in != in) {
        answers_[i] = refused(loss::session);
      } else if (held.path.empty()) {
        answers_[i] = refused(loss::deleted);
      } else {
        open_.push_back({i, held});
      }
    }
    check();
  }

  void fail_with(failure why) { done_(fail(std::move(why))); }

 private:
  struct one {
    std::size_t index;
    contender::holding held;
  };

  void check() {
    if (open_.empty()) return done_(std::move(answers_));
    std::vector<change> checks;
    for (const auto& each : open_)
      checks.push_back({.verb = change::what::check, .path = each.held.path});
    in_->at().change_all(
        checks, [self = shared_from_this(), sent = runtime::now()](
                    int rc, const std::vector<int>& each) { self->checked(rc, each, sent); });
  }

  void checked(int rc, const std::vector<int>& each, core::time_point sent) {
    if (rc == ZOK) {
      in_->confirm(sent);
      for (const auto& still : open_) {
        answers_[still.index] = renewal{true, loss::none, in_->ttl(), sent, still.held.token};
      }
      return done_(std::move(answers_));
    }
    for (std::size_t i = 0; i < each.size() && i < open_.size(); ++i) {
      if (each[i] != ZNONODE) continue;
      answers_[open_[i].index] = refused(loss::deleted);
      open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
      return check();
    }
    fail_with(failure_of(rc, "renew"));
  }

  const std::vector<std::shared_ptr<contender>> all_;
  std::vector<renewal> answers_;
  const on_done done_;
  std::shared_ptr<session> in_;
  std::vector<one> open_;
};

}  // namespace

void renew(const std::shared_ptr<connection>& on, std::vector<std::shared_ptr<contender>> all,
           std::function<void(result<std::vector<renewal>>)> done) {
  const auto work = std::make_shared<pass>(std::move(all), std::move(done));
  on->use(looking_ttl, [work](const auto& got) {
    if (!got) return work->fail_with(got.error());
    work->begin(*got);
  });
}

}  // namespace holdfast::stores::zookeeper
