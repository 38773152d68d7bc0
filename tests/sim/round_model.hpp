// Requests to several nodes at once: the rules of stores/redlock/round, told by events.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sim/line_model.hpp"
#include "stores/redlock/round.hpp"

namespace holdfast::sim {

// Answers are taken in as they come, also long after the wait is over: it is kept alive by what it
// has sent.
class round_model : public std::enable_shared_from_this<round_model> {
 public:
  using call = line_model::call;
  using lines = std::vector<std::unique_ptr<line_model>>;

  round_model(process& in, const lines& to, core::duration node_timeout,
              stores::redlock::silent_nodes are = stores::redlock::silent_nodes::skipped)
      : in_{in}, lines_{to}, node_timeout_{node_timeout}, silent_{are}, sent_at_(to.size()) {}
  round_model(const round_model&) = delete;
  round_model& operator=(const round_model&) = delete;
  virtual ~round_model() = default;

  // `done` when it is decided, at the latest at `until`.
  void wait(core::time_point until, std::function<void()> done);
  // Its process is gone. Whoever waits may be what keeps this alive.
  void abandon() { const auto gone = std::exchange(done_, nullptr); }

 protected:
  virtual void on_answer(std::size_t node, std::uint64_t tag, result<reply> answer) = 0;
  virtual void on_silence(std::size_t node) = 0;
  virtual void on_give_up() = 0;
  [[nodiscard]] virtual bool decided() = 0;
  [[nodiscard]] virtual bool waits_for(std::size_t node) = 0;

  // `tag` comes back with the answer.
  void send(std::size_t node, call what, std::uint64_t tag,
            std::optional<core::time_point> give_up = {});
  [[nodiscard]] process& in() const noexcept { return in_; }
  [[nodiscard]] const lines& all() const noexcept { return lines_; }

 private:
  void look_at(core::time_point when);
  void notice_silence();
  void progress();

  process& in_;
  const lines& lines_;
  const core::duration node_timeout_;
  const stores::redlock::silent_nodes silent_;
  std::vector<core::time_point> sent_at_;
  std::vector<core::time_point> looks_;  // that are planned
  std::function<void()> done_;           // while somebody waits
};

// The same question to every node, and what each answered.
class question_model final : public round_model {
 public:
  using answers = std::vector<std::optional<result<reply>>>;
  using quality = std::function<bool(const reply&)>;

  using round_model::round_model;
  void ask(std::size_t node, call what, std::optional<core::time_point> give_up = {});
  // Waits for those who were asked, or only for so many answers that are `good`. Once.
  void gather(core::time_point until, std::function<void(answers)> done,
              std::size_t enough = SIZE_MAX, quality good = nullptr);

 private:
  void on_answer(std::size_t node, std::uint64_t tag, result<reply> answer) override;
  void on_silence(std::size_t node) override { places_[node].open = false; }
  void on_give_up() override { over_ = true; }
  bool decided() override;
  bool waits_for(std::size_t node) override { return !over_ && places_[node].open; }

  struct place {
    bool open = false;
    std::optional<result<reply>> said;
  };
  std::vector<place> places_{all().size()};
  std::size_t enough_ = SIZE_MAX;
  quality good_;
  std::size_t good_ones_ = 0;
  bool over_ = false;
};

}  // namespace holdfast::sim
