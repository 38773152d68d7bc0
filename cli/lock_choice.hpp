// Which kind of lock a name stands for.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>

#include <CLI/App.hpp>

#include <holdfast/client.hpp>
#include <holdfast/lease.hpp>

namespace holdfast::cli {

struct lock_choice {
  enum class kind { mutex, reader, writer, permits };
  kind what = kind::mutex;
  std::uint32_t wanted = 1;     ///< of permits
  std::uint32_t there_are = 1;  ///< of permits
};

// --shared, --writer and --permits.
void add_lock_choice(CLI::App& verb, lock_choice& into);

// A lock of the kind that was chosen. Throws holdfast::error as the library does.
class chosen_lock {
 public:
  chosen_lock(client& store, const std::string& name, const lock_choice& choice,
              lock_options options);

  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] std::optional<lease> try_acquire(std::chrono::nanoseconds wait,
                                                 const std::stop_token& stop);
  [[nodiscard]] lease adopt(const lease_ticket& ticket);

 private:
  using any_lock = std::variant<mutex, shared_mutex, semaphore>;
  [[nodiscard]] static any_lock open(client& store, const std::string& name,
                                     const lock_choice& choice, lock_options options);

  const lock_choice choice_;
  any_lock lock_;
};

}  // namespace holdfast::cli
