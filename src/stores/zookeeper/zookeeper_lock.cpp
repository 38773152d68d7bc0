#include "stores/zookeeper/zookeeper_lock.hpp"

#include <utility>

#include "core/fail.hpp"
#include "runtime/random.hpp"
#include "stores/zookeeper/contender.hpp"
#include "stores/zookeeper/looking.hpp"
#include "stores/zookeeper/permit_claim.hpp"
#include "stores/zookeeper/renewing.hpp"
#include "stores/zookeeper/resizing.hpp"

namespace holdfast::stores::zookeeper {

namespace {

class zookeeper_attempt final : public attempt {
 public:
  zookeeper_attempt(std::shared_ptr<shared> in, std::shared_ptr<claim> wanted)
      : in_{std::move(in)}, claim_{std::move(wanted)} {}

  // What is under way must not create a node that nobody knows of.
  ~zookeeper_attempt() override {
    if (!granted_) claim_->leave([](const auto&) {});
  }

  core::owner_id id() const override { return claim_->id(); }

  void ask(core::time_point until, caller& by, on_answer done) override {
    await<result<core::answer>>(
        in_->calls, until, by, [this](auto told) { claim_->ask(std::move(told)); },
        [in = in_, asked = claim_] {
          if (!asked->may_have_node()) return in->at->unreachable();
          return failure{errc::outcome_unknown, "ZooKeeper does not answer", {}};
        },
        [this, done = std::move(done)](result<core::answer> got) {
          if (got && std::holds_alternative<core::grant>(*got)) {
            granted_ = true;
            in_->held.add(claim_);
          }
          done(std::move(got));
        });
  }

  void wait(core::time_point until, caller& by, on_woken done) override {
    by.wait_for(claim_->its_turn().wait(until, [done = std::move(done)] { done({}); }));
  }

  void wake() override { claim_->its_turn().stop(); }

  void withdraw(core::time_point until, caller& by, on_removal done) override {
    granted_ = false;
    static_cast<void>(in_->held.take(claim_->id()));
    await<result<removal>>(
        in_->calls, until, by, [this](auto told) { claim_->leave(std::move(told)); },
        [] {
          return failure{errc::outcome_unknown, "ZooKeeper does not answer", {}};
        },
        std::move(done));
  }

