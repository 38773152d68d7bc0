// One connection of a session-store client: calls, pushes, reconnecting, and its session.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "stores/pause.hpp"
#include "stores/store.hpp"

namespace holdfast::test {

// Thread-safe. A thread of its own reads, reconnects, and delivers what the server pushes; callers
// are told in their turn, by a pause that it ends. The link outlives what it was asked for.
class session_link {
 public:
  using words = std::vector<std::string>;

  explicit session_link(std::string socket_path) : path_{std::move(socket_path)} {}
  session_link(const session_link&) = delete;
  session_link& operator=(const session_link&) = delete;
  ~session_link();

  void on_events(stores::store_events events) { events_ = std::move(events); }

  // One request and its answer. store_unreachable: never sent; outcome_unknown: never answered.
  using on_answer = std::function<void(result<words>)>;
  void call(std::string request, core::time_point until, stores::caller& by, on_answer done);
  // The same on the calling thread.
  [[nodiscard]] result<words> call(std::string request, core::time_point until);

  struct session {
    std::uint64_t id;
    core::duration ttl;
  };
  // Opens one, with this TTL, if there is none.
  using on_session = std::function<void(result<session>)>;
  void open_session(core::duration ttl, core::time_point until, stores::caller& by,
                    on_session done);
  // The server does not know it any more: everything held in it is lost.
  void session_gone(std::uint64_t id);

  void now_held(const core::owner_id& id);
  void not_held(const core::owner_id& id);
  // Why the server took the lock away, loss::none if it did not.
  [[nodiscard]] loss lost(const core::owner_id& id) const;

  // Forgets that it was this attempt's turn: it is about to ask.
  void expect_turn(const core::owner_id& id);
  // Calls `done` when the server says that it is, when the session or the connection is another,
  // at `until`, or after wake().
  void await_turn(const core::owner_id& id, core::time_point until, stores::caller& by,
                  std::function<void()> done);
  void wake(const core::owner_id& id);

  // Sends a request whose answer nobody waits for, again after a reconnect, until `give_up`.
  void post(const std::string& request, core::time_point give_up);
  void await_posted(core::time_point until);

  // Ends calls under way and refuses new ones.
  void close();

 private:
  struct posted {
    std::string request;
    core::time_point give_up;
  };

  struct pending_call {
    std::string request;
    std::shared_ptr<stores::pause> wait;
    bool was_sent = false;
    words answer{};  // empty until answered
  };

  void send_call(std::uint64_t number, pending_call& what);
  [[nodiscard]] result<words> outcome_of(std::uint64_t number);
  void opened_session(result<words> answer, const on_session& done);
  void napped(const core::owner_id& id, core::time_point until, stores::caller& by,
              const std::function<void()>& done, std::uint64_t session_id,
              std::uint64_t connection);
  void end_turn_waits();
  void start_reading(const std::unique_lock<std::mutex>& lock);
  void run();
  void connected(int fd);
  void disconnected();
  void take_line(const std::string& line);
  void lose(const std::vector<std::string>& attempts, loss why);
  bool send_line(const std::string& line);

  const std::string path_;
  stores::store_events events_;

  mutable std::mutex mutex_;  // all below
  mutable std::condition_variable_any changed_;
  int fd_ = -1;
  bool closed_ = false;
  bool stopping_ = false;
  std::uint64_t connection_ = 0;
  std::uint64_t last_request_ = 0;
  std::map<std::uint64_t, pending_call> calls_;  // under way
  std::map<std::uint64_t, posted> posted_;
  session session_{};
  bool opening_session_ = false;
  std::vector<std::shared_ptr<stores::pause>> until_session_;  // who waits while it is opened
  std::map<std::string, std::shared_ptr<stores::pause>, std::less<>> turn_waits_;
  std::set<std::string, std::less<>> woken_;  // the next wait ends at once
  std::set<std::string, std::less<>> held_;
  std::set<std::string, std::less<>> turns_;
  std::map<std::string, loss, std::less<>> lost_;

  std::thread thread_;
};

}  // namespace holdfast::test
