// The one folder of a user's local server: where it is, whether it may be trusted, and the two
// kernel locks on it. Kernel locks end with their process, so nothing here can be left behind.
//
//   start lock   on the file `lock`     held while a server is started or stopped, by who does it
//   life lock    on the folder itself   held by the server process from before its exec to its end
#pragma once

#include <optional>
#include <string>

#include <holdfast/result.hpp>

#include "core/types.hpp"
#include "runtime/fd.hpp"

namespace holdfast::stores::local {

inline constexpr const char* socket_file = "redis.sock";
inline constexpr const char* pid_file = "redis.pid";
inline constexpr const char* log_file = "redis.log";
inline constexpr const char* lock_file = "lock";
inline constexpr const char* boot_file = "boot";

// "/tmp/holdfast-<uid>", from the effective user id alone: cron, a shell and a service have
// different environments (TMPDIR, HOME, XDG_RUNTIME_DIR) and must meet at one server. Only who sets
// HOLDFAST_LOCAL_DIR, which has no other meaning, chooses another, and must do so for all of them.
[[nodiscard]] std::string default_folder();

// For the end of a message: what to do where that folder cannot be written to.
inline constexpr const char* use_another_folder =
    "; make room, or set HOLDFAST_LOCAL_DIR to a folder of your own, the same for every process "
    "that shares the locks";

enum class if_absent { create, leave };

// Opens the folder if it is safe, otherwise errc::unsafe_folder and what to do about it. Absent and
// to be left so: an empty descriptor.
[[nodiscard]] result<runtime::unique_fd> open_folder(const std::string& path, if_absent absent);

// Whether `path` still names the folder that was opened: a tmp cleaner may have come between.
[[nodiscard]] bool still_named(const std::string& path, int folder) noexcept;

// The folder's path without symbolic links before its last part, as /proc shows it; empty if its
// parent is gone.
struct location {
  std::string path;
  dev_t device;
};
[[nodiscard]] std::optional<location> locate_folder(const std::string& path);

// A flock(2), taken without waiting. Unlocks explicitly: a process forked meanwhile by another
// thread shares the descriptor and would keep the lock otherwise.
class file_lock {
 public:
  [[nodiscard]] static result<file_lock> open_start_lock(int folder);
  [[nodiscard]] static result<file_lock> open_life_lock(int folder);
  file_lock(file_lock&&) noexcept = default;
  file_lock& operator=(file_lock&&) = delete;
  ~file_lock() { unlock(); }

  [[nodiscard]] bool try_lock() noexcept;
  void unlock() noexcept;
  // The start lock's file names its holder, for messages. 0: nobody.
  [[nodiscard]] std::int64_t holder_pid() const noexcept;

 private:
  explicit file_lock(runtime::unique_fd fd, bool signs) noexcept
      : fd_{std::move(fd)}, signs_{signs} {}

  runtime::unique_fd fd_;
  bool signs_;
};

// Small files in the folder. Reading answers "" when there is none.
[[nodiscard]] std::string read_small_file(int folder, const char* name);
void write_small_file(int folder, const char* name, const std::string& text) noexcept;

// A few milliseconds, jittered so that twenty processes do not knock in step; never past `until`.
void nap(core::time_point until) noexcept;

}  // namespace holdfast::stores::local
