#include <poll.h>
#include <sys/syscall.h>

#include <csignal>

#include "runtime/clock.hpp"
#include "runtime/socket.hpp"
#include "stores/local/launch.hpp"
#include "stores/local/local_server.hpp"
#include "stores/local/orphan.hpp"
#include "stores/local/probe.hpp"

namespace holdfast::stores::local {

namespace {

bool await_end(const runtime::unique_fd& process, core::time_point until) noexcept {
  return !process || runtime::wait_ready(process.get(), POLLIN, until) == runtime::readiness::ready;
}

}  // namespace

result<bool> local_server::stop(core::time_point until) {
  auto folder = open_folder(folder_, if_absent::leave);
  if (!folder) return fail(std::move(folder.error()));
  if (!*folder) return stop_orphan(until);
  auto lock = file_lock::open_start_lock(folder->get());
  if (!lock) return fail(std::move(lock.error()));
  while (!lock->try_lock()) {
    if (runtime::now() >= until) return fail(start_lock_taken(lock->holder_pid()));
    nap(until);
  }
  auto stopped = stop_listener(folder->get(), until);
  if (!stopped || *stopped) return stopped;
  return stop_orphan(until);
}

// Under the start lock. False: there was none.
result<bool> local_server::stop_listener(int folder, core::time_point until) const {
  auto life = file_lock::open_life_lock(folder);
  if (!life) return fail(std::move(life.error()));
  contact server;
  while (!server.fd) {
    auto made = connect_server(socket_path_, until);
    if (!made) return fail(std::move(made.error()));
    server = std::move(*made);
    // A server that nobody waits for may be about to listen: its starter was killed.
    if (!server.fd && !server.listening && life->try_lock()) return false;
    if (!server.fd && runtime::now() >= until) return fail(hangs(server.pid));
    if (!server.fd) nap(until);
  }
  const auto process = open_process(server.pid);
  // Over the connection, not by a signal: that reaches the right process whatever its id is by now.
  // A failure to send means that it is ending already.
  (void)runtime::send_some(server.fd.get(), "*2\r\n$8\r\nSHUTDOWN\r\n$6\r\nNOSAVE\r\n");
  if (!await_end(process, until)) return fail(hangs(server.pid));
  while (!life->try_lock()) {
    if (runtime::now() >= until) return fail(hangs(server.pid));
    nap(until);
  }
  ::unlinkat(folder, socket_file, 0);
  ::unlinkat(folder, pid_file, 0);
  return true;
}

// A server whose folder was deleted has no socket left: it can only be signalled.
result<bool> local_server::stop_orphan(core::time_point until) const {
  const auto pid = find_orphan(folder_);
  if (pid == 0) return false;
  const auto process = open_process(pid);
  // Looked at again with the process pinned: its id may have passed to another one.
  if (!process || find_orphan(folder_) != pid) return false;
  ::syscall(SYS_pidfd_send_signal, process.get(), SIGTERM, nullptr, 0);
  if (!await_end(process, until)) return fail(hangs(pid));
  return true;
}

}  // namespace holdfast::stores::local
