// What a store promises, for programs that want to refuse one that promises too little.
#pragma once

#include <string>

namespace holdfast {

struct guarantees {
  // Whose failure ends exclusion, beside clocks and pauses (docs/guarantees.md says it in full).
  enum class storage_kind {
    process,  ///< lives and dies with this process: for unit tests
    single,   ///< one server: exclusion ends if it loses its data while the lock is held
    quorum,   ///< a majority of independent servers must lose it
    session,  ///< a replicated log with sessions
  };
  storage_kind storage = storage_kind::single;
  bool shared_between_processes = false;
  bool shared_between_hosts = false;
  // Tokens go on increasing when the store comes back empty or with old data, if its clocks are
  // right: docs/guarantees.md says how right.
  bool tokens_survive_data_loss = false;
  // The lock survives a crash of the store's process (known for `local:` only).
  bool lock_survives_server_crash = false;
  // Waiters are served in the order they came.
  bool fifo = false;
  // One sentence for a person.
  std::string summary{};
};

}  // namespace holdfast
