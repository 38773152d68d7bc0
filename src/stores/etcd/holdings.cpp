#include "stores/etcd/holdings.hpp"

#include <utility>

#include "runtime/clock.hpp"

namespace holdfast::stores::etcd {

namespace {

// Most locks are given back before it is worth while to watch them.
constexpr core::duration unwatched_for = std::chrono::milliseconds{100};
// Between two changes of what is watched: each is a stream of its own.
constexpr core::duration look_pause = std::chrono::milliseconds{200};
// After a stream that ended: the next one is on another server.
constexpr core::duration again_pause = std::chrono::seconds{1};

}  // namespace

void holdings::on_events(store_events tell) { tell_ = std::move(tell); }

void holdings::add(const core::owner_id& id, holding what) {
  {
    const std::lock_guard guard{m_};
    held_[id] = {std::move(what), runtime::now()};
  }
  look_later(look_pause);
}

std::optional<holding> holdings::remove(const core::owner_id& id) {
  const std::lock_guard guard{m_};
  const auto at = held_.find(id);
  if (at == held_.end()) return std::nullopt;
  auto what = std::move(at->second.what);
  held_.erase(at);
  return what;
}

std::optional<holding> holdings::find(const core::owner_id& id) const {
  const std::lock_guard guard{m_};
  const auto at = held_.find(id);
  if (at == held_.end()) return std::nullopt;
  return at->second.what;
}

void holdings::lose_all_under(lease_id lease) {
  std::vector<core::owner_id> lost;
  {
    const std::lock_guard guard{m_};
    for (const auto& [id, one] : held_)
      if (one.what.lease == lease) lost.push_back(id);
    for (const auto& id : lost)
      held_.erase(id);
  }
  for (const auto& id : lost)
    if (tell_.lost) tell_.lost(id, loss::session);
}

void holdings::lose(const std::string& key, loss why) {
  std::optional<core::owner_id> lost;
  {
    const std::lock_guard guard{m_};
    for (const auto& [id, one] : held_)
      if (one.what.key == key) lost = id;
    if (lost) held_.erase(*lost);
  }
  if (lost && tell_.lost) tell_.lost(*lost, why);
}

// ---- watching ----------------------------------------------------------------------------------

void holdings::look_later(core::duration pause) {
  {
    const std::lock_guard guard{m_};
    if (will_look_) return;
    will_look_ = true;
  }
  const bool will = background_->run_at(runtime::now() + pause, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->look();
  });
  if (will) return;
  const std::lock_guard guard{m_};  // the queue is full: the next one that is held asks again
  will_look_ = false;
}

void holdings::look() {
  std::vector<holding> keys;
  std::uint64_t old = 0;
  bool comes_again = false;
  {
    const std::lock_guard guard{m_};
    will_look_ = false;
    std::map<std::string, revision> wanted;
    const auto since = runtime::now() - unwatched_for;
    for (const auto& [id, one] : held_) {
      if (wanted.size() == watched_max) break;
      if (one.since <= since) wanted.emplace(one.what.key, one.what.created);
      comes_again = comes_again || one.since > since;
    }
    if (wanted != watched_) {
      old = std::exchange(stream_, 0);
      ++generation_;
      watched_ = std::move(wanted);
      for (const auto& [key, created] : watched_)
        keys.push_back({key, from_now_ ? -1 : created, 0});
      missed_some_ = from_now_;
      from_now_ = false;
    }
  }
  if (old != 0) cluster_.close_stream(old);
  if (!keys.empty()) watch(std::move(keys));
  if (comes_again) look_later(look_pause);
}

// From when each was created: nothing that became of it since is missed.
void holdings::watch(std::vector<holding> keys) {
  std::string body;
  for (const auto& one : keys)
    body += watch_json(one.key, one.created + 1);
  std::uint64_t generation = 0;
  {
    const std::lock_guard guard{m_};
    generation = generation_;
  }
  const auto stream = cluster_.open_stream(
      {"/v3/watch", std::move(body), false},
      [this, generation](std::string_view line) { on_line(generation, line); },
      [this, generation] { on_end(generation); });
  if (stream == 0) return start_again(generation, again_pause);  // too many: when some have ended
  const std::lock_guard guard{m_};
  if (generation == generation_ && !watched_.empty()) {
    stream_ = stream;
  } else {
    cluster_.close_stream(stream);
  }
}

void holdings::on_line(std::uint64_t generation, std::string_view line) {
  const auto said = read_watch(line);
  bool was_blind = false;
  {
    const std::lock_guard guard{m_};
    if (generation != generation_ || !said) return;
    if (said->created) was_blind = std::exchange(missed_some_, false);
    // History that is compacted cannot be watched from.
    if (said->canceled) from_now_ = true;
  }
  // Renewal looks what became of the keys before.
  if (was_blind && tell_.doubtful) tell_.doubtful();
  for (const auto& one : said->events)
    if (one.is_removal) lose(one.key, loss::deleted);
  if (said->canceled) start_again(generation, look_pause);
}

void holdings::on_end(std::uint64_t generation) { start_again(generation, again_pause); }

void holdings::start_again(std::uint64_t generation, core::duration pause) {
  {
    const std::lock_guard guard{m_};
    if (generation != generation_) return;
    ++generation_;
    if (const auto old = std::exchange(stream_, 0); old != 0) cluster_.close_stream(old);
    watched_.clear();
  }
  look_later(pause);
}

}  // namespace holdfast::stores::etcd
