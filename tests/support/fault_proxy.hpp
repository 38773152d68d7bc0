// A network that misbehaves on command, between a client and a real server.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "support/process.hpp"
#include "support/raw_redis.hpp"
#include "support/temp_dir.hpp"

namespace holdfast::test {

// What can happen to one request.
enum class fault {
  swallow_reply,     // the server does it, nobody hears of it; the connection stays
  cut_before_reply,  // the server does it, then the connection is gone
  cut_before_send,   // the connection is gone and the server never saw the request
  hold_request,      // it and all behind it on this connection wait for let_go(), even if the
                     // client has closed the connection by then
  hold_and_cut,      // the same, and for the client the connection is gone at once
  hold_reply,        // its reply waits for let_go(); what the client has closed by then is dropped
  answer,            // the server never sees it: `reply` is the answer
};

// Forwards whole requests and replies; what is done to a request is decided when it comes, by the
// first injected fault that matches it. Thread-safe.
class fault_proxy {
 public:
  enum class listen_on { unix_socket, tcp };
  // Of HTTP, only requests are taken apart: an answer may have no end.
  enum class speaks { redis, http };
  explicit fault_proxy(endpoint upstream, listen_on kind = listen_on::unix_socket,
                       speaks what = speaks::redis);
  fault_proxy(const fault_proxy&) = delete;
  fault_proxy& operator=(const fault_proxy&) = delete;
  ~fault_proxy();

  [[nodiscard]] std::string url() const;
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

  // For the next `times` requests that contain `matching` (raw bytes; empty: all do).
  void inject(fault what, std::string matching = {}, std::size_t times = 1, std::string reply = {});
  // Forgets the faults not yet used up.
  void clear();
  // Forgets the requests seen and the faults met: counts start anew.
  void forget();
  // Sends on what is held, in order, and holds no more.
  void let_go();

  // From now on, on every connection. Stalled bytes are late, not lost, as on a real network.
  void delay_replies(std::chrono::milliseconds by);
  void stall_requests(bool on);
  void stall_replies(bool on);
  // Whether new connections are served; without it they are made and nothing ever comes.
  void serve_new(bool on);
  // Whether what a server says unasked (messages of a subscription) is lost.
  void lose_messages(bool on);
  void cut_all();
  // Where connections that are made from now on lead to: the others stay where they are.
  void lead_to(endpoint upstream);

  // Requests that came so far and contain `matching`, whatever was done to them.
  [[nodiscard]] std::size_t seen(std::string_view matching = {}) const;
  // Waits until seen(matching) >= count.
  [[nodiscard]] bool await_request(std::string_view matching = {}, std::size_t count = 1,
                                   std::chrono::nanoseconds timeout = patience) const;
  // Waits until as many requests have met an injected fault.
  [[nodiscard]] bool await_faults(std::size_t count,
                                  std::chrono::nanoseconds timeout = patience) const;
  [[nodiscard]] std::vector<std::string> requests() const;
  // Those to a server that was not there, and therefore cut at once, included.
  [[nodiscard]] std::size_t connections_made() const;

 private:
  using clock = std::chrono::steady_clock;
  struct rule {
    fault what;
    std::string matching;
    std::size_t times;
    std::string reply;
  };
  // What awaits the reply of one request, in the order of the requests.
  struct fate {
    enum class kind { pass, swallow, cut, hold, canned };
    kind what = kind::pass;
    std::string reply{};
  };
  struct outgoing {
    clock::time_point due;
    std::string bytes;
  };
  struct link {
    int client = -1;
    int server = -1;
    bool ended = false;      // the client has gone and the server was told
    std::string requests{};  // bytes of an incomplete request
    std::string replies{};
    bool holding = false;  // requests pile up in `held` until let_go()
    std::deque<std::string> held{};
    bool holding_replies = false;
    std::deque<fate> fates{};
    std::deque<outgoing> to_client{};
  };

  void listen();
  void run();
  void wake() const;
  void accept_one();
  void take_requests(link& on);
  void take_request(link& on, std::string request);
  void forward(link& on, const std::string& request);
  void take_replies(link& on);
  void settle(link& on);
  void settle_http(link& on);
  void send_due(link& on);
  static void close_fd(int& fd);
  static void drop(link& on);

  const listen_on kind_;
  const speaks speaks_;
  temp_dir folder_;
  std::uint16_t port_ = 0;
  int listener_ = -1;
  int wake_ = -1;

  mutable std::mutex mutex_;  // all below
  endpoint upstream_;
  mutable std::condition_variable changed_;
  std::list<rule> rules_;
  std::list<link> links_;
  std::vector<std::string> log_;
  std::size_t faults_met_ = 0;
  std::size_t connections_ = 0;
  std::chrono::milliseconds delay_{0};
  bool stall_requests_ = false;
  bool stall_replies_ = false;
  bool serve_new_ = true;
  bool lose_messages_ = false;
  bool stopping_ = false;

  std::thread thread_;
};

}  // namespace holdfast::test
