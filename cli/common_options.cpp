#include "common_options.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <vector>

#include <CLI/CLI.hpp>

#include "duration.hpp"
#include "store_url.hpp"

namespace holdfast::cli {
namespace {

constexpr std::size_t owner_digits = 32;
constexpr std::uint64_t token_max = (std::uint64_t{1} << 53) - 1;

std::uint64_t parse_token(const std::string& text) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc{} || rest != end || value == 0 || value > token_max) {
    throw CLI::ValidationError{"--token", "must be the number that was printed with the lock"};
  }
  return value;
}

std::string parse_owner(const std::string& text) {
  const bool hexadecimal = std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
  if (text.size() != owner_digits || !hexadecimal) {
    throw CLI::ValidationError{"--owner",
                               "must be the 32 hexadecimal digits that `holdfast lock` printed"};
  }
  return text;
}

using kind = lock_choice::kind;

kind parse_format(const std::string& text) {
  if (text == "holdfast") return kind::mutex;
  if (text == "redisson") return kind::redisson;
  if (text == "redisson-fenced") return kind::redisson_fenced;
  if (text == "redisson-fair") return kind::redisson_fair;
  if (text == "redisson-rw") return kind::redisson_writer;
  throw CLI::ValidationError{
      "--format", "must be holdfast, redisson, redisson-fenced, redisson-fair or redisson-rw"};
}

// --shared and --writer choose a side of a lock that has two, in whichever order they are read.
void choose_side(lock_choice& into, kind side, kind format) {
  if (format == kind::redisson_writer) {
    into.what = side == kind::reader ? kind::redisson_reader : kind::redisson_writer;
  } else if (format == kind::mutex) {
    into.what = side;
  } else {
    throw CLI::ValidationError{
        "--format",
        "has no readers and writers: --shared and --writer go with holdfast and redisson-rw"};
  }
}

void choose_format(lock_choice& into, kind format) {
  if (into.what == kind::reader || into.what == kind::writer) {
    choose_side(into, into.what, format);
  } else {
    into.what = format;
  }
}

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

void add_name(CLI::App& verb, target_options& into) {
  verb.add_option("NAME,--name", into.name,
                  "The lock's name: any bytes, up to 512 (--name=NAME if it starts with a dash)")
      ->required()
      ->type_name("");
  add_store(verb, into.store);
}

void add_names(CLI::App& verb, std::vector<std::string>& into) {
  verb.add_option("NAME,--name", into,
                  "The lock's name: any bytes, up to 512 (--name=NAME if it starts with a dash). "
                  "Several: all of these locks, or none")
      ->required()
      ->type_name("");
}

void add_store(CLI::App& verb, std::string& into) {
  verb.add_option(
          "--store", into,
          "Where locks are kept: local:, unix:/path, redis://host, "
          "redis+sentinel://host1,host2,host3/master, redis+cluster://host1,host2, "
          "redlock://host1,host2,host3, etcd://host1,host2,host3 or "
          "zookeeper://host1,host2,host3; with TLS rediss://, rediss+sentinel://, "
          "rediss+cluster://, redlock+tls:// or etcd+tls:// (with a password: use the variable)")
      ->envname("HOLDFAST_STORE")
      ->type_name("URL")
      ->default_str("local:");
  verb.add_option("--password-file",
                  "A file whose first line is the store's password; read again for each connection")
      ->envname("HOLDFAST_PASSWORD_FILE")
      ->type_name("PATH");
}

void add_ttl(CLI::App& verb, std::chrono::milliseconds& into) {
  verb.add_option_function<std::string>(
          "--ttl", [&into](const std::string& text) { into = parse_duration("--ttl", text); },
          "How long the store keeps the lock when it hears nothing of its holder")
      ->type_name("DURATION")
      ->default_str("30s");
}

