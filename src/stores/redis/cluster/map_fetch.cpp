// Asking nodes who has which slot.
#include <algorithm>

#include "runtime/clock.hpp"
#include "runtime/random.hpp"
#include "stores/background_caller.hpp"
#include "stores/redis/cluster/cluster.hpp"
#include "stores/redis/server_error.hpp"

namespace holdfast::stores::redis {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A node that does not answer by then is passed over for the next.
constexpr core::duration node_patience = seconds{1};
// A map that was fetched so lately is taken for current.
constexpr core::duration fresh_for = milliseconds{20};
// For one fetch in the background, over all nodes that are asked.
constexpr core::duration look_budget = seconds{5};
// For so long after the last request locks are taken to be used.
constexpr core::duration idle_after = seconds{15};

script_call asking(std::string_view what) {
  command text{2};
  text.arg("CLUSTER").arg(what);
  return script_call{text.bytes()};
}

}  // namespace

// One node after the other, until one answers that is in a cluster which serves. What others say is
// taken if there is none: a node that is cut off from the rest knows an old map.
class cluster::map_fetch : public std::enable_shared_from_this<map_fetch> {
 public:
  map_fetch(cluster& in, nodes_list whom, std::uint64_t epoch, core::time_point until, caller& by,
            on_looked done)
      : in_{in},
        whom_{std::move(whom)},
        epoch_{epoch},
        until_{until},
        by_{by},
        done_{std::move(done)} {}

  void ask() {
    const bool is_late = asked_ > 0 && runtime::now() >= until_;
    // As the URL names them, when no node that was known says anything.
    if (asked_ == whom_.size() && !found_ && !is_late && !std::exchange(seeds_too_, true)) {
      in_.add_seeds(whom_);
    }
    if (asked_ == whom_.size() || is_late) return end();
    at_ = whom_[asked_++];
    patience_ = std::min(until_, core::after(runtime::now(), node_patience));
    at_->calls.look(asking("INFO"), patience_, {}, by_,
                    [self = shared_from_this()](auto said) { self->take_health(said); });
  }

 private:
  // What a node says that does not serve yet comes as an answer.
  void read_refusal(result<reply>& said) const {
    if (!said || (*said)->type != reply_kind::error) return;
    said = fail(translate_error(text_of(**said), at_->calls.node()));
  }

  void take_health(result<reply>& said) {
    read_refusal(said);
    if (!said && said.error().code != errc::not_permitted) return failed(std::move(said.error()));
    health_ = said ? read_health(text_of(**said)) : cluster_health{};
    if (in_.sharded_) return ask_map();
    command numbers{2};
    numbers.arg("PUBSUB").arg("SHARDNUMSUB");
    // As Redisson finds out; before Redis 7.0 an error.
    at_->calls.look(script_call{numbers.bytes()}, patience_, {}, by_,
                    [self = shared_from_this()](auto known) {
                      self->read_refusal(known);
                      if (known) self->in_.sharded_ = true;
                      self->ask_map();
                    });
  }

  void ask_map() {
    at_->calls.look(asking("SLOTS"), patience_, {}, by_,
                    [self = shared_from_this()](auto map) { self->take_map(map); });
  }

  void take_map(result<reply>& said) {
    read_refusal(said);
    if (!said) return failed(std::move(said.error()));
    auto map = read_slot_map(**said, at_->host);
    if (!map) return failed(std::move(map.error()));
    if (map->empty()) {
      return failed({errc::store_unreachable,
                     at_->calls.node() + " is in a cluster whose slots have no nodes yet",
                     {}});
    }
    const bool best = health_.ok && health_.epoch >= epoch_;
    if (best || !found_ || health_.epoch > found_epoch_) {
      found_ = std::move(*map);
      found_epoch_ = health_.epoch;
    }
    if (!best) return ask();
    end();
  }

  // What a person has to mend says more than a node that is away.
  void failed(failure why) {
    // A node that was given up meanwhile, not the client.
    if (why.code == errc::stopped) why.code = errc::store_unreachable;
    if (why_.message.empty() || why_.code == errc::store_unreachable) why_ = std::move(why);
    ask();
  }

  void end() {
    const auto done = std::move(done_);
    if (found_) return in_.look_ended(std::move(*found_), found_epoch_, done);
    if (why_.message.empty()) why_ = {errc::store_unreachable, "no time was left to ask", {}};
    why_.message = "no node of " + in_.name_ + " says who has which slot: " + why_.message;
    in_.look_ended(fail(std::move(why_)), 0, done);
  }

