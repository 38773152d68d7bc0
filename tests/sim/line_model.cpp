#include "sim/line_model.hpp"

#include "stores/redis/channel.hpp"
#include "stores/redlock/line.hpp"

namespace holdfast::sim {

namespace {

using stores::redis::channel;
using stores::redlock::line;

// As in stores/redlock/line.cpp.
constexpr core::backoff::bounds connect_pace{std::chrono::milliseconds{5}, std::chrono::seconds{1}};

}  // namespace

line_model::line_model(network& net, process& in, node& to, greeting first, on_dropped dropped,
                       std::uint64_t seed)
    : net_{net},
      in_{in},
      to_{to},
      first_{std::move(first)},
      dropped_{std::move(dropped)},
      pace_{connect_pace, seed} {}

void line_model::send(call what, on_reply done) {
  if (channel_ != nullptr && channel_->broken()) lost(*channel_);
  if (channel_ != nullptr) return post(*channel_, std::move(what), std::move(done));
  if (down_ || queue_.size() >= line::queued_max) {
    if (done) done(fail(errc::store_unreachable, "no connection"));
    return;
  }
  queue_.push_back({std::move(what), std::move(done)});
  start_connecting(core::duration::zero());
}

void line_model::send_for_sure(call what, core::time_point give_up, on_reply done) {
  auto kept = owing(what, give_up, std::move(done));
  send(std::move(what), std::move(kept));
}

line_model::on_reply line_model::owing(call what, core::time_point give_up, on_reply done) {
  return [this, what = std::move(what), give_up, done = std::move(done)](result<reply> answer) {
    if (!answer && in_.now() < give_up && owed_.size() < line::owed_max) {
      owed_.push_back({what, give_up});
    } else if (!answer) {
      dropped_(*what);
    }
    if (done) done(std::move(answer));
  };
}

void line_model::post(channel_model& on, call what, on_reply done) {
  on.post(std::move(what), [this, &on, done = std::move(done)](result<reply> answer) {
    if (!answer) {
      lost(on);
    } else {
      silent_ = false;
    }
    if (done) done(std::move(answer));
  });
  watch(on);
}

// A connection whose oldest answer is long overdue is given up.
void line_model::watch(channel_model& on) {
  if (on.watched || on.idle() || on.broken()) return;
  on.watched = true;
  in_.at(core::after(on.oldest(), channel::posted_reply_max), [this, &on] {
    on.watched = false;
    if (on.idle() || on.broken()) return;
    if (core::after(on.oldest(), channel::posted_reply_max) <= in_.now()) return on.give_up();
    watch(on);
  });
}

// Once for each connection: the first to notice has it made anew.
void line_model::lost(const channel_model& which) {
  if (channel_ != &which) return;
  channel_ = nullptr;
  start_connecting(core::duration::zero());
}

void line_model::start_connecting(core::duration wait) {
  if (under_way_) return;
  under_way_ = true;
  in_.at(core::after(in_.now(), wait), [this] { connect(); });
}

void line_model::connect() {
  // Whichever comes first: it is open and greeted, it is refused, or there is no more time.
  const auto settled = std::make_shared<bool>(false);
  const auto failed = [this, settled] {
    if (!std::exchange(*settled, true)) went_down();
  };
  in_.at(core::after(in_.now(), line::connect_patience), failed);
  net_.connect(in_, to_, [this, settled, failed](connection* got) {
    if (got == nullptr) return failed();
    if (*settled) return got->close();
    all_.push_back(std::make_unique<channel_model>(in_, *got));
    auto& fresh = *all_.back();
    if (!first_.what) {
      *settled = true;
      return open(fresh);
    }
    fresh.post(first_.what, [this, settled, failed, &fresh](const auto& answer) {
      if (!answer) return failed();
      if (std::exchange(*settled, true)) return fresh.close();
      first_.heard(*answer);
      open(fresh);
    });
  });
}

void line_model::open(channel_model& fresh) {
  pace_.reset();
  under_way_ = false;
  down_ = false;
  silent_ = false;
  channel_ = &fresh;
  // What was given back goes before what is asked for.
  for (auto& one : std::exchange(owed_, {})) {
    if (one.give_up <= in_.now()) {
      dropped_(*one.what);
      continue;
    }
    auto kept = owing(one.what, one.give_up, nullptr);
    post(fresh, std::move(one.what), std::move(kept));
  }
  for (auto& one : std::exchange(queue_, {}))
    post(fresh, std::move(one.what), std::move(one.done));
}

void line_model::went_down() {
  under_way_ = false;
  down_ = true;
  start_connecting(pace_.next());
  for (const auto& one : std::exchange(queue_, {})) {
    if (one.done) one.done(fail(errc::store_unreachable, "no connection"));
  }
}

}  // namespace holdfast::sim