void add_acquire(CLI::App& verb, acquire_options& into) {
  add_ttl(verb, into.ttl);
  verb.add_option_function<std::string>(
          "--wait", [&into](const std::string& text) { into.wait = parse_wait("--wait", text); },
          "How long to wait for the lock; 0 asks once")
      ->type_name("DURATION")
      ->default_str("forever");
  verb.add_option_function<std::string>(
          "--unreachable",
          [&into](const std::string& text) {
            into.unreachable = parse_wait("--unreachable", text);
          },
          "How long the store may be away while waiting")
      ->type_name("DURATION")
      ->default_str("as long as --wait");
  verb.add_flag("-q,--quiet", into.quiet, "Do not say that it waits");
  verb.add_option("--label", into.label, "Shown with the holder, in `status` for example")
      ->type_name("TEXT");
  verb.add_option("--busy-exit", into.busy_exit, "Exit code when another holder has the lock")
      ->type_name("N")
      ->check(CLI::Range(0, 255))
      ->default_str("75");
}

CLI::Option* add_format(CLI::App& verb, lock_choice& into) {
  return verb
      .add_option_function<std::string>(
          "--format", [&into](const std::string& text) { choose_format(into, parse_format(text)); },
          "How the lock is kept: holdfast; redisson, to share it with Java programs, without "
          "tokens; redisson-fenced, with tokens that count 1, 2, 3; redisson-fair, first come, "
          "first served; redisson-rw, one writer, or with --shared many readers")
      ->type_name("FORMAT")
      ->default_str("holdfast");
}

void add_lock_choice(CLI::App& verb, lock_choice& into) {
  const std::vector<CLI::Option*> all{
      verb.add_flag_callback(
          "--shared", [&into] { choose_side(into, kind::reader, into.what); },
          "Take it as one of many readers"),
      verb.add_flag_callback(
          "--writer", [&into] { choose_side(into, kind::writer, into.what); },
          "Take it as the one writer of a lock that others take with --shared"),
      verb.add_option_function<std::string>(
              "--permits", [&into](const std::string& text) { parse_permits(text, into); },
              "Take N of M permits instead of a lock that has one holder")
          ->type_name("N/M")};
  for (CLI::Option* const one : all) {
    for (CLI::Option* const other : all) {
      if (one != other) one->excludes(other);
    }
  }
  add_format(verb, into)->excludes(all.back());
}

CLI::Option* add_owner(CLI::App& verb, std::string& into) {
  return verb
      .add_option_function<std::string>(
          "--owner", [&into](const std::string& text) { into = parse_owner(text); },
          "The owner that `holdfast lock` printed")
      ->type_name("ID");
}

CLI::Option* add_token(CLI::App& verb, std::uint64_t& into) {
  return verb
      .add_option_function<std::string>(
          "--token", [&into](const std::string& text) { into = parse_token(text); },
          "The fencing token that was printed with the lock")
      ->type_name("N");
}

void settle_store(CLI::App& app) {
  for (CLI::App* verb : app.get_subcommands())
    settle_store(*verb);
  CLI::Option* const store = app.get_option_no_throw("--store");
  if (store == nullptr) return;
  if (store->count() == 0) {
    const char* const variable = std::getenv("HOLDFAST_STORE");
    if (variable == nullptr) return;  // the default, local:
    throw CLI::ValidationError{"HOLDFAST_STORE",
                               "is set but empty: give it the store's URL, or unset it to use "
                               "local:, which excludes only this user on this host"};
  }
  const std::string given = store->results().back();
  const std::string url = given.substr(0, given.find_last_not_of(" \t\r\n") + 1);
  if (url.empty()) {
    throw CLI::ValidationError{"the store's URL", "is empty: give one, or unset HOLDFAST_STORE"};
  }
  if (url.starts_with("memory:")) {
    throw CLI::ValidationError{
        "--store",
        "memory: is inside one process, so on the command line it would exclude nobody: use "
        "local:, unix:/path, redis://host, redlock://host1,host2,host3 or etcd://host1,…"};
  }
  const CLI::Option* const file = app.get_option_no_throw("--password-file");
  const bool has_file = file != nullptr && file->count() != 0;
  store->clear();
  store->add_result(with_tls_variables(
      has_file ? with_password_file(url, "--password-file", file->results().back()) : url));
  store->run_callback();
}

}  // namespace holdfast::cli
