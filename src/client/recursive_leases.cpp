#include "client/recursive_leases.hpp"

#include "core/fail.hpp"

namespace holdfast::detail {

result<bool> recursive_leases::take_again(const owner& who, const std::string& name,
                                          std::size_t depth_max) {
  const std::lock_guard guard{m_};
  const auto mine = all_.find(who);
  if (mine == all_.end()) return false;
  auto& [what, depth] = mine->second;
  if (!what.held()) {
    return fail(errc::lease_lost, "\"" + escape(name) + "\" was lost (" +
                                      std::string{to_string(what.why_lost())} +
                                      "): unlock it as often as it was locked, then lock it anew");
  }
  if (depth == depth_max) {
    return fail(errc::overloaded,
                "\"" + escape(name) + "\" is locked " + std::to_string(depth) +
                    " times by one owner: this looks like a recursion that does not end");
  }
  ++depth;
  return true;
}

void recursive_leases::put(const owner& who, lease first) {
  const std::lock_guard guard{m_};
  all_.insert_or_assign(who, held{std::move(first), 1});
}

recursive_leases::left recursive_leases::leave(const owner& who, std::optional<lease>& last) {
  const std::lock_guard guard{m_};
  const auto mine = all_.find(who);
  if (mine == all_.end()) return left::nothing;
  if (--mine->second.depth > 0) return left::one_of_several;
  last = std::move(mine->second.what);
  all_.erase(mine);
  return left::the_last;
}

lease* recursive_leases::of(const owner& who) {
  const std::lock_guard guard{m_};
  const auto mine = all_.find(who);
  return mine == all_.end() ? nullptr : &mine->second.what;
}

std::size_t recursive_leases::depth(const owner& who) {
  const std::lock_guard guard{m_};
  const auto mine = all_.find(who);
  return mine == all_.end() ? 0 : mine->second.depth;
}

}  // namespace holdfast::detail
