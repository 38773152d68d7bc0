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

void session_link::call(std::string request, core::time_point until, stores::caller& by,
                        on_answer done) {
  std::shared_ptr<stores::pause> wait;
  {
    std::unique_lock lock{mutex_};
    start_reading(lock);
    const std::uint64_t number = ++last_request_;
    wait = std::make_shared<stores::pause>(
        until, [this, number, done = std::move(done)] { done(outcome_of(number)); });
    auto& mine = calls_[number];
    mine = {std::move(request), wait};
    if (closed_) wait->end();
    if (fd_ >= 0) send_call(number, mine);
  }
  by.wait_for(std::move(wait));
}

result<session_link::words> session_link::call(std::string request, core::time_point until) {
  return stores::wait_here<result<words>>(
      [&](auto& by, auto done) { call(std::move(request), until, by, std::move(done)); });
}

// With mutex_ held.
void session_link::send_call(std::uint64_t number, pending_call& what) {
  what.was_sent = send_line(std::to_string(number) + " " + what.request);
  if (!what.was_sent) what.wait->end();
}

result<session_link::words> session_link::outcome_of(std::uint64_t number) {
  const std::lock_guard lock{mutex_};
  const auto mine = std::move(calls_[number]);
  calls_.erase(number);
  if (!mine.answer.empty()) return mine.answer;
  if (!mine.was_sent) return fail(errc::store_unreachable, "no connection to " + path_);
  return fail(errc::outcome_unknown, "no answer from " + path_);
}

bool session_link::send_line(const std::string& line) {
  const std::string bytes = line + "\n";
  const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent == static_cast<ssize_t>(bytes.size())) return true;
  ::shutdown(fd_, SHUT_RDWR);  // half a line helps nobody
  return false;
}

// One at a time.
void session_link::open_session(core::duration ttl, core::time_point until, stores::caller& by,
                                on_session done) {
  std::unique_lock lock{mutex_};
  if (session_.id != 0) {
    const auto open = session_;
    lock.unlock();
    return done(open);
  }
  if (!opening_session_) {
    opening_session_ = true;
    lock.unlock();
    const auto ttl_ms = std::chrono::ceil<std::chrono::milliseconds>(ttl).count();
    return call(
        "hello " + std::to_string(ttl_ms), until, by,
        [this, done = std::move(done)](auto answer) { opened_session(std::move(answer), done); });
  }
  if (runtime::now() >= until) {
    lock.unlock();
    return done(fail(errc::store_unreachable, "no session at " + path_));
  }
  auto turn = std::make_shared<stores::pause>(
      until,
      [this, ttl, until, &by, done = std::move(done)] { open_session(ttl, until, by, done); });
  until_session_.push_back(turn);
  lock.unlock();
  by.wait_for(std::move(turn));
}

void session_link::opened_session(result<words> answer, const on_session& done) {
  result<session> opened;
  {
    const std::lock_guard lock{mutex_};
    opening_session_ = false;
    if (answer) {
      session_ = {std::stoull(answer->at(0)), std::chrono::milliseconds{std::stoll(answer->at(1))}};
      opened = session_;
    } else {
      opened = fail(errc::store_unreachable, answer.error().message);
    }
    for (const auto& one : std::exchange(until_session_, {}))
      one->end();
  }
  done(std::move(opened));
}

void session_link::session_gone(std::uint64_t id) {
  std::vector<std::string> attempts;
  {
    const std::lock_guard lock{mutex_};
    if (session_.id != id) return;
    session_ = {};
    end_turn_waits();
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
  woken_.erase(text(id));
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

void session_link::await_turn(const core::owner_id& id, core::time_point until, stores::caller& by,
                              std::function<void()> done) {
  std::unique_lock lock{mutex_};
  const auto now = runtime::now();
  const bool woken = woken_.erase(text(id)) > 0;
  if (woken || session_.id == 0 || turns_.contains(id.text()) || now >= until) {
    lock.unlock();
    return done();
  }
  const auto nap = std::min(until, core::after(now, session_.ttl / 3));
  auto wait = std::make_shared<stores::pause>(
      nap, [this, id, until, &by, done = std::move(done), session_id = session_.id,
            connection = connection_] { napped(id, until, by, done, session_id, connection); });
  turn_waits_[text(id)] = wait;
  lock.unlock();
  by.wait_for(std::move(wait));
}

void session_link::napped(const core::owner_id& id, core::time_point until, stores::caller& by,
                          const std::function<void()>& done, std::uint64_t session_id,
                          std::uint64_t connection) {
  bool over = false;
  {
    const std::lock_guard lock{mutex_};
    turn_waits_.erase(text(id));
    const bool woken = woken_.erase(text(id)) > 0;
    over = woken || turns_.contains(id.text()) || session_.id != session_id ||
           connection_ != connection || runtime::now() >= until;
  }
  if (over) return done();
  // Nobody else keeps the session of one who only waits alive.
  call("alive " + std::to_string(session_id), until, by,
       [this, id, until, &by, done, session_id](const result<words>& answer) {
         if (answer && answer->at(0) == "gone") session_gone(session_id);
         await_turn(id, until, by, done);
       });
}

void session_link::wake(const core::owner_id& id) {
  const std::lock_guard lock{mutex_};
  woken_.insert(text(id));
  const auto found = turn_waits_.find(id.text());
  if (found != turn_waits_.end()) found->second->end();
}

// With mutex_ held: all look again.
void session_link::end_turn_waits() {
  for (const auto& [id, wait] : turn_waits_)
    wait->end();
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
    for (const auto& [number, one] : calls_)
      one.wait->end();
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
  for (const auto& [number, what] : posted_)
    send_line(std::to_string(number) + " " + what.request);
  for (auto& [number, what] : calls_)
    if (!what.was_sent) send_call(number, what);
  end_turn_waits();
}

void session_link::disconnected() {
  {
    const std::lock_guard lock{mutex_};
    fd_ = -1;
    ++connection_;
    for (const auto& [number, one] : calls_)
      if (one.was_sent) one.wait->end();
    end_turn_waits();
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
      const auto wait = turn_waits_.find(all.at(2));
      if (wait != turn_waits_.end()) wait->second->end();
    } else {
      const std::uint64_t number = std::stoull(all[0]);
      all.erase(all.begin());
      if (number == 0 && all.at(0) == "gone") gone = session_.id;
      posted_.erase(number);
      const auto call = calls_.find(number);
      if (call != calls_.end()) {
        call->second.answer = all.empty() ? words{""} : std::move(all);
        call->second.wait->end();
      }
    }
  }
  changed_.notify_all();
  if (gone != 0) session_gone(gone);
}

}  // namespace holdfast::test
