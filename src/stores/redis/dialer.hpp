// Making connections to one server, apart from what is done with them.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <holdfast/result.hpp>

#include "core/types.hpp"
#include "runtime/stream.hpp"
#include "runtime/tls_context.hpp"

namespace holdfast::stores::redis {

struct endpoint {
  std::string node;  // for messages; never holds a secret
  std::function<result<runtime::unique_fd>(core::time_point until)> connect;
  std::string host;                           // of a server on TCP
  std::shared_ptr<runtime::tls_context> tls;  // null: in the clear
  std::string user;
  std::string password;
  std::string password_file;  // read for each connection: a password that was changed is picked up
  int database = 0;
  // The server is to tell on these connections of keys that were read on them and that others have
  // changed since. One that does not, or does not let us, is used without.
  bool tells_changes = false;
  // Not a server that votes in a quorum: its locks and those of one server exclude nobody of the
  // other kind.
  bool refuse_voters = false;
  // It has to be a node of a cluster; otherwise it must be none, for it would not have every key.
  bool in_cluster = false;
  // What it has to be. A master may have become a replica since it was found.
  enum class role { server, master, sentinel };
  role wanted = role::server;
  // If set: what connections are kept in from the start, so that they can be ended from elsewhere.
  std::function<std::unique_ptr<runtime::stream>(std::unique_ptr<runtime::stream>)> keep_in;
};

// Thread-safe.
class dialer {
 public:
  using on_connected = std::function<void(result<std::unique_ptr<runtime::stream>>)>;

  explicit dialer(std::string node) : node_{std::move(node)} {}
  dialer(const dialer&) = delete;
  dialer& operator=(const dialer&) = delete;
  virtual ~dialer() = default;

  // Makes one connection that is logged in and ready for commands. `done` is called once, before
  // dial() returns or later, by `until` at the latest.
  virtual void dial(core::time_point until, on_connected done) = 0;

  // For messages.
  [[nodiscard]] const std::string& node() const noexcept { return node_; }

 private:
  const std::string node_;
};

// Connects and logs in on the calling thread.
[[nodiscard]] result<std::unique_ptr<runtime::stream>> open_connection(const endpoint& where,
                                                                       core::time_point until);

// Does so for each dial(), which blocks until `done` was called.
[[nodiscard]] std::shared_ptr<dialer> make_dialer(endpoint where);

}  // namespace holdfast::stores::redis
