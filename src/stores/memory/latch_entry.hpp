// One latch inside a process: who has counted, and who waits.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <holdfast/result.hpp>
#include <holdfast/status.hpp>

#include "core/counter.hpp"
#include "core/types.hpp"
#include "stores/pause.hpp"

namespace holdfast::stores::memory {

// Decides only: reads no clock. Not thread-safe. As scripts/parts/latch.lua of the redis store.
class latch_entry {
 public:
  // The rest sees the latch as it is at `now`.
  void expire(core::time_point now);
  // At least one has counted here, so that the name stands for a latch.
  [[nodiscard]] bool in_use() const noexcept { return !round_.empty(); }

  // Each says how many are left. `round`: names the run, should this begin one.
  [[nodiscard]] result<std::uint32_t> count(const core::counter_kind& kind, const std::string& part,
                                            std::int64_t amount, const std::string& round,
                                            core::time_point now);
  [[nodiscard]] std::uint32_t start_anew(const core::counter_kind& kind, const std::string& round,
                                         core::time_point now);
  // `round`: that is waited for, and is found out; `waits`: so the latch is kept.
  [[nodiscard]] result<core::counter_answer> look(const core::counter_kind& kind,
                                                  std::string& round, bool waits,
                                                  core::time_point now);

  // Ended when the latch opens or is started anew.
  void add(std::shared_ptr<pause> wait) { waits_.push_back(std::move(wait)); }
  void remove(const std::shared_ptr<pause>& wait) { std::erase(waits_, wait); }

  [[nodiscard]] lock_status status(std::string name) const;

 private:
  [[nodiscard]] result<void> check_count(std::uint32_t named) const;
  void tell() const;

  // Empty: nobody has counted.
  std::string round_;
  std::string before_;  // the run before, if that one had opened
  std::uint32_t count_ = 0;
  std::uint32_t left_ = 0;
  std::map<std::string, std::int64_t, std::less<>> parts_;  // that have counted
  core::time_point expires_{};
  std::vector<std::shared_ptr<pause>> waits_;
};

}  // namespace holdfast::stores::memory
