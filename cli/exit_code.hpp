// What the command's exit status says. Scripts rely on these: docs/cli.md lists them, and a number
// once given a meaning keeps it. From 64 on they follow sysexits.h.
#pragma once

#include <holdfast/error.hpp>

namespace holdfast::cli {

namespace exit_code {
inline constexpr int ok = 0;
inline constexpr int refused = 1;         // the answer is no: not held with that token, not running
inline constexpr int danger = 2;          // `doctor`: what it found voids a guarantee
inline constexpr int usage = 64;          // the command line makes no sense; nothing was done
inline constexpr int unavailable = 69;    // the store cannot be reached or cannot serve
inline constexpr int internal = 70;       // a bug, or the guardian was killed
inline constexpr int io = 74;             // no answer came, or output could not be written
inline constexpr int busy = 75;           // another holder has the lock
inline constexpr int lease_lost = 76;     // held, but not to the end
inline constexpr int not_permitted = 77;  // the store wants other credentials or rights
inline constexpr int not_executable = 126;  // `run`: as a shell does
inline constexpr int not_found = 127;       // `run`: as a shell does
inline constexpr int signal_base = 128;     // 128+n: ended by signal n
}  // namespace exit_code

[[nodiscard]] int exit_code_for(errc code) noexcept;

}  // namespace holdfast::cli
