// How a simulated client reaches a node: the rules of stores/redis/{channel,link}.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include <holdfast/result.hpp>

#include "core/backoff.hpp"
#include "sim/network.hpp"

namespace holdfast::sim {

using detail::fail;

// A connection that carries requests. One on which an answer failed to come is suspect: nothing
// new is sent there, but what it still says is heard.
class channel_model {
 public:
  using on_reply = std::function<void(result<reply>)>;

  channel_model(process& in, connection& on);

  std::uint64_t call(std::shared_ptr<const script_request> what, core::time_point until,
                     on_reply done);
  std::uint64_t post(std::shared_ptr<const script_request> what, on_reply done);
  void close() { on_.close(); }
  // Closes it; whoever waits for an answer is told that none will come.
  void give_up() {
    on_.close();
    break_off();
  }

  [[nodiscard]] bool broken() const noexcept { return broken_; }
  [[nodiscard]] bool suspect() const noexcept { return suspect_; }
  [[nodiscard]] bool fit() const noexcept { return !broken_ && !suspect_; }
  [[nodiscard]] bool idle() const noexcept { return answered_ == sent_; }
  [[nodiscard]] bool answered(std::uint64_t position) const noexcept {
    return answered_ >= position;
  }
  // When what is to be answered next was sent. Not when idle or broken.
  [[nodiscard]] core::time_point oldest() const noexcept { return pending_.front()->sent; }
  int users = 0;
  bool watched = false;  // a timer looks after it

 private:
  struct expected {
    on_reply done;
    core::time_point sent;
    bool settled = false;  // its caller has been told
  };
  void settle(expected& one, result<reply> how);
  void break_off();

  process& in_;
  connection& on_;
  std::uint64_t sent_ = 0;
  std::uint64_t answered_ = 0;
  std::deque<std::shared_ptr<expected>> pending_;
  bool broken_ = false;
  bool suspect_ = false;
};

// Which connection carried a request.
struct trace_model {
  channel_model* on = nullptr;
  std::uint64_t position = 0;
  [[nodiscard]] bool answered() const noexcept { return on == nullptr || on->answered(position); }
};

class link_model {
 public:
  using on_reply = std::function<void(result<reply>, trace_model)>;

  link_model(network& net, process& in, node& to, std::size_t connections, std::uint64_t seed);

  // `behind`: on that connection, if it still works and has not answered.
  void run(std::shared_ptr<const script_request> what, core::time_point until, trace_model behind,
           on_reply done);
  // Without waiting, if a connection is open.
  trace_model post(std::shared_ptr<const script_request> what, trace_model behind,
                   channel_model::on_reply done);
  // A connection for another use.
  void open_apart(core::time_point until, std::function<void(connection*)> done);

 private:
  [[nodiscard]] channel_model* pick(trace_model behind);
  void drop_unfit();
  void send(channel_model& on, std::shared_ptr<const script_request> what, core::time_point until,
            on_reply done);
  void connect(core::time_point until, std::function<void(channel_model*)> done);

  network& net_;
  process& in_;
  node& to_;
  const std::size_t connections_;
  core::backoff pace_;
  core::time_point not_before_{};
  std::size_t connecting_ = 0;
  std::vector<std::unique_ptr<channel_model>> all_;
  std::vector<channel_model*> channels_;
};

}  // namespace holdfast::sim
