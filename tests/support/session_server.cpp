#include "support/session_server.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <sstream>
#include <system_error>

namespace holdfast::test {

namespace {
constexpr std::string_view digits = "0123456789abcdef";
}

std::string to_hex(const std::string& bytes) {
  if (bytes.empty()) return "-";
  std::string hex;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    hex += digits[byte >> 4U];
    hex += digits[byte & 0xfU];
  }
  return hex;
}

std::string from_hex(const std::string& hex) {
  std::string bytes;
  if (hex == "-") return bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(digits.find(hex[i]) << 4U | digits.find(hex[i + 1]));
  }
  return bytes;
}

std::vector<std::string> split_words(const std::string& line) {
  std::istringstream in{line};
  std::vector<std::string> all;
  for (std::string word; in >> word;)
    all.push_back(word);
  return all;
}

session_server::session_server() : wake_{::eventfd(0, EFD_CLOEXEC)} {
  listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket_path().copy(&address.sun_path[0], sizeof address.sun_path - 1);
  constexpr int backlog = 128;
  if (listener_ < 0 ||
      ::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener_, backlog) != 0) {
    throw std::system_error{errno, std::generic_category(), "session_server"};
  }
  thread_ = std::thread{[this] { run(); }};
}

session_server::~session_server() {
  change([this] { stopping_ = true; });
  thread_.join();
  for (const connection& c : connections_)
    ::close(c.fd);
  ::close(listener_);
  ::close(wake_);
}

std::chrono::milliseconds session_server::granted(std::chrono::milliseconds asked) {
  return std::max(asked / tick * tick, tick);
}

void session_server::change(const std::function<void()>& how) {
  {
    const std::lock_guard lock{mutex_};
    how();
  }
  wake();
}

void session_server::wake() const {
  const std::uint64_t one = 1;
  if (::write(wake_, &one, sizeof one) != sizeof one) std::terminate();
}

void session_server::forget() {
  change([this] {
    while (!sessions_.empty())
      end_session(sessions_.begin()->first);
  });
}

void session_server::reachable(bool on) {
  change([&] { reachable_ = on; });
}

void session_server::cut_connections() {
  change([this] {
    for (const connection& c : connections_)
      ::shutdown(c.fd, SHUT_RDWR);
  });
}

std::uint64_t session_server::keep_alives() const {
  const std::lock_guard lock{mutex_};
  return keep_alives_;
}

std::size_t session_server::sessions() const {
  const std::lock_guard lock{mutex_};
  return sessions_.size();
}

std::size_t session_server::nodes(const std::string& name) const {
  const std::lock_guard lock{mutex_};
  const auto found = locks_.find(to_hex(name));
  return found == locks_.end() ? 0 : found->second.size();
}

void session_server::run() {
  while (true) {
    std::vector<pollfd> fds;
    int timeout_ms = -1;
    {
      const std::lock_guard lock{mutex_};
      if (stopping_) return;
      const auto next = expire();
      if (next != clock::time_point::max()) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - clock::now());
        timeout_ms = static_cast<int>(std::max<std::int64_t>(0, left.count()));
      }
      fds.push_back({wake_, POLLIN, 0});
      fds.push_back({reachable_ ? listener_ : -1, POLLIN, 0});
      for (const connection& c : connections_) {
        const auto wanted = static_cast<short>(c.out.empty() ? POLLIN : POLLIN | POLLOUT);
        fds.push_back({reachable_ ? c.fd : -1, wanted, 0});
      }
    }
    if (::poll(fds.data(), fds.size(), timeout_ms) < 0 && errno != EINTR) return;

    const std::lock_guard lock{mutex_};
    std::uint64_t drained = 0;
    if (fds[0].revents != 0 && ::read(wake_, &drained, sizeof drained) < 0) return;
    std::size_t i = 2;
    for (connection& c : connections_) {
      if ((fds[i].revents & POLLOUT) != 0) flush(c);
      if ((fds[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0) read(c);
      ++i;
    }
    connections_.remove_if([](const connection& c) { return c.fd < 0; });
    if (fds[1].revents != 0) {
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd >= 0) connections_.push_back({fd});
    }
  }
}

void session_server::read(connection& from) {
  std::array<char, 65536> buffer;
  const ssize_t got = ::recv(from.fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    for (auto& [id, s] : sessions_) {
      if (s.heard_on == &from) s.heard_on = nullptr;
    }
    ::close(from.fd);
    from.fd = -1;
    return;
  }
  from.in.append(buffer.data(), static_cast<std::size_t>(got));
  for (std::size_t end; (end = from.in.find('\n')) != std::string::npos;) {
    const words request = split_words(from.in.substr(0, end));
    from.in.erase(0, end + 1);
    if (request.size() < 2) continue;
    answer(from, request[0] + " " + carry_out(from, {request.begin() + 1, request.end()}));
  }
}

void session_server::answer(connection& to, const std::string& line) {
  to.out += line + "\n";
  if (reachable_) flush(to);
}

void session_server::flush(connection& to) {
  const ssize_t sent = ::send(to.fd, to.out.data(), to.out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent > 0) to.out.erase(0, static_cast<std::size_t>(sent));
}

