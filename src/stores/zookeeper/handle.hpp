// A connection with its session, as ZooKeeper's C library has it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <holdfast/result.hpp>

#include "core/types.hpp"

struct _zhandle;

namespace holdfast::stores::zookeeper {

// What a server knows of a node.
struct node_stat {
  std::int64_t created = 0;     // czxid: the number of the change that created it
  std::int64_t created_ms = 0;  // by the server's wall clock
  std::int64_t session = 0;     // that an ephemeral node ends with
};

enum class node_mode : std::uint8_t { ephemeral, ephemeral_sequential, container, persistent };

enum class link_state : std::uint8_t {
  connected,
  suspended,  // the library looks for another server; the session goes on, or not
  expired,
  refused,  // the user name or password
};

// One of several changes that are made all together or not at all.
struct change {
  enum class what : std::uint8_t { check, create, remove, set };
  what verb = what::check;
  std::string path{};
  std::string data{};
  node_mode mode = node_mode::ephemeral;
};

// Thread-safe. The library has two threads for each: one does the I/O, one calls what is given
// here. Nothing given here may block, or close the handle: close() joins both threads.
//
// What was asked for is answered once, in the order in which it was asked; by ZCONNECTIONLOSS if
// the connection ends before, ZCLOSING if the handle does. What cannot even be queued is answered
// at once, on the caller's thread.
class handle {
 public:
  struct config {
    std::string servers{};  // host:port,…
    core::duration timeout{};
    std::string user{};  // of scheme "digest"; empty: none
    std::string password{};
    std::string password_file{};  // read whenever a session is opened
    bool open_to_all = true;      // nodes may be changed by every client, or by this user only
  };
  struct events {
    std::function<void(link_state)> on_state{};
    // A node that was read with watch_it::yes has changed or gone.
    std::function<void(const std::string& path)> on_node{};
  };
  enum class watch_it : bool { no, yes };

  using on_done = std::function<void(int rc)>;
  using on_created = std::function<void(int rc, std::string path, const node_stat& made)>;
  using on_data = std::function<void(int rc, std::string data, const node_stat& of)>;
  using on_children = std::function<void(int rc, std::vector<std::string> names)>;
  // What became of each; where one was refused, those after it have no answer of their own.
  using on_changed = std::function<void(int rc, std::vector<int> each)>;

  // May look up names, which blocks. The handle connects in the background from then on.
  [[nodiscard]] static result<std::shared_ptr<handle>> open(const config& what, events tell);
  handle(const handle&) = delete;
  handle& operator=(const handle&) = delete;
  // Closed before, except in the child of a fork, where the parent's handle is left alone.
  ~handle();

  // Ends the session, and with it its nodes. Not on the library's threads; blocks for a moment.
  void close();
  // The same, but the session is left to expire.
  void abandon();

  // While it is connected.
  [[nodiscard]] std::int64_t session_id() const;
  [[nodiscard]] core::duration granted_timeout() const;

  void create(const std::string& path, const std::string& data, node_mode mode, on_created done);
  void remove(const std::string& path, on_done done);
  void get(const std::string& path, watch_it watch, on_data done);
  void children(const std::string& path, watch_it watch, on_children done);
  void sync(const std::string& path, on_done done);
  void change_all(const std::vector<change>& all, on_changed done);

 private:
  handle() = default;
  [[nodiscard]] ::_zhandle* take();
  // Calls the library, unless the handle is closed.
  template <class Call>
  [[nodiscard]] int call(Call&& what);

  events tell_;
  bool open_to_all_ = true;
  mutable std::mutex m_;
  ::_zhandle* zh_ = nullptr;  // protected by m_; null: closed
};

}  // namespace holdfast::stores::zookeeper
