#include "stores/memory/latch_entry.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::stores::memory {

void latch_entry::expire(core::time_point now) {
  if (!in_use() || expires_ > now) return;
  round_.clear();
  before_.clear();
  parts_.clear();
}

result<void> latch_entry::check_count(std::uint32_t named) const {
  if (!in_use() || named == count_) return {};
  return core::fail(core::other_count(std::to_string(count_), std::to_string(named)));
}

result<std::uint32_t> latch_entry::count(const core::counter_kind& kind, const std::string& part,
                                         std::int64_t amount, const std::string& round,
                                         core::time_point now) {
  if (auto ok = check_count(kind.count); !ok) return core::fail(std::move(ok.error()));
  if (in_use() && parts_.contains(part)) return left_;
  const auto left = in_use() ? left_ : kind.count;
  if (amount > left) {
    return core::fail(core::counts_too_much(std::to_string(left), std::to_string(kind.count)));
  }
  if (!in_use()) {
    round_ = round;
    count_ = kind.count;
    expires_ = now;
  }
  parts_.emplace(part, amount);
  left_ = left - static_cast<std::uint32_t>(amount);
  expires_ = std::max(expires_, now + kind.keep);
  if (left_ == 0) tell();
  return left_;
}

std::uint32_t latch_entry::start_anew(const core::counter_kind& kind, const std::string& round,
                                      core::time_point now) {
  if (round == round_) return left_;  // asked again
  const bool had_opened = in_use() && left_ == 0;
  before_ = had_opened ? round_ : std::string{};
  round_ = round;
  count_ = left_ = kind.count;
  parts_.clear();
  expires_ = now + kind.keep;
  tell();
  return left_;
}

result<core::counter_answer> latch_entry::look(const core::counter_kind& kind, std::string& round,
                                               bool waits, core::time_point now) {
  if (!round.empty() && round != round_) {
    if (before_ == round) return core::counter_answer{true, 0, {}, false};
    return core::counter_answer{false, 0, {}, true};
  }
  if (!in_use()) return core::counter_answer{false, kind.count, {}, false};
  if (auto ok = check_count(kind.count); !ok) return core::fail(std::move(ok.error()));
  round = round_;
  if (left_ > 0 && waits) expires_ = std::max(expires_, now + kind.keep);
  return core::counter_answer{left_ == 0, left_, {}, false};
}

void latch_entry::tell() const {
  for (const auto& one : waits_)
    one->end();
}

lock_status latch_entry::status(std::string name) const {
  lock_status status;
  status.name = std::move(name);
  status.kind = lock_status::form::latch;
  status.capacity = count_;
  status.units_in_use = left_;
  return status;
}

}  // namespace holdfast::stores::memory
