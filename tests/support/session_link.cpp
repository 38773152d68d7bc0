#include "support/session_link.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "runtime/clock.hpp"
#include "support/raw_redis.hpp"
#include "support/session_server.hpp"

namespace holdfast::test {

namespace {

using detail::fail;

constexpr std::chrono::milliseconds reconnect_pause{20};

// Condition variables wait on another clock: how long it is from now, within reason.
std::chrono::nanoseconds left(core::time_point until) {
  return std::clamp<std::chrono::nanoseconds>(until - runtime::now(), std::chrono::nanoseconds{0},
                                              std::chrono::minutes{10});
}

std::string text(const core::owner_id& id) { return std::string{id.text()}; }

}  // namespace

session_link::~session_link() {
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
    if (fd_ >= 0) ::shutdown(fd_, SHUT_RDWR);
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void session_link::start_reading(const std::unique_lock<std::mutex>&) {
  if (!thread_.joinable()) thread_ = std::thread{[this] { run(); }};
}

result<session_link::words> session_link::call(const std::string& request, core::time_point until) {
  std::unique_lock lock{mutex_};
  start_reading(lock);
  changed_.wait_for(lock, left(until), [&] { return fd_ >= 0 || closed_; });
  if (fd_ < 0 || closed_) {
    return fail(errc::store_unreachable, "no connection to " + path_);
  }
  const std::uint64_t number = ++last_request_;
  const std::uint64_t connection = connection_;
  answers_[number];
  const bool sent = send_line(std::to_string(number) + " " + request);
  changed_.wait_for(lock, left(until), [&] {
    return !answers_[number].empty() || connection_ != connection || closed_;
  });
  const words answer = std::move(answers_[number]);
  answers_.erase(number);
  if (!answer.empty()) return answer;
  if (!sent) return fail(errc::store_unreachable, "cannot send to " + path_);
  return fail(errc::outcome_unknown, "no answer from " + path_);
}

bool session_link::send_line(const std::string& line) {
  const std::string bytes = line + "\n";
  const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent == static_cast<ssize_t>(bytes.size())) return true;
  ::shutdown(fd_, SHUT_RDWR);  // half a line helps nobody
  return false;
}

result<session_link::session> session_link::open_session(core::duration ttl,
                                                         core::time_point until) {
  const std::lock_guard one_at_a_time{opening_};
  {
    const std::lock_guard lock{mutex_};
    if (session_.id != 0) return session_;
  }
  const auto ttl_ms = std::chrono::ceil<std::chrono::milliseconds>(ttl).count();
  auto answer = call("hello " + std::to_string(ttl_ms), until);
  if (!answer) return fail(errc::store_unreachable, answer.error().message);
  const std::lock_guard lock{mutex_};
  session_ = {std::stoull(answer->at(0)), std::chrono::milliseconds{std::stoll(answer->at(1))}};
  return session_;
}

void session_link::session_gone(std::uint64_t id) {
  std::vector<std::string> attempts;
  {
    const std::lock_guard lock{mutex_};
    if (session_.id != id) return;
    session_ = {};
    attempts.assign(held_.begin(), held_.end());
  }
  lose(attempts, loss::session);
}

void session_link::lose(const std::vector<std::string>& attempts, loss why) {
  for (const std::string& attempt : attempts) {
    bool was_held = false;
    {
      const std::lock_guard lock{mutex_};
      was_held = held_.erase(attempt) == 1;
      if (was_held) lost_[attempt] = why;
    }
    const auto id = core::owner_id::parse(attempt);
    if (was_held && id && events_.lost) events_.lost(*id, why);
  }
  changed_.notify_all();
}

void session_link::now_held(const core::owner_id& id) {
  const std::lock_guard lock{mutex_};
  held_.insert(text(id));
}

void session_link::not_held(const core::owner_id& id) {
  const std::lock_guard lock{mutex_};
  held_.erase(text(id));
  lost_.erase(text(id));
  turns_.erase(text(id));
}

loss session_link::lost(const core::owner_id& id) const {
  const std::lock_guard lock{mutex_};
  const auto found = lost_.find(id.text());
  return found == lost_.end() ? loss::none : found->second;
}

void session_link::expect_turn(const core::owner_id& id) {
  const std::lock_guard lock{mutex_};
  turns_.erase(text(id));
}

void session_link::await_turn(const core::owner_id& id, core::time_point until,
                              const std::stop_token& stop) {
  while (!stop.stop_requested() && runtime::now() < until) {
    std::uint64_t session_id = 0;
    {
      std::unique_lock lock{mutex_};
      session_id = session_.id;
      if (session_id == 0) return;
      const std::uint64_t connection = connection_;
      const auto nap = std::min<std::chrono::nanoseconds>(session_.ttl / 3, left(until));
      if (changed_.wait_for(lock, stop, nap, [&] {
            return turns_.contains(id.text()) || session_.id != session_id ||
                   connection_ != connection;
          })) {
        return;
      }
    }
    // Nobody else keeps the session of one who only waits alive.
    const auto answer = call("alive " + std::to_string(session_id), until);
    if (answer && answer->at(0) == "gone") session_gone(session_id);
  }
}

void session_link::post(const std::string& request, core::time_point give_up) {
  std::unique_lock lock{mutex_};
  start_reading(lock);
  const std::uint64_t number = ++last_request_;
  posted_[number] = {request, give_up};
  if (fd_ >= 0) send_line(std::to_string(number) + " " + request);
}

void session_link::await_posted(core::time_point until) {
  std::unique_lock lock{mutex_};
  changed_.wait_for(lock, left(until), [&] { return posted_.empty(); });
}

void session_link::close() {
  {
    const std::lock_guard lock{mutex_};
    closed_ = true;
  }
  changed_.notify_all();
}

void session_link::run() {
  bool connected_before = false;
  while (true) {
    int fd = -1;
    try {
      fd = connect_to({path_, 0});
    } catch (const std::system_error&) {
      std::unique_lock lock{mutex_};
      changed_.wait_for(lock, reconnect_pause, [&] { return stopping_; });
    }
    {
      const std::lock_guard lock{mutex_};
      if (fd >= 0 && !stopping_) connected(fd);
      if (stopping_) {
        if (fd >= 0) ::close(fd);
        fd_ = -1;
        return;
      }
      if (fd < 0) continue;
    }
    changed_.notify_all();
    if (std::exchange(connected_before, true) && events_.reconnected) events_.reconnected();

    std::string in;
    std::array<char, 16384> buffer;
    while (true) {
      const ssize_t got = ::recv(fd, buffer.data(), buffer.size(), 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      in.append(buffer.data(), static_cast<std::size_t>(got));
      for (std::size_t end; (end = in.find('\n')) != std::string::npos;) {
        take_line(in.substr(0, end));
        in.erase(0, end + 1);
      }
    }
    disconnected();
    ::close(fd);
  }
}

void session_link::connected(int fd) {
  fd_ = fd;
  ++connection_;
  if (session_.id != 0) send_line("0 attach " + std::to_string(session_.id));
  std::erase_if(posted_,
                [now = runtime::now()](const auto& entry) { return entry.second.give_up <= now; });
  for (const auto& [number, what] : posted_) {
    send_line(std::to_string(number) + " " + what.request);
  }
}

void session_link::disconnected() {
  {
    const std::lock_guard lock{mutex_};
    fd_ = -1;
    ++connection_;
  }
  changed_.notify_all();
}

void session_link::take_line(const std::string& line) {
  words all = split_words(line);
  if (all.size() >= 3 && all[0] == "!" && all[1] == "lost") {
    lose({all[2]}, all.at(3) == "session" ? loss::session : loss::deleted);
    return;
  }
  std::uint64_t gone = 0;
  {
    const std::lock_guard lock{mutex_};
    if (all.at(0) == "!") {
      turns_.insert(all.at(2));
    } else {
      const std::uint64_t number = std::stoull(all[0]);
      all.erase(all.begin());
      if (number == 0 && all.at(0) == "gone") gone = session_.id;
      posted_.erase(number);
      const auto call = answers_.find(number);
      if (call != answers_.end()) call->second = all.empty() ? words{""} : std::move(all);
    }
  }
  changed_.notify_all();
  if (gone != 0) session_gone(gone);
}

}  // namespace holdfast::test
