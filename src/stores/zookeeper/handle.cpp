#include "stores/zookeeper/handle.hpp"

#include <zookeeper/zookeeper.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/fail.hpp"
#include "runtime/password_file.hpp"

namespace holdfast::stores::zookeeper {

namespace {

// The library logs to stderr otherwise, which belongs to the program.
void say_nothing(const char*) {}

// Nobody listens there, so the library connects to nobody.
constexpr const char* no_server = "255.255.255.255:1";

template <class Function>
const void* keep(Function done) {
  return new Function{std::move(done)};
}
template <class Function>
std::unique_ptr<Function> kept(const void* data) {
  return std::unique_ptr<Function>{static_cast<Function*>(const_cast<void*>(data))};
}

node_stat stat_of(const Stat* from) {
  if (from == nullptr) return {};
  return {from->czxid, from->ctime, from->ephemeralOwner};
}

int flags_of(node_mode mode) {
  switch (mode) {
    case node_mode::ephemeral:
      return ZOO_EPHEMERAL;
    case node_mode::ephemeral_sequential:
      return ZOO_EPHEMERAL_SEQUENTIAL;
    case node_mode::container:
      return ZOO_CONTAINER;
    case node_mode::persistent:
      break;
  }
  return ZOO_PERSISTENT;
}

link_state state_of(int state) {
  if (state == ZOO_CONNECTED_STATE) return link_state::connected;
  if (state == ZOO_EXPIRED_SESSION_STATE) return link_state::expired;
  if (state == ZOO_AUTH_FAILED_STATE) return link_state::refused;
  return link_state::suspended;
}

// What the library writes into while several changes are under way.
struct changes_under_way {
  std::vector<zoo_op_t> operations;
  std::vector<zoo_op_result_t> results;
  handle::on_changed done;
};

}  // namespace

result<std::shared_ptr<handle>> handle::open(const config& what, events tell) {
  const std::shared_ptr<handle> made{new handle};
  made->tell_ = std::move(tell);
  made->open_to_all_ = what.open_to_all;
  const auto on_event = [](zhandle_t*, int type, int state, const char* path, void* context) {
    auto* const self = static_cast<handle*>(context);
    if (type != ZOO_SESSION_EVENT) return self->tell_.on_node(path);
    self->tell_.on_state(state_of(state));
  };
  auto password = what.password;
  if (!what.password_file.empty()) {
    auto read = runtime::read_password(what.password_file);
    if (!read) return stores::fail(std::move(read.error()));
    password = std::move(*read);
  }
  const auto timeout_ms = std::chrono::ceil<std::chrono::milliseconds>(what.timeout).count();
  // Under the mutex: the first event may come before it is known here.
  const std::lock_guard guard{made->m_};
  made->zh_ = ::zookeeper_init2(what.servers.c_str(), on_event, static_cast<int>(timeout_ms),
                                nullptr, made.get(), ZOO_NO_LOG_CLIENTENV, say_nothing);
  if (made->zh_ == nullptr) {
    return stores::fail(errc::store_unreachable, "cannot look up the ZooKeeper servers " +
                                                     escape(what.servers) + ": " +
                                                     std::strerror(errno));
  }
  if (!what.user.empty()) {
    const auto secret = what.user + ":" + password;
    static_cast<void>(::zoo_add_auth(made->zh_, "digest", secret.data(),
                                     static_cast<int>(secret.size()), nullptr, nullptr));
  }
  return made;
}

handle::~handle() = default;

::_zhandle* handle::take() {
  const std::lock_guard guard{m_};
  return std::exchange(zh_, nullptr);
}

void handle::close() {
  if (auto* const zh = take()) static_cast<void>(::zookeeper_close(zh));
}

void handle::abandon() {
  auto* const zh = take();
  if (zh == nullptr) return;
  // Without a connection nothing can be sent, so the server never hears that the session is over.
  static_cast<void>(::zoo_set_servers(zh, no_server));
  static_cast<void>(::zookeeper_close(zh));
}

template <class Call>
int handle::call(Call&& what) {
  const std::lock_guard guard{m_};
  return zh_ == nullptr ? static_cast<int>(ZCLOSING) : what(zh_);
}

std::int64_t handle::session_id() const {
  const std::lock_guard guard{m_};
  return zh_ == nullptr ? 0 : ::zoo_client_id(zh_)->client_id;
}

core::duration handle::granted_timeout() const {
  const std::lock_guard guard{m_};
  return std::chrono::milliseconds{zh_ == nullptr ? 0 : ::zoo_recv_timeout(zh_)};
}

void handle::create(const std::string& path, const std::string& data, node_mode mode,
                    on_created done) {
  const auto* const context = keep(std::move(done));
  const int rc = call([&](zhandle_t* zh) {
    return ::zoo_acreate2(
        zh, path.c_str(), data.data(), static_cast<int>(data.size()),
        open_to_all_ ? &ZOO_OPEN_ACL_UNSAFE : &ZOO_CREATOR_ALL_ACL, flags_of(mode),
        [](int result, const char* name, const Stat* made, const void* given) {
          (*kept<on_created>(given))(result, name == nullptr ? "" : name, stat_of(made));
        },
        context);
  });
  if (rc != ZOK) (*kept<on_created>(context))(rc, {}, {});
}

void handle::remove(const std::string& path, on_done done) {
  constexpr int any_version = -1;
  const auto* const context = keep(std::move(done));
  const int rc = call([&](zhandle_t* zh) {
    return ::zoo_adelete(
        zh, path.c_str(), any_version,
        [](int result, const void* given) { (*kept<on_done>(given))(result); }, context);
  });
  if (rc != ZOK) (*kept<on_done>(context))(rc);
}

void handle::get(const std::string& path, watch_it watch, on_data done) {
  const auto* const context = keep(std::move(done));
  const int rc = call([&](zhandle_t* zh) {
    return ::zoo_aget(
        zh, path.c_str(), watch == watch_it::yes ? 1 : 0,
        [](int result, const char* value, int size, const Stat* of, const void* given) {
          std::string data;
          if (result == ZOK && size > 0) data.assign(value, static_cast<std::size_t>(size));
          (*kept<on_data>(given))(result, std::move(data), stat_of(of));
        },
        context);
  });
  if (rc != ZOK) (*kept<on_data>(context))(rc, {}, {});
}

void handle::children(const std::string& path, watch_it watch, on_children done) {
  const auto* const context = keep(std::move(done));
  const int rc = call([&](zhandle_t* zh) {
    return ::zoo_aget_children(
        zh, path.c_str(), watch == watch_it::yes ? 1 : 0,
        [](int result, const String_vector* all, const void* given) {
          std::vector<std::string> names;
          if (result == ZOK && all != nullptr) names.assign(all->data, all->data + all->count);
          (*kept<on_children>(given))(result, std::move(names));
        },
        context);
  });
  if (rc != ZOK) (*kept<on_children>(context))(rc, {});
}

void handle::sync(const std::string& path, on_done done) {
  const auto* const context = keep(std::move(done));
  const int rc = call([&](zhandle_t* zh) {
    return ::zoo_async(
        zh, path.c_str(),
        [](int result, const char*, const void* given) { (*kept<on_done>(given))(result); },
        context);
  });
  if (rc != ZOK) (*kept<on_done>(context))(rc);
}

void handle::change_all(const std::vector<change>& all, on_changed done) {
  constexpr int any_version = -1;
  auto under_way = std::make_unique<changes_under_way>();
  under_way->operations.resize(all.size());
  under_way->results.resize(all.size());
  under_way->done = std::move(done);
  const auto* const acl = open_to_all_ ? &ZOO_OPEN_ACL_UNSAFE : &ZOO_CREATOR_ALL_ACL;
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto* const to = &under_way->operations[i];
    const auto& from = all[i];
    const auto size = static_cast<int>(from.data.size());
    switch (from.verb) {
      case change::what::check:
        zoo_check_op_init(to, from.path.c_str(), any_version);
        break;
      case change::what::create:
        zoo_create_op_init(to, from.path.c_str(), from.data.data(), size, acl, flags_of(from.mode),
                           nullptr, 0);
        break;
      case change::what::remove:
        zoo_delete_op_init(to, from.path.c_str(), any_version);
        break;
      case change::what::set:
        zoo_set_op_init(to, from.path.c_str(), from.data.data(), size, any_version, nullptr);
        break;
    }
  }
  const int rc = call([&](zhandle_t* zh) {
    return ::zoo_amulti(
        zh, static_cast<int>(all.size()), under_way->operations.data(), under_way->results.data(),
        [](int result, const void* given) {
          const auto over = kept<changes_under_way>(given);
          std::vector<int> each;
          for (const auto& one : over->results)
            each.push_back(one.err);
          over->done(result, std::move(each));
        },
        under_way.get());
  });
  if (rc != ZOK) return under_way->done(rc, {});
  static_cast<void>(under_way.release());
}

}  // namespace holdfast::stores::zookeeper
