#include "exit_code.hpp"

namespace holdfast::cli {

int exit_code_for(errc code) noexcept {
  switch (code) {
    case errc::timed_out:
    case errc::stopped:
      return exit_code::busy;
    case errc::lease_lost:
      return exit_code::lease_lost;
    case errc::outcome_unknown:
      return exit_code::io;
    case errc::store_unreachable:
    case errc::store_loading:
    case errc::store_busy:
    case errc::out_of_memory:
    case errc::read_only:
    case errc::wrong_type:
    case errc::moved:
    case errc::incompatible:
    case errc::store_refused:
    case errc::store_missing:
    case errc::overloaded:
      return exit_code::unavailable;
    case errc::not_authenticated:
    case errc::not_permitted:
    case errc::not_trusted:
    case errc::unsafe_folder:
      return exit_code::not_permitted;
    case errc::not_held:
      return exit_code::refused;
    case errc::invalid_argument:
    case errc::unsupported:
      return exit_code::usage;
    case errc::would_deadlock:
    case errc::forked:
      return exit_code::internal;
  }
  return exit_code::internal;
}

}  // namespace holdfast::cli
