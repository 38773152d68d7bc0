#include "stores/redis/channel_listener.hpp"

#include <algorithm>
#include <utility>

#include "stores/redis/layout.hpp"

namespace holdfast::stores::redis {

std::shared_ptr<node_listener> channel_listener::listener_at(
    const std::shared_ptr<server_node>& node) {
  std::vector<std::shared_ptr<node_listener>> departed;
  std::shared_ptr<node_listener> found;
  {
    const std::lock_guard guard{m_};
    if (closed_) return nullptr;
    auto& known = listeners_[node];
    if (!known) {
      known = std::make_shared<node_listener>(node, background_);
      // A node is new: others may be gone.
      const auto in_use = server_->nodes->nodes();
      for (auto at = listeners_.begin(); at != listeners_.end();) {
        const bool kept =
            at->first == node || std::find(in_use.begin(), in_use.end(), at->first) != in_use.end();
        if (!kept) departed.push_back(std::move(at->second));
        at = kept ? std::next(at) : listeners_.erase(at);
      }
    }
    found = listeners_[node];
  }
  for (const auto& one : departed)
    one->close();
  return found;
}

void channel_listener::join(std::string name, core::time_point until, caller& by, on_joined done) {
  const auto node = server_->nodes->node_of(name);
  if (!node) {
    return done(fail(errc::store_unreachable, "it is not known which node sends the messages"));
  }
  auto at = listener_at(node);
  if (!at) return done(fail(errc::stopped, "the client is closed"));
  // Latches of ours are published to all nodes, those of Redisson as its own clients do.
  const bool sharded = !name.starts_with(reserved_prefix) && server_->nodes->has_sharded_channels();
  auto& there = *at;
  there.join(name, sharded, until, by,
             [node, at = std::move(at), name, done = std::move(done)](auto joined) {
               if (!joined) return done(fail(std::move(joined.error())));
               done(std::make_shared<place>(place{node, at, std::move(*joined), name}));
             });
}

bool channel_listener::hears(const place& mine) {
  return mine.at->hears(*mine.in) && server_->nodes->node_of(mine.channel) == mine.node;
}

std::shared_ptr<pause> channel_listener::wait(const std::shared_ptr<place>& mine,
                                              core::time_point until, std::function<void()> done) {
  return mine->at->wait(mine->in, until, std::move(done));
}

void channel_listener::ask_begins(place& mine) { mine.at->ask_begins(*mine.in); }

void channel_listener::leave(const std::shared_ptr<place>& mine, bool pass_on) {
  mine->at->leave(mine->in, pass_on);
}

void channel_listener::close() {
  const std::lock_guard guard{m_};
  closed_ = true;
  for (const auto& [node, one] : listeners_)
    one->close();
  listeners_.clear();
}

}  // namespace holdfast::stores::redis
