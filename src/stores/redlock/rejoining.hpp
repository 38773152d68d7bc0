// How a client of a set lets nodes vote again that may have forgotten something. An operation
// without I/O: it says what to ask the nodes, and is told what they answered.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/result.hpp>

#include "core/admission.hpp"
#include "scripts.hpp"
#include "stores/redis/resp.hpp"
#include "stores/redlock/replies.hpp"

namespace holdfast::stores::redlock {

// "n1:6379,n2:6379,n3:6379 (epoch 1, max_ttl 60000 ms)"
[[nodiscard]] std::string describe_set(std::span<const std::string> sorted_names, unsigned epoch,
                                       core::duration max_ttl);

// A run of a script on the record of a node.
struct record_script {
  const redis::scripts::script* which = nullptr;
  std::vector<std::string> args{};
};

// What one node is to the set, by scripts/standing.lua.
struct node_standing {
  core::node_report report;
  std::string said = "no answer";                   // for a person
  std::map<std::string, std::uint64_t> counters{};  // if they were asked for
};

enum class with_counters { no, yes };

// Asks what a node is, and keeps up its wait, if it has to wait: by this id, should it begin now.
// Without an id it changes nothing.
[[nodiscard]] record_script standing_script(const set_identity& set, std::size_t node,
                                            std::chrono::milliseconds wall, std::string wait_id,
                                            with_counters counters);
// Lets a node vote at once; a person vouches that nobody holds anything.
[[nodiscard]] record_script vouched_script(const set_identity& set, std::size_t node,
                                           std::chrono::milliseconds wall,
                                           std::span<const node_standing> all);
// The answer to a look, for a set of this epoch.
[[nodiscard]] node_standing read_standing(const redis::reply_value& answer, unsigned epoch);
// The answer to scripts/admit.lua: why the node does not vote, or nothing if it does.
[[nodiscard]] std::optional<std::string> read_admitted(const redis::reply_value& answer);

// Not thread-safe. Its driver does what each step says, and tells it what came of it.
//
// | step  | then                                            |
// |-------|-------------------------------------------------|
// | ask   | on_answers(), when all have answered or `until` |
// | pause | start(), at `until`                             |
// | done  | every node that answers votes, or never will    |
class rejoining {
 public:
  // How long a look may take, and the most between two while a node waits.
  static constexpr core::duration look_patience = std::chrono::seconds{1};
  static constexpr core::duration look_pause_max = std::chrono::seconds{1};
  static constexpr core::duration look_pause_min = std::chrono::milliseconds{20};

  struct step {
    enum class verb { ask, pause, done };
    verb what{};
    core::time_point until{};
    std::vector<std::optional<record_script>> asks{};  // one for each node, or nothing
    bool lets_in = false;                              // pause: a node is about to be let in
  };
  // The answer of each node; nothing: none came.
  using answers = std::vector<const redis::reply_value*>;
  using id_source = std::function<std::string()>;

  // `fresh_id` names waits.
  rejoining(set_identity set, const core::admission_rule& rule, id_source fresh_id)
      : set_{std::move(set)}, rule_{rule}, admission_{rule}, fresh_id_{std::move(fresh_id)} {}

  // `wall`: this host's clock, since 1970.
  [[nodiscard]] step start(core::time_point now, std::chrono::milliseconds wall);
  [[nodiscard]] step on_answers(const answers& said, core::time_point now,
                                std::chrono::milliseconds wall);

 private:
  enum class stage { looking, reading, admitting };

  [[nodiscard]] step ask_all(stage what, core::time_point now, std::chrono::milliseconds wall);
  [[nodiscard]] step after_look(core::time_point now, std::chrono::milliseconds wall);
  [[nodiscard]] step after_reading(core::time_point now, std::chrono::milliseconds wall);
  [[nodiscard]] step pause(core::time_point now, bool lets_in) const;

  const set_identity set_;
  const core::admission_rule rule_;
  core::admission admission_;
  const id_source fresh_id_;
  stage at_ = stage::looking;
  std::vector<node_standing> seen_;
  std::vector<std::string> over_;  // of each node: the wait that was over when it was looked at
};

}  // namespace holdfast::stores::redlock
