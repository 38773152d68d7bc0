// The fair lock that is shared with Java programs that use Redisson.
#pragma once

#include <holdfast/redisson.hpp>

namespace holdfast::redisson {

// The lock that Java's `redisson.getFairLock(name)` is: an rlock with a queue, in which waiters of
// Java and of C++ are served in the order in which they came. Threads of one client queue one by
// one. A try without a wait does not join, and does not overtake those who wait.
//
// A waiter of ours that dies delays those behind it by two of its TTLs at most, once it is the
// first (a minute, by default; never more than five). One of Redisson's, by its fairLockWaitTimeout
// (five minutes, by default). One that gives up leaves the queue at once.
//
// Whether a waiter is still there goes by the server's clock for ours, and by their own for Java's
// processes. One whose clock is ahead of the server's by two TTLs drops waiters of ours, which then
// queue anew at the end. Exclusion does not depend on clocks.
//
// Never use rlock, or Java's getLock(), on the same name: they ignore the queue.
class HOLDFAST_API rfair_lock : public rlock {
 public:
  rfair_lock(client& on, std::string_view name);
  rfair_lock(client& on, std::string_view name, const lock_options& options);
};

}  // namespace holdfast::redisson
