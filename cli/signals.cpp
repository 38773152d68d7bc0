#include "signals.hpp"

#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace holdfast::cli {

inherited_signals::inherited_signals() {
  ::sigemptyset(&ignored_);
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask_);
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction now {};
    if (::sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) {
      ::sigaddset(&ignored_, number);
    }
  }
}

void inherited_signals::restore() const {
  for (int number = 1; number < NSIG; ++number) {
    ::signal(number, ignored(number) ? SIG_IGN : SIG_DFL);
  }
  ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
}

signal_queue::signal_queue(const inherited_signals& inherited, std::initializer_list<int> numbers) {
  sigset_t wanted;
  ::sigemptyset(&wanted);
  for (const int number : numbers) {
    if (!inherited.ignored(number)) ::sigaddset(&wanted, number);
  }
  ::pthread_sigmask(SIG_BLOCK, &wanted, nullptr);
  fd_ = ::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd_ < 0) throw std::system_error{errno, std::generic_category(), "signalfd"};
}

signal_queue::~signal_queue() { ::close(fd_); }

std::optional<int> signal_queue::next() {
  signalfd_siginfo info{};
  if (::read(fd_, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

bool ends_a_wait(int number) noexcept {
  switch (number) {
    case SIGHUP:
    case SIGINT:
    case SIGQUIT:
    case SIGTERM:
    case SIGUSR1:
    case SIGUSR2:
      return true;
    default:
      return false;
  }
}

bool is_from_keyboard(int number) noexcept { return number == SIGINT || number == SIGQUIT; }

void die_of(const death& how) noexcept {
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);  // a core file could hold a password
  ::signal(how.number, SIG_DFL);
  // While it is blocked the whole group has got it before this process dies, as the kernel sends
  // Ctrl-C: a shell that sees its command die of SIGINT has been told of SIGINT itself by then.
  ::kill(how.whole_group ? 0 : ::getpid(), how.number);
  sigset_t one;
  ::sigemptyset(&one);
  ::sigaddset(&one, how.number);
  ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
}

void stop_like_the_terminal() {
  sigset_t stop;
  sigset_t before;
  ::sigemptyset(&stop);
  ::sigaddset(&stop, SIGTSTP);
  ::raise(SIGTSTP);
  ::pthread_sigmask(SIG_UNBLOCK, &stop, &before);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace holdfast::cli
