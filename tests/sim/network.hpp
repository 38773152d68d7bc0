// The network between processes and nodes: connections like TCP's, and what goes wrong with them.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sim/lock_script.hpp"
#include "sim/node.hpp"
#include "sim/process.hpp"
#include "sim/random.hpp"

namespace holdfast::sim {

enum class direction { to_node, to_process };
inline constexpr std::array both_directions{direction::to_node, direction::to_process};

class network;

// One connection. What is sent in a direction arrives in order, once, or not at all; a request that
// is on its way may still arrive after its sender has given up and asked elsewhere.
class connection {
 public:
  // What its process hears; set once it is open.
  struct events {
    std::function<void(reply)> answered;                           // to requests, in order
    std::function<void(std::string channel, std::string)> pushed;  // a message of a channel
    std::function<void()> broken;                                  // once
  };

  connection(network& net, process& from, node& to);
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  events tell;

  // From the process. A script that is run is reported to `observe` of the network.
  void send(std::vector<std::string> words);
  void close();
  // From the node.
  void push(std::string channel, std::string message);

  // Faults. A connection that is cut is cut at both ends, who hear of it (or not: a firewall that
  // forgot it) after a while.
  void stall(direction which, instant until);
  void cut(bool tell_node, bool tell_process);

  [[nodiscard]] bool usable() const noexcept { return open_here_; }
  [[nodiscard]] const process& from() const noexcept { return from_; }
  [[nodiscard]] const node& to() const noexcept { return to_; }

 private:
  friend class network;

  void carry(direction which, action what);
  template <class What>
  void at_node(What what);
  template <class What>
  void at_process(What what);
  void carry_out(const std::shared_ptr<const command>& what, const std::optional<sent_ask>& ask);
  void reply_with(reply answer, const std::optional<sent_ask>& ask);
  void listen(bool begins, const std::string& channel);
  void break_here();
  void end_here();

  network& net_;
  process& from_;
  node& to_;
  const unsigned process_life_;
  const unsigned node_life_;
  bool open_here_ = false;
  bool open_there_ = false;
  bool opened_ = false;  // the node has accepted it at some time
  bool cut_ = false;
  std::array<instant, 2> last_{};
  std::array<instant, 2> stalled_until_{};
  std::deque<std::optional<sent_ask>> unanswered_;
};

class network {
 public:
  struct manners {
    instant delay_least = 50 * microsecond;
    instant delay_most = 2 * millisecond;
    int slow_per_mille = 0;  // messages that take far longer
    instant slow_most = 0;
  };

  network(timeline& time, std::uint64_t seed, manners how, const shipped_scripts& scripts)
      : time_{time}, random_{seed, 3}, manners_{how}, scripts_{scripts} {}

  // After each script that a node ran, and whose it was.
  std::function<void(node&, process&, const script_request&, const reply&)> observe;

  // `done` gets a connection, or nothing when the node refused; if nobody answers, it is not
  // called.
  void connect(process& from, node& to, std::function<void(connection*)> done);

  // Nothing gets through in that direction until then.
  void block(const process& from, const node& to, direction which, instant until);
  void process_died(const process& who, bool host_died);
  void node_died(const node& who, bool host_died);
  // Nothing that was sent from here to any of those arrives before it is let go.
  void hold(const process& from, std::vector<node*> to);
  void let_go();
  // The answer that is just observed is lost, and what it answers is carried out once more: as if
  // a client sent it again, which the shipped one does not do, but the protocol allows for.
  void repeat() noexcept { repeats_ = true; }
  // What is on its way between the two is lost, and both hear of it.
  void cut_all(const process& from, const node& to);
  // Everything goes quickly from now on, and who has a dead connection hears of it.
  void calm_down();

  [[nodiscard]] const std::vector<connection*>& open();

 private:
  friend class connection;
  [[nodiscard]] instant delay();
  [[nodiscard]] instant blocked_until(const connection& on, direction which) const;
  [[nodiscard]] bool holds(const connection& on) const;

  timeline& time_;
  random_stream random_;
  manners manners_;
  const shipped_scripts& scripts_;
  bool repeats_ = false;
  std::vector<std::unique_ptr<connection>> all_;  // for as long as the world lasts
  std::vector<connection*> open_;
  // By names, which are the same in every run.
  std::map<std::pair<std::string, std::string>, std::array<instant, 2>> blocked_;
  const process* held_from_ = nullptr;
  std::vector<node*> held_to_;
  std::vector<action> held_back_;  // in the order of its arrival
};

}  // namespace holdfast::sim
