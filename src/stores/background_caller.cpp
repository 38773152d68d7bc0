#include "stores/background_caller.hpp"

#include <utility>

namespace holdfast::stores {

namespace {

runtime::background::task on_its_thread(std::function<void(caller&)> begin) {
  return [begin = std::move(begin)] {
    blocking_caller here;
    begin(here);
    here.run();
  };
}

}  // namespace

void begin_in_background(runtime::background& on, std::function<void(caller&)> begin) {
  on.run_always(on_its_thread(std::move(begin)));
}

bool begin_in_background_at(runtime::background& on, core::time_point when,
                            std::function<void(caller&)> begin) {
  return on.run_at(when, on_its_thread(std::move(begin)));
}

}  // namespace holdfast::stores
