#include "support/fault_proxy.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "support/http_frame.hpp"
#include "support/resp_frame.hpp"

namespace holdfast::test {

namespace {

// What the peer does not take within this is cut: the proxy must not hang with it.
constexpr timeval send_limit{10, 0};

bool send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

// False at the end of the stream.
bool read_some(int fd, std::string& into) {
  std::array<char, 65536> buffer;
  const ssize_t got = ::recv(fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  into.append(buffer.data(), static_cast<std::size_t>(got));
  return got > 0;
}

bool contains(const std::string& request, std::string_view matching) {
  return request.find(matching) != std::string::npos;
}

}  // namespace

fault_proxy::fault_proxy(endpoint upstream, listen_on kind, speaks what)
    : kind_{kind}, speaks_{what}, wake_{::eventfd(0, EFD_CLOEXEC)}, upstream_{std::move(upstream)} {
  listen();
  thread_ = std::thread{[this] { run(); }};
}

fault_proxy::~fault_proxy() {
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
  }
  wake();
  thread_.join();
  for (link& on : links_)
    drop(on);
  close_fd(listener_);
  close_fd(wake_);
}

void fault_proxy::listen() {
  const auto check = [](bool good) {
    if (!good) throw std::system_error{errno, std::generic_category(), "fault_proxy"};
  };
  constexpr int backlog = 512;
  if (kind_ == listen_on::tcp) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    check(listener_ >= 0 && ::bind(listener_, generic, size) == 0);
    check(::getsockname(listener_, generic, &size) == 0);
    port_ = ntohs(address.sin_port);
  } else {
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    folder_.file("proxy.sock").copy(&address.sun_path[0], sizeof address.sun_path - 1);
    check(listener_ >= 0 &&
          ::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }
  check(::listen(listener_, backlog) == 0);
}

std::string fault_proxy::url() const {
  if (kind_ == listen_on::tcp) return "redis://127.0.0.1:" + std::to_string(port_);
  return "unix:" + folder_.file("proxy.sock");
}

void fault_proxy::wake() const {
  const std::uint64_t one = 1;
  if (::write(wake_, &one, sizeof one) != sizeof one) std::terminate();
}

void fault_proxy::inject(fault what, std::string matching, std::size_t times, std::string reply) {
  const std::lock_guard lock{mutex_};
  rules_.push_back({what, std::move(matching), times, std::move(reply)});
}

void fault_proxy::clear() {
  const std::lock_guard lock{mutex_};
  rules_.clear();
}

void fault_proxy::forget() {
  const std::lock_guard lock{mutex_};
  log_.clear();
  faults_met_ = 0;
}

void fault_proxy::let_go() {
  {
    const std::lock_guard lock{mutex_};
    rules_.remove_if([](const rule& r) {
      return r.what == fault::hold_request || r.what == fault::hold_and_cut ||
             r.what == fault::hold_reply;
    });
    for (link& on : links_) {
      on.holding = false;
      on.holding_replies = false;
      for (std::deque<std::string> held = std::exchange(on.held, {}); !held.empty();) {
        take_request(on, std::move(held.front()));
        held.pop_front();
      }
      for (fate& f : on.fates) {
        if (f.what == fate::kind::hold) f.what = fate::kind::pass;
      }
      settle(on);
    }
  }
  wake();
}

void fault_proxy::delay_replies(std::chrono::milliseconds by) {
  const std::lock_guard lock{mutex_};
  delay_ = by;
}

void fault_proxy::stall_requests(bool on) {
  {
    const std::lock_guard lock{mutex_};
    stall_requests_ = on;
  }
  wake();
}

void fault_proxy::stall_replies(bool on) {
  {
    const std::lock_guard lock{mutex_};
    stall_replies_ = on;
  }
  wake();
}

void fault_proxy::serve_new(bool on) {
  {
    const std::lock_guard lock{mutex_};
    serve_new_ = on;
  }
  wake();
}

void fault_proxy::lose_messages(bool on) {
  const std::lock_guard lock{mutex_};
  lose_messages_ = on;
}

void fault_proxy::lead_to(endpoint upstream) {
  const std::lock_guard lock{mutex_};
  upstream_ = std::move(upstream);
}

void fault_proxy::cut_all() {
  {
    const std::lock_guard lock{mutex_};
    for (link& on : links_)
      drop(on);
  }
  wake();
}

std::size_t fault_proxy::seen(std::string_view matching) const {
  const std::lock_guard lock{mutex_};
  return static_cast<std::size_t>(std::count_if(
      log_.begin(), log_.end(), [&](const std::string& r) { return contains(r, matching); }));
}

bool fault_proxy::await_request(std::string_view matching, std::size_t count,
                                std::chrono::nanoseconds timeout) const {
  std::unique_lock lock{mutex_};
  return changed_.wait_for(lock, timeout, [&] {
    const auto matches = [&](const std::string& r) { return contains(r, matching); };
    return static_cast<std::size_t>(std::count_if(log_.begin(), log_.end(), matches)) >= count;
  });
}

bool fault_proxy::await_faults(std::size_t count, std::chrono::nanoseconds timeout) const {
  std::unique_lock lock{mutex_};
  return changed_.wait_for(lock, timeout, [&] { return faults_met_ >= count; });
}

std::vector<std::string> fault_proxy::requests() const {
  const std::lock_guard lock{mutex_};
  return log_;
}

std::size_t fault_proxy::connections_made() const {
  const std::lock_guard lock{mutex_};
  return connections_;
}

void fault_proxy::run() {
  while (true) {
    std::vector<pollfd> fds;
    std::vector<link*> whose;
    auto next_due = clock::time_point::max();
    {
      const std::lock_guard lock{mutex_};
      if (stopping_) return;
      fds.push_back({wake_, POLLIN, 0});
      fds.push_back({serve_new_ ? listener_ : -1, POLLIN, 0});
      for (link& on : links_) {
        fds.push_back({stall_requests_ ? -1 : on.client, POLLIN, 0});
        fds.push_back({stall_replies_ ? -1 : on.server, POLLIN, 0});
        whose.push_back(&on);
        if (!on.to_client.empty()) next_due = std::min(next_due, on.to_client.front().due);
      }
    }
    int timeout_ms = -1;
    if (next_due != clock::time_point::max()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(next_due - clock::now());
      timeout_ms = static_cast<int>(std::max<std::int64_t>(0, left.count()));
    }
    if (::poll(fds.data(), fds.size(), timeout_ms) < 0 && errno != EINTR) return;

    const std::lock_guard lock{mutex_};
    std::uint64_t drained = 0;
    if (fds[0].revents != 0 && ::read(wake_, &drained, sizeof drained) < 0) return;
    for (std::size_t i = 0; i < whose.size(); ++i) {
      link& on = *whose[i];
      // A descriptor may have been closed, and its number used again, while poll() ran.
      if (fds[2 + 2 * i].revents != 0 && fds[2 + 2 * i].fd == on.client) take_requests(on);
      if (fds[3 + 2 * i].revents != 0 && fds[3 + 2 * i].fd == on.server) take_replies(on);
      send_due(on);
      // A server of HTTP would give up a request whose connection ends.
      const bool awaits_answer = speaks_ == speaks::http && !on.fates.empty();
      if (on.client < 0 && on.server >= 0 && !on.holding && !on.ended && !awaits_answer) {
        // What the client sent before it closed still arrives.
        on.ended = true;
        ::shutdown(on.server, SHUT_WR);
      }
    }
    links_.remove_if([](const link& on) { return on.client < 0 && on.server < 0; });
    if (fds[1].revents != 0) accept_one();
  }
}

void fault_proxy::accept_one() {
  link on;
  on.client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (on.client < 0) return;
  ++connections_;
  try {
    on.server = connect_to(upstream_);
  } catch (const std::system_error&) {  // the server is not there: the client learns it as a cut
    close_fd(on.client);
    return;
  }
  for (const int fd : {on.client, on.server}) {
    ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &send_limit, sizeof send_limit);
  }
  links_.push_back(std::move(on));
}

