// Watching a client's locks: events as they happen, and counters.
//
//   observe [store URL, default memory:]
#include <iostream>
#include <memory>
#include <mutex>

#include <holdfast/holdfast.hpp>

namespace {

class logger final : public holdfast::observer {
 public:
  void on_event(const holdfast::event& what) noexcept override {
    if (what.type != holdfast::event::kind::lost) return;
    std::cerr << "lost " << holdfast::untrusted::escape(what.lock) << ": " << what.detail << '\n';
  }
};

}  // namespace

int main(int argc, char** argv) {
  holdfast::client_options options;
  options.observer = std::make_shared<logger>();
  holdfast::client client{argc > 1 ? argv[1] : "memory:", options};

  auto orders = client.mutex("orders");
  for (int i = 0; i < 3; ++i) {
    const std::scoped_lock guard{orders};
  }

  const auto counts = client.counters();
  std::cout << counts.acquisitions << " acquired, " << counts.waits << " waited, " << counts.losses
            << " lost\n";
  std::cout << client.guarantees().summary << '\n';
}
