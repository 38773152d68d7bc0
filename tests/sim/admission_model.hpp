// Runs stores/redlock/rejoining.hpp in a simulated client, as node_set does in a real one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/client_model.hpp"
#include "sim/lock_script.hpp"
#include "sim/quorum_set.hpp"
#include "sim/random.hpp"
#include "sim/round_model.hpp"
#include "stores/redlock/rejoining.hpp"

namespace holdfast::sim {

class admission_model {
 public:
  admission_model(process& in, const quorum_set& set, const round_model::lines& calls,
                  const quorum_scripts& scripts, const left_out& without, std::uint64_t seed);

  // A node refuses to vote because it may have lost something: see to it, in the background.
  void look_after_nodes();
  // What asks a node what it is.
  [[nodiscard]] line_model::call look_call(std::size_t node) const;
  // What a real client reads by the same code.
  [[nodiscard]] static bool has_to_wait(const reply& standing);

 private:
  using step = stores::redlock::rejoining::step;

  void perform(step next);
  void ask(const step& what);
  void resume(const question_model::answers& answers);
  void answer_from_early(std::vector<stores::redis::reply_value>& said);
  [[nodiscard]] line_model::call as_call(stores::redlock::record_script script) const;
  [[nodiscard]] std::chrono::milliseconds wall() const;

  process& in_;
  const quorum_set& set_;
  const round_model::lines& calls_;
  const quorum_scripts& scripts_;
  const left_out without_;
  random_stream random_;
  stores::redlock::rejoining rejoining_;
  bool looking_ = false;
  bool reading_ = false;
  // What nodes said when one of them was first seen to wait; only if planted.
  std::map<std::string, std::vector<stores::redis::reply_value>> early_;
};

}  // namespace holdfast::sim