void fault_proxy::take_requests(link& on) {
  if (!read_some(on.client, on.requests)) {
    close_fd(on.client);
    return;
  }
  const auto next = [&] {
    return speaks_ == speaks::http ? first_request(on.requests) : first_message(on.requests);
  };
  while (const std::size_t size = next()) {
    std::string request = on.requests.substr(0, size);
    on.requests.erase(0, size);
    log_.push_back(request);
    if (on.holding) {
      on.held.push_back(std::move(request));
    } else {
      take_request(on, std::move(request));
    }
    if (on.client < 0) break;
  }
  changed_.notify_all();
}

void fault_proxy::take_request(link& on, std::string request) {
  if (speaks_ == speaks::http) on.fates.clear();  // that before it is answered
  const auto met = std::find_if(rules_.begin(), rules_.end(),
                                [&](const rule& r) { return contains(request, r.matching); });
  if (met == rules_.end()) {
    on.fates.push_back({fate::kind::pass});
    forward(on, request);
    return;
  }
  const rule found = *met;
  if (--met->times == 0) rules_.erase(met);
  ++faults_met_;
  switch (found.what) {
    case fault::swallow_reply:
      on.fates.push_back({fate::kind::swallow});
      break;
    case fault::cut_before_reply:
      on.fates.push_back({fate::kind::cut});
      break;
    case fault::hold_reply:
      on.fates.push_back({fate::kind::hold});
      break;
    case fault::cut_before_send:
      drop(on);
      return;
    case fault::hold_request:
      on.holding = true;
      on.held.push_back(std::move(request));
      return;
    case fault::hold_and_cut:
      on.holding = true;
      on.held.push_back(std::move(request));
      close_fd(on.client);
      return;
    case fault::answer:
      on.fates.push_back({fate::kind::canned, found.reply});
      settle(on);
      return;
  }
  forward(on, request);
}