 private:
  const std::shared_ptr<shared> in_;
  const std::shared_ptr<claim> claim_;
  bool granted_ = false;
};

}  // namespace

std::unique_ptr<attempt> zookeeper_lock::begin(attempt_spec what) {
  using form = core::lock_kind::form;
  const auto id = runtime::fresh_owner();
  std::shared_ptr<claim> wanted;
  if (kind_.what == form::permits) {
    wanted = std::make_shared<permit_claim>(in_->at, path_, kind_.permits, id, std::move(what));
  } else {
    const auto kind = kind_.what == form::exclusive ? node_kind::mutex
                      : what.units == core::whole   ? node_kind::writer
                                                    : node_kind::reader;
    wanted =
        std::make_shared<contender>(in_->at, contender::place{path_, kind}, id, std::move(what));
  }
  return std::make_unique<zookeeper_attempt>(in_, std::move(wanted));
}

std::shared_ptr<claim> zookeeper_lock::claim_of(const core::owner_id& id, core::duration ttl) {
  if (kind_.what == core::lock_kind::form::permits)
    return permit_claim::made_elsewhere(in_->at, path_, id, ttl);
  return contender::made_elsewhere(in_->at, {path_, node_kind::mutex}, id, ttl);
}

// ---- giving back --------------------------------------------------------------------------------

// One that is held here, or one of an attempt of another client, or of a client before.
std::shared_ptr<claim> zookeeper_lock::leaving(const core::owner_id& id) {
  if (auto mine = in_->held.take(id)) return mine;
  return claim_of(id, looking_ttl);
}

void zookeeper_lock::release(const core::owner_id& id, core::time_point until, caller& by,
                             on_removal done) {
  await<result<removal>>(
      in_->calls, until, by, [one = leaving(id)](auto told) { one->leave(std::move(told)); },
      [] {
        return failure{errc::outcome_unknown, "ZooKeeper does not answer", {}};
      },
      std::move(done));
}

// Until the session ends, if need be, whatever `give_up` says: so long the node would stay.
void zookeeper_lock::release_later(const core::owner_id& id, core::time_point) noexcept {
  in_->leaving.begin();
  leaving(id)->leave([in = in_, name = name_](const result<removal>& got) {
    if (!got && in->events.release_given_up) in->events.release_given_up(name, got.error());
    in->leaving.end();
  });
}

// The session outlives this client, for the one who takes the lease over. If nobody does, the node
// goes when the lease would have run out: a new owner's node has another name.
void zookeeper_lock::forget(const core::owner_id& id) noexcept {
  const auto mine = in_->held.take(id);
  if (!mine) return;
  const auto held = mine->held();
  if (!held.in) return;
  held.in->outlive();
  const auto ends = core::after(held.in->confirmed(), held.in->ttl());
  static_cast<void>(in_->background->run_at(ends, [mine] { mine->leave([](const auto&) {}); }));
}

// ---- extending ----------------------------------------------------------------------------------

void zookeeper_lock::extend(const core::owner_id& id, fencing_token token, core::duration ttl,
                            core::time_point until, caller& by, on_renewal done) {
  const auto mine = in_->held.find(id);
  if (!mine) return replace(id, claim::as::it_is, token, ttl, until, by, std::move(done));
  if (token != fencing_token{} && mine->held().token != token)
    return done(renewal{false, loss::taken, {}, {}, {}});
  await<result<std::vector<renewal>>>(
      in_->calls, until, by,
      [in = in_, mine](auto told) { renew(in->at, {mine}, std::move(told)); },
      [] {
        return failure{errc::outcome_unknown, "ZooKeeper does not answer", {}};
      },
      [mine, done = std::move(done)](const result<std::vector<renewal>>& got) {
        if (!got) return done(fail(got.error()));
        auto one = got->front();
        one.token = mine->held().token;
        done(one);
      });
}

void zookeeper_lock::downgrade(const core::owner_id& id, fencing_token token, core::duration ttl,
                               core::time_point until, caller& by, on_renewal done) {
  replace(id, claim::as::reader, token, ttl, until, by, std::move(done));
}

void zookeeper_lock::replace(const core::owner_id& id, claim::as what, fencing_token token,
                             core::duration ttl, core::time_point until, caller& by,
                             on_renewal done) {
  auto one = in_->held.find(id);
  if (!one) one = claim_of(id, ttl);
  await<result<renewal>>(
      in_->calls, until, by,
      [one, what, token](auto told) { one->replace(what, token, std::move(told)); },
      [in = in_] { return in->at->unreachable(); },
      [in = in_, one, done = std::move(done)](result<renewal> got) {
        if (got && got->renewed) in->held.add(one);
        done(std::move(got));
      });
}

// ---- looking ------------------------------------------------------------------------------------

result<lock_status> zookeeper_lock::inspect(core::time_point until) {
  return wait_here<result<lock_status>>([&](caller& by, auto done) {
    await<result<lock_status>>(
        in_->calls, until, by,
        [this](auto told) { look_at_lock(in_->at, name_, path_, std::move(told)); },
        [in = in_] { return in->at->unreachable(); }, std::move(done));
  });
}

result<void> zookeeper_lock::resize(std::uint32_t permits, core::time_point until) {
  return wait_here<result<void>>([&](caller& by, auto done) {
    await<result<void>>(
        in_->calls, until, by,
        [this, permits](auto told) { resize_semaphore(in_->at, path_, permits, std::move(told)); },
        [] {
          return failure{errc::outcome_unknown, "ZooKeeper does not answer", {}};
        },
        std::move(done));
  });
}

result<void> zookeeper_lock::break_with(fencing_token token, core::time_point until) {
  return wait_here<result<void>>([&](caller& by, auto done) {
    await<result<void>>(
        in_->calls, until, by,
        [this, token](auto told) { break_lock(in_->at, path_, token, std::move(told)); },
        [] {
          return failure{errc::outcome_unknown, "ZooKeeper does not answer", {}};
        },
        std::move(done));
  });
}

}  // namespace holdfast::stores::zookeeper
