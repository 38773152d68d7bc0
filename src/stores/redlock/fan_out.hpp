// Requests to several nodes at once, whose answers one caller waits for.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <holdfast/result.hpp>

#include "core/adaptive_spin.hpp"
#include "core/types.hpp"
#include "stores/redlock/node_connection.hpp"
#include "stores/waiting.hpp"

namespace holdfast::stores::redlock {

// Thread-safe. Whether reading without sleeping pays, learnt from all fan-outs of a set: it does
// not if answers take longer, or if the nodes need the core.
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

// What a fan-out does about nodes that do not answer in `node_timeout`, or did not the last time.
enum class silent_nodes {
  skipped,  // waits for the others, if they are a majority
  awaited,  // waits as long as it is told to wait in all
};

// Thread-safe, but for waiting, which is one caller's. A thread that waits reads all nodes'
// connections itself. Connections are shared, so another thread may read its answers: then that
// thread takes them in, and wakes the one that waits.
//
// Answers are taken in by the thread that reads them, also long after the wait is over: a fan-out
// is kept alive by what it has sent.
class fan_out : public waiting, public std::enable_shared_from_this<fan_out> {
 public:
  using connections = std::vector<std::shared_ptr<node_connection>>;

  // `how`: whether to read for a moment before sleeping; null: never.
  fan_out(connections to, core::duration node_timeout, std::shared_ptr<polling> how,
          silent_nodes are = silent_nodes::skipped);

  // Calls `done` when it is decided, at the latest shortly after `until`. Once.
  void when_decided(core::time_point until, caller& by, std::function<void()> done);

  void wait() override;
  void watch(timers& by) override;

 protected:
  // Each is called from any thread, never under a lock of ours.
  virtual void on_answer(std::size_t node, std::uint64_t tag, result<redis::reply> answer) = 0;
  virtual void on_silence(std::size_t node) = 0;
  virtual void on_give_up() = 0;
  [[nodiscard]] virtual bool decided() = 0;
  [[nodiscard]] virtual bool waits_for(std::size_t node) = 0;
  // True if nothing is decided before all nodes that are waited for have answered.
  [[nodiscard]] virtual bool waits_for_all() = 0;

  // `tag` comes back with the answer. Until `give_up`, if any, it is kept for a node that cannot be
  // asked now, as node_connection::send_for_sure(). `wanted` as in node_connection::send().
  void send(std::size_t node, const request& what, std::uint64_t tag,
            std::optional<core::time_point> give_up = {}, std::function<bool()> wanted = nullptr);
  [[nodiscard]] const connections& all() const noexcept { return connections_; }

 private:
  void arrived(std::size_t node, std::uint64_t tag, result<redis::reply> answer);
  [[nodiscard]] core::time_point notice_silence(core::time_point now);
  void read_for_a_moment();
  void read_all();
  void sleep_until_one_answers(core::time_point due);
  void look_at_the_time();

  const connections connections_;
  const core::duration node_timeout_;
  const std::shared_ptr<polling> polling_;
  const silent_nodes silent_;
  std::vector<std::atomic<core::duration::rep>> sent_at_;
  const std::shared_ptr<runtime::wake_fd> owner_;  // wakes the thread that waits
  std::atomic<bool> sleeping_{false};

  // The caller's.
  core::time_point until_{};
  std::function<void()> done_;                // while the caller waits
  timers* timers_ = nullptr;                  // while it waits by events
  std::optional<core::time_point> looks_at_;  // the next look at the time that is planned
};

// The same question to every node, and what each answered.
class gather final : public fan_out {
 public:
  using answers = std::vector<std::optional<result<redis::reply>>>;

  using fan_out::fan_out;
  void ask(std::size_t node, const request& what, std::optional<core::time_point> give_up = {});
  // Waits for the nodes that were asked, or only for so many answers that are `good`. Once.
  using quality = std::function<bool(const redis::reply_value&)>;
  void collect(core::time_point until, caller& by, std::function<void(answers)> done,
               std::size_t enough = SIZE_MAX, quality good = nullptr);
  // On the calling thread.
  [[nodiscard]] answers collect(core::time_point until);

 private:
  void on_answer(std::size_t node, std::uint64_t tag, result<redis::reply> answer) override;
  void on_silence(std::size_t node) override;
  void on_give_up() override;
  bool decided() override;
  bool waits_for(std::size_t node) override;
  bool waits_for_all() override;
  [[nodiscard]] answers take();

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
