// Locks inside this process: for a user's own unit tests, with the behaviour of a real store.
#pragma once

#include <memory>
#include <string_view>

#include "stores/store.hpp"

namespace holdfast::stores::memory {

// Stores of the same name share their locks for as long as one of them lives.
[[nodiscard]] std::unique_ptr<store> make_memory_store(std::string_view name);

}  // namespace holdfast::stores::memory
