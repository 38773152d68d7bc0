#include "stores/local/orphan.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <charconv>
#include <climits>
#include <memory>
#include <string_view>

#include "runtime/fd.hpp"
#include "stores/local/folder.hpp"

namespace holdfast::stores::local {

namespace {

struct close_folder {
  void operator()(DIR* folder) const noexcept { ::closedir(folder); }
};

bool runs_redis(int process) {
  return read_small_file(process, "comm").starts_with("redis-server");
}

// The device is compared too: a container's server may have the same path on a disk of its own.
bool lived_in(int process, const std::string& deleted, dev_t device) noexcept {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = ::readlinkat(process, "cwd", path.data(), path.size());
  if (length <= 0) return false;
  if (std::string_view{path.data(), static_cast<std::size_t>(length)} != deleted) return false;
  struct stat folder {};
  return ::fstatat(process, "cwd", &folder, 0) == 0 && folder.st_dev == device;
}

}  // namespace

std::int64_t find_orphan(const std::string& folder) {
  const auto place = locate_folder(folder);
  const std::unique_ptr<DIR, close_folder> all{::opendir("/proc")};
  if (!place || !all) return 0;
  const std::string deleted = place->path + " (deleted)";
  while (const dirent* const entry = ::readdir(all.get())) {
    const std::string_view name{static_cast<const char*>(entry->d_name)};
    std::int64_t pid = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (parsed.ptr != name.data() + name.size() || pid <= 0) continue;
    const runtime::unique_fd process{
        ::openat(::dirfd(all.get()), name.data(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    struct stat owner {};
    if (!process || ::fstat(process.get(), &owner) != 0 || owner.st_uid != ::geteuid()) continue;
    if (lived_in(process.get(), deleted, place->device) && runs_redis(process.get())) return pid;
  }
  return 0;
}

}  // namespace holdfast::stores::local
