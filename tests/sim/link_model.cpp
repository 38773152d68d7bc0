#include "sim/link_model.hpp"

#include <algorithm>

namespace holdfast::sim {

namespace {

using std::chrono::milliseconds;

// As in stores/redis/link.cpp.
constexpr core::backoff::bounds connect_pace{milliseconds{5}, milliseconds{500}};

}  // namespace

channel_model::channel_model(process& in, connection& on) : in_{in}, on_{on} {
  on_.tell.answered = [this](reply said) {
    const auto first = pending_.front();
    pending_.pop_front();
    ++answered_;
    settle(*first, std::move(said));
  };
  on_.tell.broken = [this] { break_off(); };
}

void channel_model::settle(expected& one, result<reply> how) {
  if (std::exchange(one.settled, true)) return;
  if (const auto done = std::exchange(one.done, nullptr)) done(std::move(how));
}

void channel_model::break_off() {
  broken_ = true;
  const auto lost = std::exchange(pending_, {});
  for (const auto& one : lost)
    settle(*one, fail(errc::outcome_unknown, "the connection broke"));
}

std::uint64_t channel_model::post(std::shared_ptr<const script_request> what, on_reply done) {
  pending_.push_back(std::make_shared<expected>(expected{std::move(done), in_.now()}));
  on_.request(std::move(what));
  return ++sent_;
}

std::uint64_t channel_model::call(std::shared_ptr<const script_request> what,
                                  core::time_point until, on_reply done) {
  const auto position = post(std::move(what), std::move(done));
  in_.at(until, [this, one = std::weak_ptr{pending_.back()}] {
    const auto waiting = one.lock();
    if (!waiting || waiting->settled) return;
    suspect_ = true;
    settle(*waiting, fail(errc::outcome_unknown, "no answer in time"));
  });
  return position;
}

link_model::link_model(network& net, process& in, node& to, std::size_t connections,
                       std::uint64_t seed)
    : net_{net}, in_{in}, to_{to}, connections_{connections}, pace_{connect_pace, seed} {}

// What silenced one silences all: those that are idle go with it.
void link_model::drop_unfit() {
  const bool doubtful = std::any_of(channels_.begin(), channels_.end(),
                                    [](const auto* one) { return one->suspect(); });
  std::erase_if(channels_, [&](auto* one) {
    if (!one->fit()) return true;
    if (!doubtful || one->users > 0 || !one->idle()) return false;
    one->close();
    return true;
  });
}

channel_model* link_model::pick(trace_model behind) {
  drop_unfit();
  if (behind.on != nullptr && behind.on->fit() && !behind.answered()) return behind.on;
  for (auto* one : channels_) {
    if (one->users == 0) return one;
  }
  if (channels_.size() + connecting_ < connections_) return nullptr;
  return channels_.empty() ? nullptr : channels_.front();
}

void link_model::send(channel_model& on, std::shared_ptr<const script_request> what,
                      core::time_point until, on_reply done) {
  ++on.users;
  auto used = std::make_shared<trace_model>(trace_model{&on, 0});
  used->position =
      on.call(std::move(what), until, [&on, used, done = std::move(done)](result<reply> how) {
        --on.users;
        done(std::move(how), *used);
      });
}

void link_model::run(std::shared_ptr<const script_request> what, core::time_point until,
                     trace_model behind, on_reply done) {
  if (auto* on = pick(behind)) return send(*on, std::move(what), until, std::move(done));
  connect(until, [this, what = std::move(what), until, done = std::move(done)](auto* fresh) {
    if (fresh != nullptr) return send(*fresh, what, until, done);
    done(fail(errc::store_unreachable, "no connection"), {});
  });
}

trace_model link_model::post(std::shared_ptr<const script_request> what, trace_model behind,
                             channel_model::on_reply done) {
  auto* on = pick(behind);
  if (on == nullptr && !channels_.empty()) on = channels_.front();
  if (on == nullptr) return {};
  return {on, on->post(std::move(what), std::move(done))};
}

void link_model::open_apart(core::time_point until, std::function<void(connection*)> done) {
  // Whichever comes first: it is open, it is refused, or there is no more time.
  auto settled = std::make_shared<bool>(false);
  in_.at(until, [settled, done] {
    if (!std::exchange(*settled, true)) done(nullptr);
  });
  net_.connect(in_, to_, [settled, done](connection* fresh) {
    if (!std::exchange(*settled, true)) return done(fresh);
    if (fresh != nullptr) fresh->close();
  });
}

void link_model::connect(core::time_point until, std::function<void(channel_model*)> done) {
  if (in_.now() < not_before_) return done(nullptr);
  ++connecting_;
  open_apart(until, [this, done = std::move(done)](connection* fresh) {
    --connecting_;
    if (fresh == nullptr) {
      not_before_ = core::after(in_.now(), pace_.next());
      return done(nullptr);
    }
    pace_.reset();
    not_before_ = {};
    all_.push_back(std::make_unique<channel_model>(in_, *fresh));
    channels_.push_back(all_.back().get());
    done(channels_.back());
  });
}

}  // namespace holdfast::sim
