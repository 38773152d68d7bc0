#include "support/redis_server.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <thread>

extern char** environ;

namespace holdfast::test {

namespace {

constexpr std::chrono::seconds start_limit{30};
constexpr std::chrono::milliseconds look_again{3};

void wait_for_end(pid_t pid) {
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

std::uint16_t free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const bool bound =
      fd >= 0 && ::bind(fd, generic, size) == 0 && ::getsockname(fd, generic, &size) == 0;
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (!bound) throw std::system_error{error, std::generic_category(), "no free port"};
  return ntohs(address.sin_port);
}

redis_server::redis_server(redis_server_options options) : options_{std::move(options)} {
  // Somebody else may take the free port before redis-server does.
  constexpr int tries = 5;
  for (int i = 0; i < tries; ++i) {
    if (options_.tcp) port_ = options_.port != 0 ? options_.port : free_port();
    write_config();
    start();
    if (await_answer()) return;
  }
  throw std::runtime_error{"redis-server does not start:\n" + log()};
}

redis_server::~redis_server() { kill9(); }

std::string redis_server::url() const { return "unix:" + socket_path(); }

std::string redis_server::tcp_url() const {
  const auto where = "://127.0.0.1:" + std::to_string(port_);
  return options_.tls ? "rediss" + where + "?ca=" + options_.tls->authority : "redis" + where;
}

void redis_server::write_config() const {
  std::ofstream config{folder_.file("redis.conf")};
  config << (options_.tls ? "port 0\ntls-port " : "port ") << port_
         << "\nbind 127.0.0.1\nunixsocket " << socket_path() << "\nunixsocketperm 700\ndir "
         << folder_.path().string() << "\nlogfile " << folder_.file("redis.log")
         << "\ndaemonize no\n";
  if (!options_.sentinel) config << "save \"\"\nappendonly no\nenable-debug-command yes\n";
  if (!options_.password.empty()) config << "requirepass " << options_.password << '\n';
  if (const auto& tls = options_.tls) {
    config << "tls-cert-file " << tls->shows.cert << "\ntls-key-file " << tls->shows.key
           << "\ntls-ca-cert-file " << tls->authority << "\ntls-auth-clients "
           << (tls->wants_certificate ? "yes" : "no") << '\n';
  }
  for (const std::string& line : options_.config)
    config << line << '\n';
}

void redis_server::start() {
  // Everything the child needs is made before fork(): between fork and exec nothing may allocate.
  const std::string config = folder_.file("redis.conf");
  const std::string preload = "LD_PRELOAD=" + options_.preload;
  std::vector<char*> environment;
  for (char** entry = environ; *entry != nullptr; ++entry)
    environment.push_back(*entry);
  if (!options_.preload.empty()) environment.push_back(const_cast<char*>(preload.c_str()));
  for (std::string& entry : options_.environment)
    environment.push_back(entry.data());
  environment.push_back(nullptr);
  const char* const arguments[] = {"redis-server", config.c_str(),
                                   options_.sentinel ? "--sentinel" : nullptr, nullptr};
  const pid_t parent = ::getpid();

  const pid_t child = ::fork();
  if (child < 0) throw std::system_error{errno, std::generic_category(), "fork"};
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    // What it prints belongs into its log, and its input is nobody's.
    const int nothing = ::open("/dev/null", O_RDWR);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(nothing, STDOUT_FILENO);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    ::execvpe(arguments[0], const_cast<char* const*>(arguments), environment.data());
    ::_exit(127);
  }
  pid_ = child;
}

bool redis_server::await_answer() {
  const auto limit = std::chrono::steady_clock::now() + start_limit;
  while (std::chrono::steady_clock::now() < limit) {
    if (::waitpid(pid_, nullptr, WNOHANG) == pid_) {
      pid_ = -1;
      return false;
    }
    try {
      raw_redis connection{options_.tcp && !options_.tls ? where_tcp() : where()};
      const reply pong = connection.command({"PING"});
      const bool loading = pong.text.starts_with("LOADING");
      if (!loading || options_.while_loading) return true;
    } catch (const std::exception&) {  // not there yet
    }
    std::this_thread::sleep_for(look_again);
  }
  throw std::runtime_error{"redis-server does not answer:\n" + log()};
}

void redis_server::stop_process() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGTERM);
  wait_for_end(pid_);
  pid_ = -1;
}

void redis_server::kill9() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  wait_for_end(pid_);
  pid_ = -1;
}

void redis_server::pause() {
  ::kill(pid_, SIGSTOP);
  while (::waitpid(pid_, nullptr, WUNTRACED) < 0 && errno == EINTR) {
  }
}

void redis_server::resume() { ::kill(pid_, SIGCONT); }

void redis_server::restart() {
  if (pid_ > 0) throw std::logic_error{"redis_server::restart: it runs"};
  start();
  if (!await_answer()) throw std::runtime_error{"redis-server does not restart:\n" + log()};
}

std::string redis_server::command(const std::vector<std::string>& words) const {
  raw_redis connection{where()};
  if (!options_.password.empty()) connection.command({"AUTH", options_.password});
  return connection.command(words).shown();
}

std::string redis_server::info(const std::string& section, const std::string& field) const {
  std::istringstream lines{command({"INFO", section})};
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(field + ":")) continue;
    line.erase(0, field.size() + 1);
    if (line.ends_with('\r')) line.pop_back();
    return line;
  }
  return {};
}

std::uint64_t redis_server::calls_of(const std::string& command_name) const {
  // cmdstat_evalsha:calls=3,usec=…
  const std::string stats = info("commandstats", "cmdstat_" + command_name);
  constexpr std::string_view calls = "calls=";
  if (!stats.starts_with(calls)) return 0;
  return std::stoull(stats.substr(calls.size()));
}

std::string redis_server::log() const {
  std::ostringstream text;
  text << std::ifstream{folder_.file("redis.log")}.rdbuf();
  return text.str();
}

}  // namespace holdfast::test
