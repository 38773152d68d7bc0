// Requests to several nodes at once, whose answers one thread waits for.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include <holdfast/result.hpp>

#include "core/adaptive_spin.hpp"
#include "core/types.hpp"
#include "stores/redlock/line.hpp"

namespace holdfast::stores::redlock {

// Thread-safe. Whether reading without sleeping pays, learnt from all rounds of a set: it does not
// if answers take longer, or if the nodes need the core.
class polling {
 public:
  explicit polling(core::duration at_most) : at_most_{at_most} {}
  // Zero: not worth it.
  [[nodiscard]] core::duration begin();
  void end(bool caught);

 private:
  const core::duration at_most_;
  std::mutex m_;
  core::adaptive_spin judge_;  // protected by m_
};

// What a round does about nodes that do not answer in `node_timeout`, or did not the last time.
enum class silent_nodes {
  skipped,  // waits for the others, if they are a majority
  awaited,  // waits as long as it is told to wait in all
};

// Thread-safe. The thread that waits reads all nodes' connections itself; if another thread reads
// its answers, because it shares the connections, that one takes them in and rings.
//
// Answers are taken in by whoever reads them, also long after the wait is over: it is kept alive
// by what it has sent.
class round : public std::enable_shared_from_this<round> {
 public:
  using lines = std::vector<std::shared_ptr<line>>;

  // `polling`: whether to read for a moment before sleeping; null: never.
  round(lines to, core::duration node_timeout, std::shared_ptr<polling> how,
        silent_nodes are = silent_nodes::skipped);
  round(const round&) = delete;
  round& operator=(const round&) = delete;
  virtual ~round() = default;

  // Returns when it is decided, at the latest shortly after `until`.
  void wait(core::time_point until);

 protected:
  // Each is called from any thread, never under a lock of ours.
  virtual void on_answer(std::size_t node, std::uint64_t tag, result<redis::reply> answer) = 0;
  virtual void on_silence(std::size_t node) = 0;
  virtual void on_give_up() = 0;
  [[nodiscard]] virtual bool decided() = 0;
  [[nodiscard]] virtual bool waits_for(std::size_t node) = 0;
  // Whether nothing is decided before all of those have answered.
  [[nodiscard]] virtual bool waits_for_all() = 0;

  // `tag` comes back with the answer. Until `give_up`, if any, it is kept for a node that cannot be
  // asked now, as line::send_for_sure().
  void send(std::size_t node, const request& what, std::uint64_t tag,
            std::optional<core::time_point> give_up = {});
  [[nodiscard]] const lines& all() const noexcept { return lines_; }

 private:
  void arrived(std::size_t node, std::uint64_t tag, result<redis::reply> answer);
  void notice_silence(core::time_point now, core::time_point& earliest);
  void read_for_a_moment(core::time_point until);
  void read_all();

  const lines lines_;
  const core::duration node_timeout_;
  const std::shared_ptr<polling> polling_;
  const silent_nodes silent_;
  std::vector<std::atomic<core::duration::rep>> sent_at_;
  std::shared_ptr<runtime::wake_fd> owner_;  // set before anything is sent
  std::atomic<bool> sleeping_{false};
};

// The same question to every node, and what each answered.
class question final : public round {
 public:
  using answers = std::vector<std::optional<result<redis::reply>>>;

  using round::round;
  void ask(std::size_t node, const request& what, std::optional<core::time_point> give_up = {});
  // Waits for those who were asked, or only for so many answers that are `good`. Once.
  using quality = std::function<bool(const redis::reply_value&)>;
  [[nodiscard]] answers gather(core::time_point until, std::size_t enough = SIZE_MAX,
                               quality good = nullptr);

 private:
  void on_answer(std::size_t node, std::uint64_t tag, result<redis::reply> answer) override;
  void on_silence(std::size_t node) override;
  void on_give_up() override;
  bool decided() override;
  bool waits_for(std::size_t node) override;
  bool waits_for_all() override;

  struct place {
    bool open = false;
    std::optional<result<redis::reply>> said;
  };
  std::mutex m_;
  // Protected by m_.
  std::vector<place> places_{all().size()};
  std::size_t enough_ = SIZE_MAX;
  quality good_;
  std::size_t good_ones_ = 0;
  bool over_ = false;
};

}  // namespace holdfast::stores::redlock