std::string session_server::carry_out(connection& from, const words& request) {
  const std::string& verb = request[0];
  const auto number = [&](std::size_t i) { return std::stoull(request.at(i)); };
  if (verb == "hello") {
    const auto ttl = granted(std::chrono::milliseconds{number(1)});
    const std::uint64_t id = ++last_change_;
    sessions_[id] = {ttl, clock::now() + ttl, &from};
    return std::to_string(id) + " " + std::to_string(ttl.count());
  }
  if (verb == "attach" || verb == "alive") {
    session* s = keep_alive(number(1));
    if (verb == "alive") ++keep_alives_;
    if (s == nullptr) return "gone";
    s->heard_on = &from;
    return std::to_string(s->ttl.count());
  }
  if (verb == "create") return create(number(1), request);
  if (verb == "touch") return touch(number(1), request);
  if (verb == "delete") return remove(request.at(1), request.at(2));
  if (verb == "break") return break_node(request.at(1), number(2));
  if (verb == "look") {
    const auto found = locks_.find(request.at(1));
    if (found == locks_.end()) return "free";
    // The first holds it, the others wait.
    std::string all = "held";
    for (const node& one : found->second)
      all += " " + describe(one);
    return all;
  }
  std::string all;
  for (const auto& [name, nodes] : locks_)
    all += name + " ";
  return all;
}

// Any word from a session keeps it alive.
session_server::session* session_server::keep_alive(std::uint64_t id) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return nullptr;
  found->second.ends = clock::now() + found->second.ttl;
  return &found->second;
}

std::string session_server::create(std::uint64_t id, const words& request) {
  const session* s = keep_alive(id);
  if (s == nullptr) return "gone";
  queue& nodes = locks_[request.at(2)];
  const std::string& attempt = request.at(3);
  const auto is_mine = [&](const node& n) { return n.attempt == attempt; };
  if (std::none_of(nodes.begin(), nodes.end(), is_mine)) {
    nodes.push_back({++last_change_, attempt, request.at(4), id});
  }
  const node& first = nodes.front();
  if (!is_mine(first)) return "busy " + describe(first);
  return "granted " + std::to_string(first.token) + " " + std::to_string(s->ttl.count());
}

std::string session_server::touch(std::uint64_t id, const words& request) {
  const session* s = keep_alive(id);
  if (s == nullptr) return "gone";
  const auto found = locks_.find(request.at(2));
  if (found == locks_.end()) return "free";
  node& first = found->second.front();
  if (first.attempt != request.at(3)) return "taken";
  first.session = id;  // whoever knows the attempt may take it over: see lease::detach()
  return "granted " + std::to_string(first.token) + " " + std::to_string(s->ttl.count());
}

std::string session_server::remove(const std::string& name, const std::string& attempt) {
  const auto found = locks_.find(name);
  if (found == locks_.end()) return "free";
  queue& nodes = found->second;
  const auto mine =
      std::find_if(nodes.begin(), nodes.end(), [&](const node& n) { return n.attempt == attempt; });
  if (mine == nodes.end()) return "taken";
  const bool held = mine == nodes.begin();
  erase(name, mine);
  return held ? "released" : "taken";
}

std::string session_server::break_node(const std::string& name, std::uint64_t token) {
  const auto found = locks_.find(name);
  if (found == locks_.end() || found->second.front().token != token) return "no";
  const node broken = found->second.front();
  erase(name, found->second.begin());
  push(broken.session, "! lost " + broken.attempt + " deleted");
  return "ok";
}

std::string session_server::describe(const node& of) const {
  const auto owner = sessions_.find(of.session);
  const auto left =
      owner == sessions_.end() ? clock::duration::zero() : owner->second.ends - clock::now();
  const auto left_ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return std::to_string(of.token) + " " + of.who + " " + std::to_string(left_ms);
}

void session_server::erase(const std::string& name, queue::iterator which) {
  queue& nodes = locks_.at(name);
  const bool was_first = which == nodes.begin();
  nodes.erase(which);
  if (nodes.empty()) {
    locks_.erase(name);
  } else if (was_first) {
    push(nodes.front().session, "! turn " + nodes.front().attempt);
  }
}

void session_server::push(std::uint64_t session_id, const std::string& line) {
  const auto found = sessions_.find(session_id);
  if (found != sessions_.end() && found->second.heard_on != nullptr) {
    answer(*found->second.heard_on, line);
  }
}

void session_server::end_session(std::uint64_t id) {
  std::vector<std::pair<std::string, std::string>> owned;  // name, attempt
  for (const auto& [name, nodes] : locks_) {
    for (const node& n : nodes) {
      if (n.session == id) owned.emplace_back(name, n.attempt);
    }
  }
  for (const auto& [name, attempt] : owned) {
    push(id, "! lost " + attempt + " session");
    remove(name, attempt);
  }
  sessions_.erase(id);
}

session_server::clock::time_point session_server::expire() {
  const auto now = clock::now();
  std::vector<std::uint64_t> over;
  for (const auto& [id, s] : sessions_) {
    if (s.ends <= now) over.push_back(id);
  }
  for (const std::uint64_t id : over)
    end_session(id);
  auto next = clock::time_point::max();
  for (const auto& [id, s] : sessions_)
    next = std::min(next, s.ends);
  return next;
}

}  // namespace holdfast::test
