#include "stores/background_caller.hpp"

#include <utility>

namespace holdfast::stores {

void begin_in_background(runtime::background& on, std::function<void(caller&)> begin) {
  on.run_always([begin = std::move(begin)] {
    blocking_caller here;
    begin(here);
    here.run();
  });
}

}  // namespace holdfast::stores
