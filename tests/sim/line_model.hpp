// How a simulated client reaches one node of several: the rules of stores/redlock/line.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "core/backoff.hpp"
#include "sim/link_model.hpp"

namespace holdfast::sim {

// One connection, made and remade in the background. See the table in stores/redlock/line.hpp.
class line_model {
 public:
  using call = std::shared_ptr<const script_request>;
  using on_reply = channel_model::on_reply;
  // What is said on a fresh connection before anything else, if anything, and who hears the answer.
  struct greeting {
    call what;
    std::function<void(const reply&)> heard;
  };

  // What was to be sent for sure, and was not until its time was up.
  using on_dropped = std::function<void(const script_request&)>;

  line_model(network& net, process& in, node& to, greeting first, on_dropped dropped,
             std::uint64_t seed);

  void send(call what, on_reply done);
  // For a release: kept and sent again, until `give_up`, if the node cannot be asked now.
  void send_for_sure(call what, core::time_point give_up, on_reply done);

  [[nodiscard]] bool doubtful() const noexcept { return silent_ || down_; }
  [[nodiscard]] bool connecting() const noexcept { return channel_ == nullptr && !down_; }
  void mark_silent() noexcept { silent_ = true; }

 private:
  struct queued {
    call what;
    on_reply done;
  };
  struct owed {
    call what;
    core::time_point give_up;
  };

  void post(channel_model& on, call what, on_reply done);
  void watch(channel_model& on);
  [[nodiscard]] on_reply owing(call what, core::time_point give_up, on_reply done);
  void lost(const channel_model& which);
  void start_connecting(core::duration wait);
  void connect();
  void open(channel_model& fresh);
  void went_down();

  network& net_;
  process& in_;
  node& to_;
  const greeting first_;
  const on_dropped dropped_;
  core::backoff pace_;
  bool silent_ = false;
  bool down_ = false;
  bool under_way_ = false;  // a connection is being made, or planned
  channel_model* channel_ = nullptr;
  std::vector<std::unique_ptr<channel_model>> all_;
  std::deque<queued> queue_;
  std::deque<owed> owed_;
};

}  // namespace holdfast::sim
