// Options that several verbs share, so that they read and behave the same everywhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <CLI/App.hpp>

#include <holdfast/lease.hpp>
#include <holdfast/options.hpp>

#include "exit_code.hpp"
#include "named_lock.hpp"

namespace holdfast::cli {

struct target_options {
  std::string name{};
  std::string store{"local:"};
};

struct acquire_options {
  std::chrono::milliseconds ttl{30'000};
  std::chrono::nanoseconds wait{forever};
  std::string label{};
  // How long the store may be away; empty: as long as the wait.
  std::optional<std::chrono::nanoseconds> unreachable{};
  bool quiet = false;
  int busy_exit = exit_code::busy;
};

struct ticket_options {
  std::string owner{};
  std::uint64_t token = 0;
};

// All of these keep a reference to what they fill in until the command line is parsed.
void add_name(CLI::App& verb, target_options& into);
void add_names(CLI::App& verb, std::vector<std::string>& into);
void add_store(CLI::App& verb, std::string& into);
void add_ttl(CLI::App& verb, std::chrono::milliseconds& into);
void add_acquire(CLI::App& verb, acquire_options& into);
CLI::Option* add_format(CLI::App& verb, lock_choice& into);
// --shared, --writer, --permits and --format, one of them at the most.
void add_lock_choice(CLI::App& verb, lock_choice& into);
CLI::Option* add_owner(CLI::App& verb, std::string& into);
CLI::Option* add_token(CLI::App& verb, std::uint64_t& into);

// Once the command line is parsed: refuses a store that would exclude nobody (an empty one, and
// memory:), and gives the chosen one the password of --password-file. Throws CLI::ValidationError.
void settle_store(CLI::App& app);

}  // namespace holdfast::cli
