// Start here. client.hpp is the way in, mutex.hpp a lock (and
// shared_mutex.hpp, semaphore.hpp, latch.hpp), lease.hpp a held lock, options.hpp every
// setting, error.hpp what goes wrong, fence.hpp what makes a token protect something.
#pragma once

#include <holdfast/acquire_all.hpp>
#include <holdfast/client.hpp>
#include <holdfast/error.hpp>
#include <holdfast/examination.hpp>
#include <holdfast/fence.hpp>
#include <holdfast/guarantees.hpp>
#include <holdfast/latch.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/local.hpp>
#include <holdfast/loss.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/observer.hpp>
#include <holdfast/options.hpp>
#include <holdfast/recursive_mutex.hpp>
#include <holdfast/redisson.hpp>
#include <holdfast/redlock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>
#include <holdfast/status.hpp>
#include <holdfast/token.hpp>
#include <holdfast/untrusted.hpp>
#include <holdfast/version.hpp>
