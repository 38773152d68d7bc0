// Decides, for one lease on N nodes, whether a renewal counts and which nodes are to be repaired.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <holdfast/lease.hpp>

#include "core/quorum_machine.hpp"
#include "core/types.hpp"

namespace holdfast::core {

// No I/O, no clock. Not thread-safe. A renewal counts when a majority has extended our key, each
// having checked that it is ours. A node that lost the key is given it again once the majority is
// sure, and is not counted in this round: it proves nothing about the time when it had none.
class renewal_round {
 public:
  enum class said {
    extended,
    gone,    // nobody holds it there
    taken,   // somebody else does
    failed,  // refused, unreachable, an error
  };
  explicit renewal_round(std::size_t nodes) : places_(nodes, place::open) {}

  void on_answer(std::size_t node, said what);
  // Not waited for any more.
  void on_silence(std::size_t node);

  enum class outcome {
    undecided,
    renewed,
    lost,    // so many nodes lost it that no majority is left
    failed,  // not known: too few answered
  };
  [[nodiscard]] outcome result() const noexcept;
  [[nodiscard]] loss why() const noexcept;  // when lost
  // Nodes that lost the key while a majority has it; none unless renewed.
  [[nodiscard]] std::vector<std::size_t> to_repair() const;

 private:
  enum class place { open, silent, extended, gone, taken, failed };
  [[nodiscard]] std::size_t count(place which) const noexcept;
  std::vector<place> places_;
};

}  // namespace holdfast::core
