#include "lock_variables.hpp"

#include <cstddef>
#include <cstdlib>

#include "held_locks.hpp"
#include "lock_set.hpp"

namespace holdfast::cli {
namespace {

void set(const std::string& variable, const std::string& value) {
  ::setenv(variable.c_str(), value.c_str(), 1);
}

void tell(const told_lock& lock, const std::string& suffix) {
  set("HOLDFAST_LOCK" + suffix, lock.name);
  if (lock.token != 0) set("HOLDFAST_TOKEN" + suffix, std::to_string(lock.token));
}

void forget(const std::string& suffix) {
  ::unsetenv(("HOLDFAST_LOCK" + suffix).c_str());
  ::unsetenv(("HOLDFAST_TOKEN" + suffix).c_str());
}

}  // namespace

void set_lock_variables(const std::vector<told_lock>& locks) {
  auto held = held_locks::of_this_process();  // counts what is in HOLDFAST_LOCK so far
  for (const auto& one : locks)
    held.add(one.name, one.held_token);
  set(held_locks::variable, held.text());

  forget("");
  ::unsetenv("HOLDFAST_LOCKS");
  for (std::size_t i = 1; i <= locks_at_once_max; ++i)
    forget("_" + std::to_string(i));
  if (locks.size() == 1) return tell(locks.front(), "");
  set("HOLDFAST_LOCKS", std::to_string(locks.size()));
  for (std::size_t i = 0; i < locks.size(); ++i)
    tell(locks[i], "_" + std::to_string(i + 1));
}

}  // namespace holdfast::cli