void fault_proxy::forward(link& on, const std::string& request) {
  if (on.server >= 0 && !send_all(on.server, request)) drop(on);
}

void fault_proxy::take_replies(link& on) {
  const bool open = read_some(on.server, on.replies);
  settle(on);
  if (!open) drop(on);
}

// Pairs the replies that have come with the requests they answer.
void fault_proxy::settle(link& on) {
  if (speaks_ == speaks::http) return settle_http(on);
  while (!on.holding_replies) {
    if (!on.fates.empty() && on.fates.front().what == fate::kind::canned) {
      on.to_client.push_back({clock::now() + delay_, std::move(on.fates.front().reply)});
      on.fates.pop_front();
      continue;
    }
    const std::size_t size = first_message(on.replies);
    if (size == 0) break;
    // A message nobody asked for is one that the server pushed.
    const auto pushed = lose_messages_ ? fate::kind::swallow : fate::kind::pass;
    const bool unasked = on.fates.empty() || on.replies.front() == '>';
    const fate::kind what = unasked ? pushed : on.fates.front().what;
    if (what == fate::kind::cut) {
      drop(on);
      return;
    }
    if (what == fate::kind::hold) {
      on.holding_replies = true;
      break;
    }
    if (!unasked) on.fates.pop_front();
    if (what == fate::kind::pass) {
      on.to_client.push_back({clock::now() + delay_, on.replies.substr(0, size)});
    }
    on.replies.erase(0, size);
  }
  send_due(on);
}

// A client has one request under way on a connection, so what comes is the answer to the last one.
void fault_proxy::settle_http(link& on) {
  const auto what = on.fates.empty() ? fate::kind::pass : on.fates.back().what;
  if (what == fate::kind::canned) {
    on.to_client.push_back({clock::now() + delay_, std::move(on.fates.back().reply)});
    on.fates.clear();
  }
  if (on.replies.empty() || what == fate::kind::hold) return send_due(on);
  if (what == fate::kind::cut || on.client < 0) return drop(on);
  if (what != fate::kind::swallow) {
    on.fates.clear();
    on.to_client.push_back({clock::now() + delay_, on.replies});
  }
  on.replies.clear();
  send_due(on);
}

// What is due together arrives together.
void fault_proxy::send_due(link& on) {
  std::string due;
  while (!on.to_client.empty() && on.to_client.front().due <= clock::now()) {
    due += on.to_client.front().bytes;
    on.to_client.pop_front();
  }
  if (on.client >= 0 && !due.empty() && !send_all(on.client, due)) close_fd(on.client);
}

void fault_proxy::close_fd(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

void fault_proxy::drop(link& on) {
  close_fd(on.client);
  close_fd(on.server);
  on.to_client.clear();
}

}  // namespace holdfast::test
