// A server whose folder was deleted under it (a tmp cleaner, rm -rf) still serves those who are
// connected, but nobody can find it any more. A second server beside it would be a second lock
// space, so it must be noticed: its working folder gives it away.
#pragma once

#include <cstdint>
#include <string>

namespace holdfast::stores::local {

// Process id of a server of ours that was started in `folder`, since deleted; 0 if there is none.
[[nodiscard]] std::int64_t find_orphan(const std::string& folder);

}  // namespace holdfast::stores::local
