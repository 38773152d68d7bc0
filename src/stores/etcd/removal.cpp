#include "stores/etcd/removal.hpp"

#include <utility>

#include "core/fail.hpp"
#include "runtime/clock.hpp"
#include "runtime/random.hpp"
#include "stores/etcd/layout.hpp"
#include "stores/pause.hpp"

namespace holdfast::stores::etcd {

namespace {

using core::removal;

request request_of(const removing& what) {
  const condition still_that{what.key, {}, what.created, what.created == 0};
  return {"/v3/kv/txn",
          to_json(transaction{{still_that},
                              {remove{what.key}},
                              {read{.from = what.folder,
                                    .to = end_of_prefix(what.folder),
                                    .sorted = read::order::oldest_first,
                                    .limit = 1,
                                    .keys_only = true}}}),
          true};
}

result<removal> removal_in(const removing& what, const result<answer>& got) {
  if (!got) return fail(got.error());
  const auto said = read_transaction(got->body);
  if (!said) return fail(said.error());
  if (said->succeeded) return removal::released;
  if (what.is_repeated || got->is_repeated) return removal::unsure;
  const bool is_free = said->reads.empty() || said->reads[0].keys.empty();
  return is_free ? removal::gone : removal::taken;
}

struct attempt_to_remove : std::enable_shared_from_this<attempt_to_remove> {
  attempt_to_remove(std::shared_ptr<services> at, removing which, core::time_point give_up,
                    caller& who, on_removed tell)
      : of{std::move(at)},
        what{std::move(which)},
        until{give_up},
        by{who},
        done{std::move(tell)},
        machine{give_up, runtime::random_bits()} {}

  void ask() {
    const auto patience = machine.patience(runtime::now());
    of->servers.call(request_of(what), patience, by,
                     [self = shared_from_this()](const result<answer>& got) { self->told(got); });
  }

  void told(const result<answer>& got) {
    const auto said = removal_in(what, got);
    if (said) return finish(machine.on_answer(*said));
    if (said.error().code == errc::outcome_unknown) what.is_repeated = true;
    const auto again = machine.on_failure(said.error().code, runtime::now());
    if (!again) return finish(fail(said.error()));
    by.wait_for(std::make_shared<pause>(*again, [self = shared_from_this()] { self->ask(); }));
  }

  void finish(result<removal> how) {
    const bool may_be_there = !how || *how == removal::unsure;
    if (may_be_there && what.lease != 0) of->sessions.retire(what.lease);
    const auto tell = std::move(done);
    tell(std::move(how));
  }

  const std::shared_ptr<services> of;
  removing what;
  const core::time_point until;
  caller& by;
  on_removed done;
  core::release_machine machine;
};

}  // namespace

void remove_key(const std::shared_ptr<services>& of, removing what, core::time_point until,
                caller& by, on_removed done) {
  std::make_shared<attempt_to_remove>(of, std::move(what), until, by, std::move(done))->ask();
}

void remove_key_once(const std::shared_ptr<services>& of, const removing& what,
                     core::time_point until, on_removed done) {
  of->servers.call(
      request_of(what), until,
      [what, done = std::move(done)](const result<answer>& got) { done(removal_in(what, got)); });
}

}  // namespace holdfast::stores::etcd
