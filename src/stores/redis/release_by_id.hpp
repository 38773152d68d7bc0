// Giving a lock back for sure.
#pragma once

#include "core/types.hpp"
#include "stores/redis/script_call.hpp"
#include "stores/store.hpp"
#include "stores/waiting.hpp"

namespace holdfast::stores::redis {

class server;

// Asks for the release until it is answered or the machine gives up, by `until`. A release that
// could not name the next holder in one go is asked for again.
void release_by_id(server& on, script_call script, core::time_point until, bool unanswered_before,
                   caller& by, attempt::on_removal done);

}  // namespace holdfast::stores::redis
