#include <holdfast/local.hpp>

#include "runtime/clock.hpp"
#include "stores/local/local_server.hpp"

namespace holdfast::local {

result<server_status> status() { return stores::local::local_server{}.status(); }

result<bool> stop() {
  // A server ends in milliseconds; only one that is stopped or stuck in a script takes longer.
  constexpr std::chrono::seconds patience{10};
  return stores::local::local_server{}.stop(core::after(runtime::now(), patience));
}

}  // namespace holdfast::local
