// From us to a daemon: the part between fork and exec, alone in its file because in a program with
// threads almost nothing is allowed there.
#pragma once

namespace holdfast::stores::local {

// All that the new process needs, made before it exists.
struct server_plan {
  const char* binary;
  char* const* arguments;
  char* const* environment;
  int folder;  // this and the next two: above the standard descriptors, closed by exec
  int log;
  int report;  // where spawn_reports go
};

enum class spawn_stage : int {
  locked,        // it has the folder's life lock and is about to exec
  folder_busy,   // another process has the life lock; it ended
  not_executed,  // exec failed; it ended
};
struct spawn_report {
  spawn_stage at;
  int error;  // errno
  int pid;
};

// False with errno if the system has no room for another process. Otherwise a process that is no
// child of ours does as planned and reports.
[[nodiscard]] bool spawn_detached(const server_plan& plan) noexcept;

}  // namespace holdfast::stores::local
