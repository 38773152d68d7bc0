// Decides, for one lease on N nodes, whether a renewal counts and which nodes are to be repaired.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/loss.hpp>

#include "core/quorum_machine.hpp"
#include "core/types.hpp"

namespace holdfast::core {

// No I/O, no clock. Not thread-safe. A renewal counts when a majority has extended our key, each
// having checked that it is ours. A node that lost the key is given it again once the majority is
// sure, and is not counted in this round: it proves nothing about the time when it had none.
//
// For the same reason a key with a token above the lease's does not count. The lease was raised to
// a token below what its attempt had proposed, because some nodes did not believe the proposal; an
// acquire that was held up then came to a node that did, where another attempt had come and gone.
class renewal_round {
 public:
  enum class said {
    gone,    // nobody holds it there
    taken,   // another holds it
    failed,  // refused, unreachable, an error
  };
  // `token`: the lease's; none if it is not known, and then it is what most nodes say, and those
  // alone count.
  renewal_round(std::size_t nodes, fencing_token token) : token_{token}, places_(nodes) {}

  // Our key is there, with this token.
  void on_extended(std::size_t node, fencing_token token);
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
  // Of those that count, the node with the highest token: others were not raised to it.
  [[nodiscard]] std::optional<std::size_t> best() const noexcept;
  // Nodes that lost the key while a majority has it; none unless renewed.
  [[nodiscard]] std::vector<std::size_t> to_repair() const;

 private:
  enum class state { open, silent, extended, gone, taken, failed };
  struct place {
    state is = state::open;
    fencing_token token{};
  };
  // As far as the lease's token goes, an extension that does not count is a key that is gone.
  [[nodiscard]] state judged(const place& one, fencing_token token) const noexcept;
  [[nodiscard]] fencing_token lease_token() const noexcept;
  [[nodiscard]] std::size_t count(state which) const noexcept;

  fencing_token token_;
  std::vector<place> places_;
};

}  // namespace holdfast::core
