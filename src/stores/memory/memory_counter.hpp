// A latch of a memory store.
#pragma once

#include <memory>
#include <string>

#include "core/counter.hpp"
#include "stores/counter.hpp"
#include "stores/memory/space.hpp"

namespace holdfast::stores::memory {

[[nodiscard]] std::shared_ptr<store_counter> make_latch(std::shared_ptr<space> in, std::string name,
                                                        const core::counter_kind& kind);

}  // namespace holdfast::stores::memory
