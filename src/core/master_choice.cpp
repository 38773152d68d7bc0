#include "core/master_choice.hpp"

#include <algorithm>

namespace holdfast::core {

const std::optional<server_address>& sentinel_views::hear(
    std::span<const std::optional<sentinel_word>> said, time_point now) {
  std::size_t answered = 0;
  std::uint64_t newest = 0;
  for (const auto& one : said) {
    if (!one) continue;
    ++answered;
    newest = std::max(newest, one->epoch);
  }
  if (answered == 0) return master_;
  if (master_ && newest < epoch_) {
    const bool most = answered * 2 > named_;
    if (!most) stale_since_.reset();
    if (most && !stale_since_) stale_since_ = now;
    if (!most || now - *stale_since_ < stale_max) return master_;
  }
  stale_since_.reset();

  const auto votes = [&](const server_address& whom) {
    return std::count_if(said.begin(), said.end(), [&](const auto& one) {
      return one && one->epoch == newest && one->master == whom;
    });
  };
  epoch_ = newest;
  if (master_ && votes(*master_) > 0) return master_;
  std::ptrdiff_t most = 0;
  for (const auto& one : said) {
    if (!one || one->epoch != newest || votes(one->master) <= most) continue;
    most = votes(one->master);
    master_ = one->master;
  }
  return master_;
}

master_found find_master(std::span<const std::optional<replication_word>> said,
                         std::span<const std::optional<replication_word>> lately) {
  const auto is_master = [](const auto& one) { return one && one->is_master; };
  // True if a server that was this one's replica is a master now.
  const auto was_succeeded = [&](const replication_word& by) {
    return std::any_of(lately.begin(), lately.end(), [&](const auto& one) {
      return is_master(one) && !by.history.empty() && one->history != by.history &&
             one->history_before == by.history;
    });
  };
  master_found found;
  for (std::size_t i = 0; i < said.size(); ++i) {
    if (!is_master(said[i]) || was_succeeded(*said[i])) continue;
    const bool first = found.is == master_found::verdict::none;
    found = {first ? master_found::verdict::one : master_found::verdict::several, i};
  }
  return found;
}

master_found replication_views::hear(std::span<const std::optional<replication_word>> said,
                                     time_point now) {
  views_.resize(said.size());
  std::vector<std::optional<replication_word>> lately;
  for (std::size_t i = 0; i < said.size(); ++i) {
    auto& known = views_[i];
    if (said[i]) known = {said[i], now};
    if (now - known.at > silent_max) known.word.reset();
    lately.push_back(known.word);
  }
  return find_master(said, lately);
}

}  // namespace holdfast::core
