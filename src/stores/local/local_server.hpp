// The private redis-server behind `local:`: one per user and host, started on demand, shared by
// every process of the user, restarted when it died. Any number of threads and processes may use
// one at once: they agree through kernel locks on the folder (folder.hpp).
//
//   socket answers | life lock | what it is             | ensure_running()
//   ---------------+-----------+------------------------+------------------------------------------
//   yes            | held      | runs                   | done
//   LOADING        | held      | reads its file         | waits
//   silent         | held      | hangs or is stopped    | fails at `until`, naming the process
//   nobody listens | held      | starts or ends         | waits, then as above
//   nobody listens | free      | dead, or never started | starts it, under the start lock
#pragma once

#include <string>

#include <holdfast/local.hpp>
#include <holdfast/result.hpp>

#include "core/types.hpp"
#include "stores/local/binary.hpp"
#include "stores/local/folder.hpp"

namespace holdfast::stores::local {

class launched;

struct local_server_options {
  std::string folder = default_folder();
  binary_search binary{};
};

class local_server {
 public:
  explicit local_server(std::string folder = default_folder());
  explicit local_server(local_server_options options);

  // Returns once a server answers on socket_path(), starting one if there is none. Everything that
  // a server answered before it died is still known to its successor. A failure leaves nothing
  // behind but perhaps a server that takes longer to start than we waited.
  [[nodiscard]] result<void> ensure_running(core::time_point until);

  [[nodiscard]] const std::string& socket_path() const noexcept { return socket_path_; }

  // Never starts a server, nor makes the folder. A server that hangs counts as running.
  [[nodiscard]] result<holdfast::local::server_status> status();

  // True once the server is gone, false if there was none. Its file stays: if another starts a
  // server again before a lock's TTL is over, that lock is still held.
  [[nodiscard]] result<bool> stop(core::time_point until);

 private:
  [[nodiscard]] result<bool> await_answer(core::time_point until) const;
  [[nodiscard]] result<bool> await_start_lock(file_lock& lock, core::time_point until) const;
  [[nodiscard]] result<void> start(int folder, core::time_point until) const;
  [[nodiscard]] result<void> launch(int folder, const std::string& binary,
                                    core::time_point until) const;
  [[nodiscard]] result<bool> await_launched(const launched& server, core::time_point until) const;
  [[nodiscard]] result<bool> await_other(core::time_point until) const;
  [[nodiscard]] result<bool> stop_listener(int folder, core::time_point until) const;
  [[nodiscard]] result<bool> stop_orphan(core::time_point until) const;
  [[nodiscard]] failure hangs(std::int64_t pid) const;
  [[nodiscard]] failure orphaned(std::int64_t pid) const;
  [[nodiscard]] failure start_lock_taken(std::int64_t pid) const;

  std::string folder_;
  std::string socket_path_;
  binary_search binary_;
};

}  // namespace holdfast::stores::local
