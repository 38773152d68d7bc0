#include "stores/local/local_server.hpp"

#include <fcntl.h>
#include <sys/statvfs.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <holdfast/status.hpp>

#include "runtime/clock.hpp"
#include "stores/local/launch.hpp"
#include "stores/local/orphan.hpp"
#include "stores/local/probe.hpp"

namespace holdfast::stores::local {

namespace {

// Changes with every start of the host's kernel.
std::string this_boot() { return read_small_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id"); }

// Both layouts: one file before Redis 7, a folder since.
void discard_data(const std::string& folder) noexcept {
  std::error_code ignored;
  std::filesystem::remove_all(folder + "/appendonlydir", ignored);
  std::filesystem::remove_all(folder + "/appendonly.aof", ignored);
}

// The end of the log: Redis says there why it gives up.
std::string last_words(const std::string& path) {
  constexpr off_t size_max = 240;
  const runtime::unique_fd log{::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC)};
  if (!log) return {};
  const off_t size = ::lseek(log.get(), 0, SEEK_END);
  ::lseek(log.get(), size > size_max ? size - size_max : 0, SEEK_SET);
  std::array<char, size_max> text{};
  const ssize_t got = ::read(log.get(), text.data(), text.size());
  std::string said{text.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
  while (said.ends_with('\n'))
    said.pop_back();
  return said;
}

// Folders can be made in a full file system where not a byte can be written, the log included.
bool is_full(const std::string& folder) {
  constexpr std::uint64_t too_little = 64 * 1024;
  struct statvfs room {};
  if (::statvfs(folder.c_str(), &room) != 0 || room.f_blocks == 0) return false;
  return std::uint64_t{room.f_bavail} * room.f_frsize < too_little ||
         (room.f_files != 0 && room.f_favail == 0);
}

failure died_at_start(const std::string& folder, const std::string& binary) {
  if (is_full(folder)) {
    return {errc::store_unreachable, "local: " + binary +
                                         " ended while starting: the file system of " + folder +
                                         " is full" + use_another_folder};
  }
  std::string said = escape(last_words(folder + "/" + log_file));
  return {errc::store_unreachable, "local: " + binary + " ended while starting" +
                                       (said.empty() ? "" : ", saying: " + said) + "; see " +
                                       folder + "/" + log_file +
                                       ". If its file is broken and nobody holds a lock, remove " +
                                       folder + "/appendonlydir"};
}

}  // namespace

local_server::local_server(std::string folder)
    : local_server{local_server_options{.folder = std::move(folder)}} {}

local_server::local_server(local_server_options options)
    : folder_{std::move(options.folder)},
      socket_path_{folder_ + "/" + socket_file},
      binary_{std::move(options.binary)} {}

failure local_server::hangs(std::int64_t pid) const {
  if (pid == 0) {
    const std::string path = folder_ + "/" + pid_file;
    pid = std::atoll(read_small_file(AT_FDCWD, path.c_str()).c_str());
  }
  const std::string id = pid > 0 ? std::to_string(pid) : "PID";
  return {errc::store_unreachable,
          "local: the server in " + folder_ + " (pid " + (pid > 0 ? id : "unknown") +
              ") lives but does not answer; if it is stopped, run: kill -CONT " + id +
              "; if it is stuck, run: kill -9 " + id +
              " (its successor still knows every lock). No second one is started beside it"};
}

failure local_server::orphaned(std::int64_t pid) const {
  return {errc::store_unreachable,
          "local: " + folder_ + " was deleted while its server (pid " + std::to_string(pid) +
              ") ran. Locks may be held there, so no second server is started beside it; end the "
              "programs that hold locks, then run: holdfast local stop"};
}

failure local_server::start_lock_taken(std::int64_t pid) const {
  return {errc::store_unreachable, "local: another process (pid " + std::to_string(pid) +
                                       ") is starting or stopping the server in " + folder_ +
                                       " and has not finished; try again, or see what it is doing"};
}

// True: a server answers. False: nobody listens.
result<bool> local_server::await_answer(core::time_point until) const {
  for (;;) {
    auto seen = look_for_server(socket_path_, until);
    if (!seen) return fail(std::move(seen.error()));
    switch (seen->state) {
      case presence::ready:
        return true;
      case presence::absent:
        return false;
      case presence::silent:
        return fail(hangs(seen->pid));
      case presence::loading:
        break;
    }
    if (runtime::now() >= until) {
      return fail(errc::store_loading, "local: the server in " + folder_ + " (pid " +
                                           std::to_string(seen->pid) +
                                           ") is still reading its file; try again");
    }
    nap(until);
  }
}

// True: the lock is ours. False: not needed any more, a server answers. A starter that was stopped
// or is slow after its server came up delays nobody.
result<bool> local_server::await_start_lock(file_lock& lock, core::time_point until) const {
  while (!lock.try_lock()) {
    if (runtime::now() >= until) return fail(start_lock_taken(lock.holder_pid()));
    nap(until);
    auto up = await_answer(until);
    if (!up || *up) return up.map([](bool) { return false; });
  }
  return true;
}

result<void> local_server::ensure_running(core::time_point until) {
  // More than once only if a cleaner removes the folder between our opening and locking it.
  constexpr int tries = 5;
  for (int i = 0; i < tries; ++i) {
    auto folder = open_folder(folder_, if_absent::create);
    if (!folder) return fail(std::move(folder.error()));
    auto up = await_answer(until);
    if (!up) return fail(std::move(up.error()));
    if (*up) return {};
    auto lock = file_lock::open_start_lock(folder->get());
    if (!lock) return fail(std::move(lock.error()));
    auto ours = await_start_lock(*lock, until);
    if (!ours) return fail(std::move(ours.error()));
    if (!*ours) return {};
    if (still_named(folder_, folder->get())) return start(folder->get(), until);
  }
  return fail(errc::unsafe_folder,
              "local: " + folder_ + " is removed as fast as it is made; find out by whom");
}

// Under the start lock.
result<void> local_server::start(int folder, core::time_point until) const {
  auto life = file_lock::open_life_lock(folder);
  if (!life) return fail(std::move(life.error()));
  for (;;) {
    auto up = await_answer(until);
    if (!up) return fail(std::move(up.error()));
    if (*up) return {};
    if (life->try_lock()) break;
    if (runtime::now() >= until) return fail(hangs(0));
    nap(until);
  }
  // No server process lives in this folder, so what it left there is stale.
  if (const auto pid = find_orphan(folder_); pid != 0) return fail(orphaned(pid));
  auto binary = find_server(binary_);
  if (!binary) return fail(std::move(binary.error()));
  ::unlinkat(folder, socket_file, 0);
  ::unlinkat(folder, pid_file, 0);
  life->unlock();
  return launch(folder, *binary, until);
}

result<void> local_server::launch(int folder, const std::string& binary,
                                  core::time_point until) const {
  const std::string boot = this_boot();
  const std::string boot_before = read_small_file(folder, boot_file);
  // A host that crashed may leave a file that Redis refuses, since it is never synced. All holders
  // died with the host, so nothing is lost with it; without a crash it is never thrown away.
  const bool host_restarted = !boot.empty() && !boot_before.empty() && boot != boot_before;
  for (bool again = false;; again = true) {
    auto server = launch_server(binary, folder, socket_path_, until);
    if (!server) return fail(std::move(server.error()));
    auto up = *server ? await_launched(**server, until) : await_other(until);
    if (!up) return fail(std::move(up.error()));
    if (*up) break;
    if (const int error = (*server)->exec_error(); error != 0) {
      return fail(errc::store_missing,
                  "local: " + binary + " cannot be run: " + std::generic_category().message(error));
    }
    if (again || !host_restarted) return fail(died_at_start(folder_, binary));
    discard_data(folder_);
  }
  write_small_file(folder, boot_file, boot);
  return {};
}

// False: it ended instead.
result<bool> local_server::await_launched(const launched& server, core::time_point until) const {
  for (;;) {
    const bool ended = server.ended();
    auto up = await_answer(until);
    if (!up || *up) return up;
    if (ended) return false;
    if (runtime::now() >= until) return fail(hangs(server.pid()));
    nap(until);
  }
}

// A process whose starter died took the life lock before ours: it becomes the server.
result<bool> local_server::await_other(core::time_point until) const {
  for (;;) {
    auto up = await_answer(until);
    if (!up || *up) return up;
    if (runtime::now() >= until) return fail(hangs(0));
    nap(until);
  }
}

result<holdfast::local::server_status> local_server::status() {
  constexpr std::chrono::seconds patience{1};  // only a full queue of connections makes us wait
  holdfast::local::server_status now{.folder = folder_, .socket = socket_path_};
  auto folder = open_folder(folder_, if_absent::leave);
  if (!folder) return fail(std::move(folder.error()));
  auto made = connect_server(socket_path_, core::after(runtime::now(), patience));
  if (!made) return fail(std::move(made.error()));
  now.running = made->listening;
  now.pid = made->pid;
  if (now.running) return now;
  if (const auto pid = find_orphan(folder_); pid != 0) return fail(orphaned(pid));
  return now;
}

}  // namespace holdfast::stores::local
