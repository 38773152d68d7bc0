#include "stores/redis/inbox.hpp"

#include <poll.h>

#include <algorithm>
#include <array>

#include "runtime/clock.hpp"
#include "runtime/random.hpp"
#include "runtime/socket.hpp"
#include "stores/redis/layout.hpp"
#include "stores/redis/script_values.hpp"

namespace holdfast::stores::redis {

namespace {

constexpr std::size_t read_chunk_bytes = 8 * 1024;
// A server that refuses a subscription is asked again no sooner: every attempt is a connection.
constexpr core::duration open_pause = std::chrono::milliseconds{250};

// Takes the text up to the next ; off `rest`.
std::string_view field(std::string_view& rest) {
  const auto end = rest.find(';');
  const auto text = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  return text;
}

}  // namespace

std::optional<grant_message> parse_grant(std::string_view payload) {
  const auto id = core::owner_id::parse(field(payload));
  if (!id) return std::nullopt;
  grant_message grant;
  grant.id = *id;
  grant.token = fencing_token{read_number(field(payload))};
  grant.claim = std::chrono::milliseconds{read_number(field(payload))};
  grant.block = read_number(field(payload));
  grant.key = std::string{payload};
  return grant;
}

inbox::inbox(link& via, std::function<void(const grant_message&)> stray,
             std::function<void()> last_left)
    : via_{via},
      name_{std::string{inbox_prefix} + std::string{runtime::fresh_owner().text()}},
      stray_{std::move(stray)},
      last_left_{std::move(last_left)} {}

bool inbox::is_open() {
  const lock held{m_};
  return connection_ != nullptr;
}

result<void> inbox::open(core::time_point until) {
  const std::lock_guard one_at_a_time{opening_};
  if (is_open()) return {};
  if (runtime::now() < not_before_) return fail(last_failure_);
  auto made = subscribe(until);
  if (!made) {
    not_before_ = core::after(runtime::now(), open_pause);
    last_failure_ = made.error();
    return fail(std::move(made.error()));
  }
  lock held{m_};
  reader_ = std::move(made->reader);
  connection_ = std::move(made->over);
  // What came right behind the answer was read with it: no socket will tell of that any more.
  take_messages(held);
  return {};
}

result<inbox::subscription> inbox::subscribe(core::time_point until) const {
  auto got = dial_now(via_.dial(), until);
  if (!got) return fail(std::move(got.error()));
  const std::shared_ptr over{std::move(*got)};
  command subscribe{2};
  subscribe.arg("SUBSCRIBE").arg(name_);
  // A few bytes on a fresh connection always fit.
  if (over->send_some(subscribe.bytes()).bytes != subscribe.bytes().size()) {
    return fail(errc::store_unreachable, "cannot subscribe at " + via_.node());
  }
  reply_reader reader;
  std::array<char, 512> chunk{};
  for (;;) {
    if (const auto answer = reader.next()) {
      if (answer->type != reply_kind::error) break;
      return fail(errc::not_permitted,
                  via_.node() + " refuses SUBSCRIBE: waiting falls back to polling");
    }
    if (!reader.trouble().empty()) {
      return fail(errc::incompatible, via_.node() + ": " + std::string{reader.trouble()});
    }
    if (runtime::wait_ready(over->fd(), POLLIN, until) != runtime::readiness::ready) {
      return fail(errc::store_unreachable, "no answer to SUBSCRIBE from " + via_.node());
    }
    const auto read = over->receive_some(chunk.data(), chunk.size());
    if (read.error != 0) {
      return fail(errc::store_unreachable, runtime::describe_io_error(read.error));
    }
    reader.feed({chunk.data(), read.bytes});
  }
  return subscription{over, std::move(reader)};
}

// Under m_. Whoever waits asks again, and that opens it anew.
void inbox::disconnect() {
  connection_.reset();
  settled_.clear();  // whatever was on its way is lost
  for (auto& [id, one] : waiters_)
    one.wake.notify_all();
}

void inbox::close() {
  const lock held{m_};
  disconnect();
  wake_.wake();
}

void inbox::expect(const core::owner_id& id) {
  const lock held{m_};
  waiters_.try_emplace(id);
  used_ = true;
}

void inbox::forget(const core::owner_id& id) {
  {
    const lock held{m_};
    if (waiters_.erase(id) == 0 || !waiters_.empty()) return;
  }
  last_left_();
}

bool inbox::rest() {
  lock held{m_};
  if (!connection_) return true;
  if (std::exchange(used_, false) || !waiters_.empty() || someone_reads_) return false;
  someone_reads_ = true;
  while (read_once(held, core::time_point{})) {
  }
  someone_reads_ = false;
  if (!waiters_.empty()) {
    wake_another();
    return false;
  }
  disconnect();
  return true;
}

void inbox::settle(const core::owner_id& id, fencing_token token) {
  if (settle_locked(id, token)) last_left_();
}

// True if nobody waits any more.
bool inbox::settle_locked(const core::owner_id& id, fencing_token token) {
  const lock held{m_};
  const auto found = waiters_.find(id);
  const bool came =
      found != waiters_.end() && found->second.granted && found->second.granted->token >= token;
  const bool last = waiters_.erase(id) > 0 && waiters_.empty();
  if (came || !connection_ || settled_.add(id, token)) return last;
  disconnect();
  wake_.wake();
  return last;
}

std::optional<grant_message> inbox::take(const core::owner_id& id) {
  const lock held{m_};
  const auto found = waiters_.find(id);
  if (found == waiters_.end()) return std::nullopt;
  return std::exchange(found->second.granted, std::nullopt);
}

void inbox::wait(const core::owner_id& id, core::time_point until, const std::stop_token& stop) {
  const std::stop_callback on_stop{stop, [&] {
                                     const lock held{m_};
                                     const auto found = waiters_.find(id);
                                     if (found == waiters_.end()) return;
                                     found->second.stopped = true;
                                     found->second.wake.notify_all();
                                     wake_.wake();
                                   }};
  lock held{m_};
  const auto found = waiters_.find(id);
  if (found == waiters_.end()) return;
  auto& mine = found->second;
  mine.waits = true;
  while (!mine.granted && !mine.stopped && connection_) {
    const auto now = runtime::now();
    if (now >= until) break;
    if (!someone_reads_) {
      someone_reads_ = true;
      static_cast<void>(read_once(held, until));
      someone_reads_ = false;
    } else {
      mine.wake.wait_for(held, std::min<core::duration>(until - now, std::chrono::hours{1}));
    }
  }
  mine.waits = false;
  if (!someone_reads_) wake_another();
}

// Under m_. Somebody has to read for those who still wait.
void inbox::wake_another() {
  for (auto& [id, one] : waiters_) {
    if (one.waits && !one.granted) {
      one.wake.notify_one();
      return;
    }
  }
}

bool inbox::read_once(lock& held, core::time_point until) {
  const auto connection = connection_;
  held.unlock();
  std::array<char, read_chunk_bytes> chunk;
  runtime::io_outcome read;
  const auto ready = runtime::wait_ready(connection->fd(), POLLIN, until, wake_.fd());
  if (ready == runtime::readiness::woken) wake_.reset();
  if (ready == runtime::readiness::ready) {
    read = connection->receive_some(chunk.data(), chunk.size());
  }
  held.lock();
  if (connection != connection_) return false;
  if (read.error != 0) disconnect();
  if (read.bytes == 0) return false;
  reader_.feed({chunk.data(), read.bytes});
  take_messages(held);
  return true;
}

// Of what was read.
void inbox::take_messages(lock& held) {
  std::vector<grant_message> strays;
  while (const auto message = reader_.next())
    deliver(*message, strays);
  if (!reader_.trouble().empty()) disconnect();
  if (strays.empty()) return;
  held.unlock();
  for (const auto& one : strays)
    stray_(one);
  held.lock();
}

void inbox::deliver(const reply_value& message, std::vector<grant_message>& strays) {
  const auto fields = elements_of(message);
  if (fields.size() != 3 || text_of(*fields[0]) != "message") return;
  auto grant = parse_grant(text_of(*fields[2]));
  if (!grant) return;
  const auto found = waiters_.find(grant->id);
  if (found == waiters_.end()) {
    const bool is_grant = grant->token != fencing_token{};  // otherwise nothing to be given back
    if (is_grant && !settled_.knows(grant->id, grant->token)) strays.push_back(std::move(*grant));
    return;
  }
  auto& mine = found->second.granted;
  if (!mine || mine->token < grant->token) mine = std::move(*grant);
  found->second.wake.notify_all();
}

}  // namespace holdfast::stores::redis
