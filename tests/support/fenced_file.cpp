#include "support/fenced_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <type_traits>

#include <holdfast/fence.hpp>

namespace holdfast::test {

namespace {

static_assert(std::is_trivially_copyable_v<visit>);
// The highest token comes first, then the visits.
constexpr off_t visits_at = sizeof(std::uint64_t);

[[noreturn]] void give_up(const char* what) {
  throw std::system_error{errno, std::generic_category(), what};
}

off_t visits_in(int fd) {
  struct stat about {};
  if (::fstat(fd, &about) != 0) give_up("fstat");
  // Rounded down: a visitor may have been killed while it wrote.
  return about.st_size < visits_at ? 0 : (about.st_size - visits_at) / off_t{sizeof(visit)};
}

}  // namespace

fenced_file::fenced_file(const std::string& path)
    : fd_{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)} {
  if (!fd_) give_up("open");
}

bool fenced_file::accept(visit one) {
  while (::flock(fd_.get(), LOCK_EX) != 0) {
    if (errno != EINTR) give_up("flock");
  }
  if (one.what != visit::kind::gave_up) {
    std::uint64_t highest = 0;
    if (::pread(fd_.get(), &highest, sizeof highest, 0) < 0) give_up("pread");
    fence::gate gate{fencing_token{highest}};
    one.accepted = gate.accept(fencing_token{one.token}) ? 1 : 0;
    highest = gate.highest().value();
    if (::pwrite(fd_.get(), &highest, sizeof highest, 0) < 0) give_up("pwrite");
  }
  const off_t end = visits_at + visits_in(fd_.get()) * off_t{sizeof one};
  if (::pwrite(fd_.get(), &one, sizeof one, end) < 0) give_up("pwrite");
  if (::flock(fd_.get(), LOCK_UN) != 0) give_up("flock");
  return one.accepted != 0;
}

std::vector<visit> fenced_file::history(const std::string& path) {
  const runtime::unique_fd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!fd) give_up("open");
  std::vector<visit> all(static_cast<std::size_t>(visits_in(fd.get())));
  const auto bytes = all.size() * sizeof(visit);
  if (::pread(fd.get(), all.data(), bytes, visits_at) != static_cast<ssize_t>(bytes)) {
    give_up("pread");
  }
  return all;
}

}  // namespace holdfast::test