  cluster& in_;
  nodes_list whom_;
  const std::uint64_t epoch_;
  const core::time_point until_;
  caller& by_;
  on_looked done_;
  std::size_t asked_ = 0;
  bool seeds_too_ = false;
  std::shared_ptr<server_node> at_;
  core::time_point patience_{};
  cluster_health health_;
  std::optional<slot_map> found_;
  std::uint64_t found_epoch_ = 0;
  failure why_;
};

// Not always the same first: it may be the one that is cut off.
topology::nodes_list cluster::whom_to_ask() const {
  nodes_list all;
  for (const auto& one : members_)
    all.push_back(one.node);
  if (!all.empty()) {
    const auto first = runtime::random_bits() % all.size();
    std::rotate(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(first), all.end());
  }
  return all;
}

void cluster::add_seeds(nodes_list& to) {
  const lock held{m_};
  if (closed_) return;
  for (const auto& where : seeds_) {
    auto node = find_or_make(where);
    if (std::find(to.begin(), to.end(), node) == to.end()) to.push_back(std::move(node));
  }
}

void cluster::look_anew(core::time_point until, caller& by, on_looked done) {
  lock held{m_};
  if (closed_) {
    held.unlock();
    return done(fail(errc::stopped, "the client is closed"));
  }
  if (fetching_ == &by) {
    // It must not wait for what it does itself.
    also_.push_back(std::move(done));
    return;
  }
  if (fetching_ != nullptr) {
    const auto turn = std::make_shared<pause>(until, [this, done = std::move(done)] {
      lock again{m_};
      auto how = fetching_ != nullptr
                     ? fail(errc::store_unreachable,
                            "no node of " + name_ + " said in time who has which slot")
                     : fetched_;
      again.unlock();
      done(std::move(how));
    });
    until_fetched_.push_back(turn);
    held.unlock();
    return by.wait_for(turn);
  }
  if (runtime::now() - fetched_at_ < fresh_for) {
    auto how = fetched_;
    held.unlock();
    return done(std::move(how));
  }
  fetching_ = &by;
  const auto fetch =
      std::make_shared<map_fetch>(*this, whom_to_ask(), epoch_, until, by, std::move(done));
  held.unlock();
  fetch->ask();
}

void cluster::look_ended(result<slot_map> got, std::uint64_t epoch, const on_looked& done) {
  aftermath after;
  std::vector<std::shared_ptr<pause>> others;
  std::vector<on_looked> also;
  result<void> how;
  {
    const lock held{m_};
    fetching_ = nullptr;
    also.swap(also_);
    fetched_at_ = runtime::now();
    if (got && !closed_) {
      epoch_ = epoch;
      after = adopt(std::move(*got));
    } else if (!got) {
      how = fail(got.error());
    }
    fetched_ = how;
    others.swap(until_fetched_);
  }
  settle(std::move(after));
  for (const auto& one : others)
    one->end();
  done(how);
  for (const auto& one : also)
    one(how);
}

void cluster::look_soon() { looks_.plan_for(tell_.owner); }

bool cluster::look_in_background() {
  {
    // To wait for it would hold up a thread that others need.
    const lock held{m_};
    if (fetching_ != nullptr) return closed_;
  }
  auto alive = tell_.owner().lock();
  if (!alive) return true;
  begin_in_background(*background_, [this, alive = std::move(alive)](caller& by) {
    look_anew(core::after(runtime::now(), look_budget), by, [alive](const auto&) {});
  });
  return true;
}

void cluster::used() {
  if (!used_.load(std::memory_order_relaxed)) used_ = true;
  age_.plan_for(tell_.owner);
}

void cluster::needed_for(core::duration ttl) {
  if (ttl <= idle_after) return;  // the request for the lease is enough
  const lock held{m_};
  needed_until_ = std::max(needed_until_, core::after(runtime::now(), ttl));
}

bool cluster::check_age() {
  const bool was_used = used_.exchange(false);
  {
    const lock held{m_};
    const auto now = runtime::now();
    if (was_used) needed_until_ = std::max(needed_until_, core::after(now, idle_after));
    if (closed_ || now >= needed_until_) return false;
  }
  static_cast<void>(look_in_background());
  return true;
}

}  // namespace holdfast::stores::redis
