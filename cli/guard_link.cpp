#include "guard_link.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <system_error>

namespace holdfast::cli {
namespace {

// Together a second: a guardian that takes longer to go is stopped or starved.
constexpr int dismissal_looks = 10;
constexpr int dismissal_look_ms = 100;

}  // namespace

guard_link::guard_link(const guarded_command& command, const inherited_signals& inherited,
                       terminal& tty) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw std::system_error{errno, std::generic_category(), "socketpair"};
  }
  std::fflush(nullptr);
  guard_ = ::fork();
  if (guard_ == 0) {
    ::close(ends[0]);  // or it would never see the wrapper's end close
    ::_exit(guardian{ends[1], command, inherited, tty}.run());
  }
  ::close(ends[1]);
  fd_ = ends[0];
  if (guard_ < 0) {
    const int problem = errno;
    ::close(fd_);
    throw std::system_error{problem, std::generic_category(), "fork"};
  }
}

guard_link::~guard_link() {
  if (!started_) dismiss();
  if (fd_ >= 0) ::close(fd_);
}

void guard_link::dismiss() noexcept {
  if (guard_ <= 0) return;
  send({.what = guard_order::kind::dismissed});
  ::shutdown(fd_, SHUT_WR);  // it reaps the command and goes; its end closes
  for (int looks = 0; !closed_ && looks < dismissal_looks; ++looks) {
    pollfd end{fd_, POLLIN, 0};
    ::poll(&end, 1, dismissal_look_ms);
    while (next()) {
    }
  }
  ::kill(guard_, SIGKILL);  // unless it has been stopped
  while (::waitpid(guard_, nullptr, 0) < 0 && errno == EINTR) {
  }
  guard_ = 0;
}

void guard_link::start(guard_times times, const std::vector<lease>& held, bool foreground) {
  started_ = true;
  guard_order order{.what = guard_order::kind::start,
                    .foreground = foreground,
                    .term_at_ns = times.term_at_ns,
                    .kill_at_ns = times.kill_at_ns};
  for (std::size_t i = 0; i < held.size(); ++i) {
    order.holds.at(i).token = held[i].token().value();
    order.holds[i].told_token = told_token_.value_or(held[i].token()).value();
    held[i].owner().copy(order.holds[i].owner.data(), order.holds[i].owner.size());
  }
  send(order);
}

void guard_link::extend(guard_times times) {
  send({.what = guard_order::kind::deadline,
        .term_at_ns = times.term_at_ns,
        .kill_at_ns = times.kill_at_ns});
}

void guard_link::lose(std::int64_t kill_at_ns) {
  send({.what = guard_order::kind::lost, .kill_at_ns = kill_at_ns});
}

void guard_link::send(const guard_order& order) {
  const ssize_t put = ::send(fd_, &order, sizeof order, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (put < 0 && errno != EAGAIN && errno != EINTR) closed_ = true;
}

std::optional<guard_report> guard_link::next() {
  guard_report report;
  const ssize_t got = ::recv(fd_, &report, sizeof report, MSG_DONTWAIT);
  if (got == static_cast<ssize_t>(sizeof report)) return report;
  if (got >= 0 || (errno != EAGAIN && errno != EINTR)) closed_ = true;
  return std::nullopt;
}

}  // namespace holdfast::cli
