#include "stores/zookeeper/zookeeper_lock.hpp"

#include <utility>

#include "core/fail.hpp"
#include "runtime/random.hpp"
#include "stores/zookeeper/looking.hpp"
#include "stores/zookeeper/renewing.hpp"

namespace holdfast::stores::zookeeper {

namespace {

class zookeeper_attempt final : public attempt {
 public:
  zookeeper_attempt(std::shared_ptr<shared> in, contender::place where, attempt_spec what)
      : in_{std::move(in)},
        contender_{std::make_shared<contender>(in_->at, std::move(where), runtime::fresh_owner(),
                                               std::move(what))} {}

  // What is under way must not create a node that nobody knows of.
  ~zookeeper_attempt() override {
    if (!granted_) contender_->leave([](const auto&) {});
  }

  core::owner_id id() const override { return contender_->id(); }

  void ask(core::time_point until, caller& by, on_answer done) override {
    await<result<core::answer>>(
        in_->calls, until, by, [this](auto told) { contender_->ask(std::move(told)); },
        [in = in_, asked = contender_] {
          if (!asked->may_have_node()) return in->at->unreachable();
          return failure{errc::outcome_unknown, "ZooKeeper does not answer", {}};
        },
        [this, done = std::move(done)](result<core::answer> got) {
          if (got && std::holds_alternative<core::grant>(*got)) {
            granted_ = true;
            in_->held.add(contender_);
          }
          done(std::move(got));
        });
  }

  void wait(core::time_point until, caller& by, on_woken done) override {
    by.wait_for(contender_->its_turn().wait(until, [done = std::move(done)] { done({}); }));
  }

  void wake() override { contender_->its_turn().stop(); }

  void withdraw(core::time_point until, caller& by, on_removal done) override {
    granted_ = false;
    static_cast<void>(in_->held.take(contender_->id()));
    await<result<removal>>(
        in_->calls, until, by, [this](auto told) { contender_->leave(std::move(told)); },
        [] {
          return failure{errc::outcome_unknown, "ZooKeeper does not answer", {}};
        },
        std::move(done));
  }

 private:
  const std::shared_ptr<shared> in_;
  const std::shared_ptr<contender> contender_;
  bool granted_ = false;
};

}  // namespace

contender::place zookeeper_lock::place_for(std::uint32_t units) const {
  if (kind_.what == core::lock_kind::form::exclusive) return {path_, node_kind::mutex};
  return {path_, units == core::whole ? node_kind::writer : node_kind::reader};
}

std::unique_ptr<attempt> zookeeper_lock::begin(attempt_spec what) {
  auto where = place_for(what.units);
  return std::make_unique<zookeeper_attempt>(in_, std::move(where), std::move(what));
}

// ---- giving back --------------------------------------------------------------------------------

// One that is held here, or one of an attempt of another client, or of a client before.
std::shared_ptr<contender> zookeeper_lock::leaving(const core::owner_id& id) {
  if (auto mine = in_->held.take(id)) return mine;
  return contender::made_elsewhere(in_->at, place_for(core::whole), id, looking_ttl);
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
  if (!mine) return replace(id, contender::as::it_is, token, ttl, until, by, std::move(done));
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
  replace(id, contender::as::reader, token, ttl, until, by, std::move(done));
}

void zookeeper_lock::replace(const core::owner_id& id, contender::as what, fencing_token token,
                             core::duration ttl, core::time_point until, caller& by,
                             on_renewal done) {
  auto one = in_->held.find(id);
  if (!one) one = contender::made_elsewhere(in_->at, place_for(core::whole), id, ttl);
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
