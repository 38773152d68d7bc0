#include "lock_choice.hpp"

#include <charconv>
#include <utility>

#include <CLI/CLI.hpp>

namespace holdfast::cli {

namespace {

// "N/M": N of M.
void parse_permits(const std::string& text, lock_choice& into) {
  const char* const end = text.data() + text.size();
  const auto wanted = std::from_chars(text.data(), end, into.wanted);
  const bool divided = wanted.ec == std::errc{} && wanted.ptr != end && *wanted.ptr == '/';
  const auto all = std::from_chars(divided ? wanted.ptr + 1 : end, end, into.there_are);
  if (!divided || all.ec != std::errc{} || all.ptr != end || into.wanted == 0 ||
      into.wanted > into.there_are) {
    throw CLI::ValidationError{"--permits",
                               "wants N/M, N of the M permits that there are: --permits 1/4"};
  }
  into.what = lock_choice::kind::permits;
}

}  // namespace

void add_lock_choice(CLI::App& verb, lock_choice& into) {
  auto* const reader = verb.add_flag_callback(
      "--shared", [&into] { into.what = lock_choice::kind::reader; },
      "Take it as one of many readers");
  auto* const writer = verb.add_flag_callback(
      "--writer", [&into] { into.what = lock_choice::kind::writer; },
      "Take it as the one writer of a lock that others take with --shared");
  auto* const permits =
      verb.add_option_function<std::string>(
              "--permits", [&into](const std::string& text) { parse_permits(text, into); },
              "Take N of M permits instead of a lock that has one holder")
          ->type_name("N/M");
  reader->excludes(writer);
  reader->excludes(permits);
  writer->excludes(permits);
}

chosen_lock::any_lock chosen_lock::open(client& store, const std::string& name,
                                        const lock_choice& choice, lock_options options) {
  switch (choice.what) {
    case lock_choice::kind::reader:
    case lock_choice::kind::writer:
      return store.shared_mutex(name, std::move(options));
    case lock_choice::kind::permits:
      return store.semaphore(name, choice.there_are, std::move(options));
    case lock_choice::kind::mutex:
      break;
  }
  return store.mutex(name, std::move(options));
}

chosen_lock::chosen_lock(client& store, const std::string& name, const lock_choice& choice,
                         lock_options options)
    : choice_{choice}, lock_{open(store, name, choice, std::move(options))} {}

const std::string& chosen_lock::name() const {
  return std::visit([](const auto& one) -> const std::string& { return one.name(); }, lock_);
}

std::optional<lease> chosen_lock::try_acquire(std::chrono::nanoseconds wait,
                                              const std::stop_token& stop) {
  if (auto* shared = std::get_if<shared_mutex>(&lock_)) {
    return choice_.what == lock_choice::kind::reader ? shared->try_acquire_shared(wait, stop)
                                                     : shared->try_acquire(wait, stop);
  }
  if (auto* permits = std::get_if<semaphore>(&lock_)) {
    return permits->try_acquire(choice_.wanted, wait, stop);
  }
  return std::get<mutex>(lock_).try_acquire(wait, stop);
}

lease chosen_lock::adopt(const lease_ticket& ticket) {
  return std::visit([&](auto& one) { return one.adopt(ticket); }, lock_);
}

}  // namespace holdfast::cli
