// Asking a cluster: any of its servers, logged in.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/background.hpp"
#include "stores/component.hpp"
#include "stores/etcd/transport.hpp"

namespace holdfast::stores::etcd {

// What is asked of the gateway.
struct request {
  std::string path;  // from the root: /v3/kv/txn
  std::string body;
  // Whether it changes something, so that one that is not answered may have been done.
  bool changes = true;
};

struct answer {
  std::string body;
  // A server was asked before the one that answered, and said nothing: it may do it yet.
  bool is_repeated = false;
};

// Thread-safe. Each call asks one server after the other, the one that answered last first, each
// for its part of the time there is. Failures: store_unreachable, outcome_unknown,
// not_authenticated, not_permitted, not_trusted, out_of_memory, store_busy, incompatible,
// store_refused.
class cluster {
 public:
  using on_answer = std::function<void(result<answer>)>;

  // A call that a caller waits for gives up so long before its time: what went wrong on the way is
  // then said, and not only that the time is over.
  static constexpr core::duration last_moment = std::chrono::milliseconds{10};

  explicit cluster(const component_config& config);
  cluster(const cluster&) = delete;
  cluster& operator=(const cluster&) = delete;
  ~cluster() = default;

  // `done` is called once, on the transport's thread or before this returns.
  void call(request what, core::time_point until, on_answer done);
  // For a caller that waits: `done` is called in turn with it.
  void call(request what, core::time_point until, caller& by, on_answer done);
  // On the calling thread.
  [[nodiscard]] result<answer> call(request what, core::time_point until);

  // A stream of answers from one server, which is another each time. As transport::open_stream().
  [[nodiscard]] std::uint64_t open_stream(request what, transport::on_line line,
                                          std::function<void()> end);
  void close_stream(std::uint64_t id) noexcept { http_.close_stream(id); }

  void close() noexcept { http_.close(); }
  void stop() noexcept { http_.stop(); }

 private:
  struct round;

  void log_in(const std::shared_ptr<round>& in);
  void ask_next(const std::shared_ptr<round>& in);
  void replied(const std::shared_ptr<round>& in, std::size_t server, http_reply got);
  void finish(const std::shared_ptr<round>& in);
  [[nodiscard]] std::string token() const;
  void set_token(std::string token);
  [[nodiscard]] bool needs_login() const { return !user_.empty(); }
  [[nodiscard]] result<std::string> password() const;

  const std::string user_;
  const std::string password_;
  const std::string password_file_;
  std::atomic<std::size_t> preferred_{0};
  mutable std::mutex m_;
  std::string token_;  // protected by m_
  transport http_;     // last: it is gone before what its thread uses
};

// Whether etcd refused because the lease is not there, not there any more, or not known yet.
[[nodiscard]] bool is_lease_missing(const failure& why) noexcept;

}  // namespace holdfast::stores::etcd
