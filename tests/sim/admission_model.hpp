// Lets nodes vote that may: the rules of stores/redlock/node_set, told by events.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/admission.hpp"
#include "sim/client_model.hpp"
#include "sim/lock_script.hpp"
#include "sim/quorum_set.hpp"
#include "sim/round_model.hpp"

namespace holdfast::sim {

class admission_model {
 public:
  admission_model(process& in, const quorum_set& set, const round_model::lines& calls,
                  const quorum_scripts& scripts, const left_out& without)
      : in_{in}, set_{set}, calls_{calls}, scripts_{scripts}, without_{without} {}

  // A node refuses to vote because it may have lost something: see to it, in the background.
  void look_after_nodes();
  // What asks a node what it is, letting it begin its wait if it may not vote.
  [[nodiscard]] static line_model::call enrol_call(const quorum_set& set,
                                                   const quorum_scripts& scripts);

 private:
  using counters = std::vector<std::string>;
  struct seen {
    std::vector<core::node_report> reports;
    std::vector<std::string> run_ids;
  };
  // One look at all nodes.
  struct look {
    core::time_point until;
    seen nodes;
    core::admission_plan plan;
    std::size_t next = 0;  // of those to be let in
  };
  using current = std::shared_ptr<look>;

  void survey();
  void read_survey(const current& what, const question_model::answers& answers);
  void admit_next(const current& what);
  void read_counters(core::time_point until, std::function<void(const counters*)> done);
  void admit(const current& what, const counters& least);
  void end(const current& what);
  [[nodiscard]] std::shared_ptr<question_model> question() const {
    return std::make_shared<question_model>(in_, calls_, set_.node_timeout);
  }

  process& in_;
  const quorum_set& set_;
  const round_model::lines& calls_;
  const quorum_scripts& scripts_;
  const left_out without_;
  bool looking_ = false;
  std::map<std::string, counters> read_early_;  // by run_id; only if planted
};

}  // namespace holdfast::sim
