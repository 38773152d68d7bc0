#include "stores/local/folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <system_error>

#include "runtime/clock.hpp"
#include "runtime/random.hpp"

namespace holdfast::stores::local {

namespace {

tl::unexpected<failure> unsafe(const std::string& path, const std::string& why) {
  return fail(errc::unsafe_folder, "local: will not use " + path + ": " + why);
}

std::string say(int error) { return std::generic_category().message(error); }

// What to do where the usual place cannot be written to.
std::string advice(int error) {
  if (error != EROFS && error != ENOSPC && error != EDQUOT && error != EACCES && error != EPERM &&
      error != ENOENT) {
    return {};
  }
  return use_another_folder;
}

std::string parent_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

// In a world-writable folder without the sticky bit anyone could move ours away, and the next
// process would start a second server: two lock spaces.
result<void> check_parent(const std::string& path) {
  struct stat parent {};
  const std::string name = parent_of(path);
  if (::stat(name.c_str(), &parent) != 0) return unsafe(path, name + ": " + say(errno));
  if ((parent.st_mode & S_IWOTH) != 0 && (parent.st_mode & S_ISVTX) == 0) {
    return unsafe(path, "anyone may rename files in " + name + "; run: chmod +t " + name);
  }
  return {};
}

tl::unexpected<failure> explain_open(const std::string& path, int error) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) return unsafe(path, say(error));
  if (S_ISLNK(found.st_mode)) {
    return unsafe(path, "it is a symbolic link; remove it: holdfast makes a folder there");
  }
  if (!S_ISDIR(found.st_mode)) {
    return unsafe(path, "it is not a folder; remove it: holdfast makes one there");
  }
  return unsafe(path, say(error) + "; it belongs to user id " + std::to_string(found.st_uid) +
                          ", this process runs as " + std::to_string(::geteuid()));
}

result<void> check_folder(const std::string& path, int folder) {
  struct stat found {};
  if (::fstat(folder, &found) != 0) return unsafe(path, say(errno));
  if (found.st_uid != ::geteuid()) {
    return unsafe(path, "it belongs to user id " + std::to_string(found.st_uid) +
                            ", this process runs as " + std::to_string(::geteuid()) +
                            "; have it removed by its owner or an administrator");
  }
  if ((found.st_mode & 0777U) != 0700U) {
    return unsafe(path,
                  "its mode must be 0700, or others could take part in your locks; if nobody "
                  "tampered with it, run: chmod 700 " +
                      path);
  }
  return check_parent(path);
}

}  // namespace

std::string default_folder() {
  // Not from a program with more rights than its caller: the caller must not choose for it.
  if (const char* const chosen = ::secure_getenv("HOLDFAST_LOCAL_DIR"); chosen != nullptr) {
    return chosen;
  }
  return "/tmp/holdfast-" + std::to_string(::geteuid());
}

result<runtime::unique_fd> open_folder(const std::string& path, if_absent absent) {
  if (path.size() < 2 || path.front() != '/' || path.back() == '/') {
    return fail(errc::invalid_argument, "local: needs an absolute folder, not \"" + path + "\"");
  }
  constexpr int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  runtime::unique_fd folder{::open(path.c_str(), flags)};
  if (!folder && errno == ENOENT) {
    if (absent == if_absent::leave) return folder;
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
      return unsafe(path, "it cannot be made: " + say(errno) + advice(errno));
    }
    folder.reset(::open(path.c_str(), flags));
  }
  if (!folder) return explain_open(path, errno);
  if (auto safe = check_folder(path, folder.get()); !safe) return fail(std::move(safe.error()));
  return folder;
}

bool still_named(const std::string& path, int folder) noexcept {
  struct stat named {};
  struct stat opened {};
  return ::lstat(path.c_str(), &named) == 0 && ::fstat(folder, &opened) == 0 &&
         named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

std::optional<location> locate_folder(const std::string& path) {
  const runtime::unique_fd parent{::open(parent_of(path).c_str(), O_PATH | O_CLOEXEC)};
  struct stat found {};
  if (!parent || ::fstat(parent.get(), &found) != 0) return std::nullopt;
  std::array<char, PATH_MAX> real{};
  const std::string link = "/proc/self/fd/" + std::to_string(parent.get());
  const ssize_t length = ::readlink(link.c_str(), real.data(), real.size());
  if (length <= 0) return std::nullopt;
  std::string whole{real.data(), static_cast<std::size_t>(length)};
  if (whole == "/") whole.clear();
  return location{whole + path.substr(path.rfind('/')), found.st_dev};
}

result<file_lock> file_lock::open_start_lock(int folder) {
  runtime::unique_fd fd{
      ::openat(folder, lock_file, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600)};
  if (!fd)
    return fail(errc::unsafe_folder,
                std::string{"local: cannot open its lock file: "} + say(errno) + advice(errno));
  return file_lock{std::move(fd), true};
}

result<file_lock> file_lock::open_life_lock(int folder) {
  // A description of its own: the one that we were given may be shared.
  runtime::unique_fd fd{::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!fd) return fail(errc::unsafe_folder, "local: cannot open its folder: " + say(errno));
  return file_lock{std::move(fd), false};
}

bool file_lock::try_lock() noexcept {
  if (::flock(fd_.get(), LOCK_EX | LOCK_NB) != 0) return false;
  if (signs_) {
    std::array<char, 24> text{};
    const auto end = std::to_chars(text.begin(), text.end(), ::getpid()).ptr;
    // Only for messages: a failure changes nothing.
    [[maybe_unused]] const bool cut = ::ftruncate(fd_.get(), 0) == 0;
    [[maybe_unused]] const auto put =
        ::pwrite(fd_.get(), text.data(), static_cast<std::size_t>(end - text.begin()), 0);
  }
  return true;
}

void file_lock::unlock() noexcept {
  if (fd_) ::flock(fd_.get(), LOCK_UN);
}

std::int64_t file_lock::holder_pid() const noexcept {
  std::array<char, 24> text{};
  const ssize_t got = ::pread(fd_.get(), text.data(), text.size(), 0);
  std::int64_t pid = 0;
  if (got > 0) std::from_chars(text.data(), text.data() + got, pid);
  return pid;
}

std::string read_small_file(int folder, const char* name) {
  const runtime::unique_fd file{::openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)};
  std::array<char, 256> text{};
  const ssize_t got = file ? ::read(file.get(), text.data(), text.size()) : 0;
  return got > 0 ? std::string{text.data(), static_cast<std::size_t>(got)} : std::string{};
}

void write_small_file(int folder, const char* name, const std::string& text) noexcept {
  const runtime::unique_fd file{
      ::openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600)};
  if (file) [[maybe_unused]]
    const auto put = ::write(file.get(), text.data(), text.size());
}

void nap(core::time_point until) noexcept {
  using std::chrono::microseconds;
  const auto jittered = microseconds{2'000 + static_cast<long>(runtime::random_bits() % 4'000)};
  const timespec rest = runtime::until(std::min(until, runtime::now() + jittered));
  ::nanosleep(&rest, nullptr);  // a signal only makes us look earlier
}

}  // namespace holdfast::stores::local
