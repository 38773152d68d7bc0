// Where a request to a cluster goes next: decisions without I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/backoff.hpp"
#include "core/types.hpp"
#include "stores/redis/cluster/slot_map.hpp"

namespace holdfast::stores::redis {

// A node did not run the request.
struct redirection {
  enum class kind {
    moved,    // the slot has another node for good
    ask,      // this request only goes there: the slot is on its way
    not_now,  // nobody can run it now: TRYAGAIN, CLUSTERDOWN, LOADING, MASTERDOWN
  };
  kind what{};
  unsigned slot = 0;
  node_address to{};
};
// Nothing: it says something else. `said_by`: the host of the node that said so.
[[nodiscard]] std::optional<redirection> read_redirection(std::string_view said,
                                                          const std::string& said_by);

// Not thread-safe. One request's way:
//
// | event                        | what to do                                                    |
// |------------------------------|---------------------------------------------------------------|
// | MOVED                        | send there                                                    |
// | ASK                          | send there, behind ASKING                                     |
// | more than hops_max in a row  | pause, then send to whoever has the slot by then              |
// | TRYAGAIN and its like        | the same; give up if that were too late                       |
// | the node cannot be reached   | look at the map anew, looks_max times, then give up           |
class route {
 public:
  // Two nodes that point at each other are not followed for ever.
  static constexpr int hops_max = 4;
  static constexpr int looks_max = 2;

  struct step {
    enum class verb { send, send_asking, pause, look_anew, give_up };
    verb what;
    node_address to{};         // of send and send_asking
    core::time_point until{};  // of pause
  };

  route(core::time_point until, std::uint64_t seed) noexcept;

  [[nodiscard]] step on_redirection(const redirection& said, core::time_point now);
  [[nodiscard]] step on_unreachable(core::time_point now) noexcept;

 private:
  [[nodiscard]] step pause(core::time_point now) noexcept;

  core::time_point until_;
  core::backoff pace_;
  int hops_ = 0;
  int looks_ = 0;
};

}  // namespace holdfast::stores::redis
