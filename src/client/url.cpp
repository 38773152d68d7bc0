#include "client/url.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include <holdfast/status.hpp>

namespace holdfast::detail {

namespace {

constexpr std::string_view forms =
    "a store URL is one of local:, memory:[name], unix:/path[?option=…], "
    "redis://[user[:password]@]host[:port][/db][?option=…], "
    "redlock://[user[:password]@]host[:port],host[:port],…[/db][?option=…], "
    "etcd://[user[:password]@]host[:port],host[:port],…[?option=…], "
    "zookeeper://[user[:password]@]host[:port],host[:port],…[/chroot][?option=…]; with TLS "
    "rediss://…, redlock+tls://… and etcd+tls://…";
const std::string encode_advice =
    "in the store URL an @ comes only before the host: write @ / ? and # in a user name, password "
    "or "
    "option as %40 %2F %3F %23";
constexpr std::size_t prefix_bytes_max = 256;
constexpr std::size_t chroot_bytes_max = 256;
constexpr unsigned connections_max = 64;
constexpr unsigned spin_us_max = 1000;
// A majority of more would cost more than it could add.
constexpr std::size_t nodes_max = 15;
constexpr unsigned node_timeout_ms_max = 10'000;
constexpr unsigned tick_ms_max = 60'000;
constexpr unsigned max_ttl_ms_max = 24 * 3600 * 1000;

auto bad(std::string message) { return fail(errc::invalid_argument, std::move(message)); }

result<std::string> decode(std::string_view text, std::string_view part) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    unsigned byte = 0;
    const auto digits = text.substr(i + 1, 2);
    const auto* end = digits.data() + digits.size();
    if (digits.size() != 2 || std::from_chars(digits.data(), end, byte, 16).ptr != end) {
      return bad("the " + std::string{part} +
                 " in the store URL has a % that is not followed by two hexadecimal digits: "
                 "write % itself as %25");
    }
    out += static_cast<char>(byte);
    i += 2;
  }
  return out;
}

std::optional<unsigned> number(std::string_view text, unsigned most) {
  unsigned value = 0;
  const auto* end = text.data() + text.size();
  const auto got = std::from_chars(text.data(), end, value);
  if (text.empty() || got.ec != std::errc{} || got.ptr != end || value > most) return std::nullopt;
  return value;
}

result<void> take_number(std::string_view text, std::string_view what, unsigned least,
                         unsigned most, const auto& set) {
  const auto value = number(text, most);
  if (!value || *value < least) {
    // Not repeated here: what looks like a port may be the end of a password.
    return bad("the " + std::string{what} + " in the store URL must be a number from " +
               std::to_string(least) + " to " + std::to_string(most));
  }
  set(*value);
  return {};
}

result<void> take_path(std::string& into, std::string_view key, std::string_view value) {
  auto path = decode(value, "option " + std::string{key});
  if (!path) return fail(std::move(path.error()));
  if (path->empty() || path->find('\0') != std::string::npos) {
    return bad("the option " + std::string{key} + " in the store URL is empty, or no path");
  }
  into = std::move(*path);
  return {};
}

// Null: not one of TLS.
std::string* tls_option(store_url& url, std::string_view key) {
  if (key == "ca") return &url.tls.ca;
  if (key == "cert") return &url.tls.cert;
  if (key == "key") return &url.tls.key;
  if (key == "server_name") return &url.tls.server_name;
  return nullptr;
}

result<void> take_zookeeper_option(store_url& url, std::string_view key, std::string_view value) {
  if (key == "tick") {
    return take_number(value, "option tick (milliseconds)", 1, tick_ms_max,
                       [&](unsigned n) { url.tick = std::chrono::milliseconds{n}; });
  }
  if (key == "acl") {
    if (value != "open" && value != "creator")
      return bad("the option acl in the store URL is \"open\" or \"creator\"");
    url.open_to_all = value == "open";
    return {};
  }
  return bad("zookeeper:// has no option \"" + escape(key) +
             "\": there are tick, acl and password_file; what stands before every lock is the "
             "chroot: zookeeper://host/chroot");
}

result<void> take_option(store_url& url, std::string_view key, std::string_view value) {
  if (auto* const into = tls_option(url, key)) {
    if (url.has_tls) return take_path(*into, key, value);
    return bad("the option " + std::string{key} +
               " in the store URL is for TLS: write rediss://, redlock+tls:// or etcd+tls://");
  }
  if (key == "verify") {
    return bad(
        "the store URL has an option \"verify\", which does not exist: certificates are always "
        "verified. For one that is signed by itself name its file with ca=, for a server that is "
        "reached by another name say server_name=");
  }
  if (key == "password_file" && url.what != store_url::kind::local)
    return take_path(url.password_file, key, value);
  if (url.what == store_url::kind::zookeeper) return take_zookeeper_option(url, key, value);
  if (key == "prefix") {
    auto text = decode(value, "prefix");
    if (!text) return fail(std::move(text.error()));
    if (text->size() > prefix_bytes_max) {
      return bad("the prefix in the store URL must be at most " + std::to_string(prefix_bytes_max) +
                 " bytes");
    }
    url.prefix = std::move(*text);
    return {};
  }
  if (url.what == store_url::kind::etcd) {
    return bad("etcd:// has no option \"" + escape(key) +
               "\": there are prefix, password_file, and with TLS ca, cert, key and server_name");
  }
  if (key == "spin") {
    return take_number(value, "option spin (microseconds)", 0, spin_us_max,
                       [&](unsigned n) { url.spin = std::chrono::microseconds{n}; });
  }
  const bool quorum = url.what == store_url::kind::redlock;
  if (quorum && (key == "foreign" || key == "connections")) {
    return bad("redlock:// has no option \"" + std::string{key} +
               "\": it is for one server; there are prefix, spin, password_file, node_timeout, "
               "max_ttl and epoch");
  }
  if (key == "foreign") {
    if (value != "share") return bad("the option foreign in the store URL can only be \"share\"");
    url.share_with_foreign = true;
    return {};
  }
  if (key == "connections") {
    return take_number(value, "option connections", 1, connections_max,
                       [&](unsigned n) { url.connections = n; });
  }
  if (key == "db" && url.what == store_url::kind::unix_socket) {
    return take_number(value, "option db", 0, 1'000'000,
                       [&](unsigned n) { url.database = static_cast<int>(n); });
  }
  if (quorum) {
    if (key == "node_timeout") {
      return take_number(value, "option node_timeout (milliseconds)", 1, node_timeout_ms_max,
                         [&](unsigned n) { url.node_timeout = std::chrono::milliseconds{n}; });
    }
    if (key == "max_ttl") {
      return take_number(value, "option max_ttl (milliseconds)", 20, max_ttl_ms_max,
                         [&](unsigned n) { url.max_ttl = std::chrono::milliseconds{n}; });
    }
    if (key == "epoch") {
      return take_number(value, "option epoch", 1, 1'000'000, [&](unsigned n) { url.epoch = n; });
    }
  }
  return bad(
      "the store URL has an option \"" + escape(key) +
      "\" that does not exist: there are prefix, spin, connections and foreign; password_file, but "
      "not for local:; db for unix:; ca, cert, key and server_name with TLS; and prefix, spin, "
      "password_file, node_timeout, max_ttl and epoch for redlock://; prefix and password_file "
      "for etcd://; and tick, acl and password_file for zookeeper://");
}

result<void> take_options(store_url& url, std::string_view query) {
  while (!query.empty()) {
    const auto end = query.find('&');
    const auto one = query.substr(0, end);
    query = end == std::string_view::npos ? std::string_view{} : query.substr(end + 1);
    if (one.empty()) continue;
    const auto equals = one.find('=');
    if (equals == std::string_view::npos) {
      return bad("options in the store URL are written option=value");
    }
    if (auto ok = take_option(url, one.substr(0, equals), one.substr(equals + 1)); !ok) return ok;
  }
  if (url.what == store_url::kind::zookeeper && url.user.empty() &&
      (url.has_password || !url.password_file.empty() || url.open_to_all == false)) {
    return bad(
        "the store URL names no user for ZooKeeper, which has no default one: write "
        "user:password@host");
  }
  if (!url.user.empty() && !url.has_password && url.password_file.empty()) {
    return bad(
        "the store URL has a user name without a password: write user:password@host, or "
        ":password@host for the default user, or password_file=PATH");
  }
  if (url.has_password && !url.password_file.empty())
    return bad("the store URL has a password and a password_file: leave one of them out");
  if (url.tls.cert.empty() && !url.tls.key.empty())
    return bad("the store URL has a key and no cert: a client certificate needs both");
  return {};
}

result<void> take_credentials(store_url& url, std::string_view text) {
  const auto colon = text.find(':');
  auto user = decode(text.substr(0, colon), "user name");
  if (!user) return fail(std::move(user.error()));
  url.user = std::move(*user);
  if (colon == std::string_view::npos) return {};  // take_options() looks for a password file
  auto password = decode(text.substr(colon + 1), "password");
  if (!password) return fail(std::move(password.error()));
  url.password = std::move(*password);
  url.has_password = true;
  return {};
}

result<void> take_host(store_url& url, std::string_view text) {
  // Before the port is looked at: host1:6379,host2:6379 would be taken for an IPv6 address.
  if (text.find(',') != std::string_view::npos) {
    return bad(
        "redis:// takes one host; a lock on a majority of several independent ones is "
        "redlock://host1,host2,host3");
  }
  std::string_view port;
  bool has_port = false;
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    if (close == std::string_view::npos) return bad("the store URL has a [ without a ]");
    url.host = std::string{text.substr(1, close - 1)};
    const auto rest = text.substr(close + 1);
    has_port = rest.starts_with(':');
    if (!has_port && !rest.empty()) return bad("the store URL has text after the address in [ ]");
    if (has_port) port = rest.substr(1);
  } else {
    const auto colon = text.find(':');
    has_port = colon != std::string_view::npos;
    url.host = std::string{text.substr(0, colon)};
    if (has_port) port = text.substr(colon + 1);
    if (port.find(':') != std::string_view::npos) {
      return bad("an IPv6 address in the store URL is written in brackets: redis://[::1]:6379");
    }
  }
  if (url.host.empty()) return bad("the store URL names no host: redis://host[:port]");
  if (!has_port) return {};
  return take_number(port, "port", 1, 65535,
                     [&](unsigned n) { url.port = static_cast<std::uint16_t>(n); });
}

// One host after the other, each as redis:// takes it.
result<void> take_nodes(store_url& url, std::string_view text) {
  const std::string scheme = url.what == store_url::kind::etcd        ? "etcd://"
                             : url.what == store_url::kind::zookeeper ? "zookeeper://"
                                                                      : "redlock://";
  while (!text.empty()) {
    const auto comma = text.find(',');
    store_url one;
    one.port = url.port;
    if (auto ok = take_host(one, text.substr(0, comma)); !ok) return ok;
    store_url::node node{std::move(one.host), one.port};
    for (const auto& known : url.nodes) {
      if (known == node) {
        return bad(scheme + " names a node twice: each has one vote, so name it once");
      }
    }
    url.nodes.push_back(std::move(node));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) return bad(scheme + " has a comma with no host after it");
  }
  if (url.nodes.empty()) return bad("the store URL names no host: " + scheme + "host[:port],…");
  if (url.nodes.size() > nodes_max) {
    return bad(scheme + " takes at most " + std::to_string(nodes_max) + " nodes");
  }
  return {};
}

result<void> take_chroot(store_url& url, std::string_view text) {
  auto path = decode(text, "chroot");
  if (!path) return fail(std::move(path.error()));
  const bool odd = path->find("//") != std::string::npos || path->find("/.") != std::string::npos ||
                   path->find('\0') != std::string::npos || path->starts_with("/zookeeper");
  if (path->ends_with('/') || odd || path->size() > chroot_bytes_max) {
    return bad("the chroot in the store URL is a path of ZooKeeper nodes, as /locks/production");
  }
  url.path = std::move(*path);
  return {};
}

result<void> parse_tcp(store_url& url, std::string_view rest) {
  const auto slash = rest.find('/');
  if (slash != std::string_view::npos && rest.find('@', slash) != std::string_view::npos) {
    return bad(encode_advice);
  }
  auto authority = rest.substr(0, slash);
  if (const auto at = authority.rfind('@'); at != std::string_view::npos) {
    if (auto ok = take_credentials(url, authority.substr(0, at)); !ok) return ok;
    authority.remove_prefix(at + 1);
  }
  const bool several = url.what != store_url::kind::tcp;
  if (auto ok = several ? take_nodes(url, authority) : take_host(url, authority); !ok) return ok;
  if (slash == std::string_view::npos || slash + 1 == rest.size()) return {};
  if (url.what == store_url::kind::etcd) {
    return bad("etcd:// takes no path: what stands before every key is prefix=TEXT");
  }
  if (url.what == store_url::kind::zookeeper) return take_chroot(url, rest.substr(slash));
  return take_number(rest.substr(slash + 1), "database", 0, 1'000'000,
                     [&](unsigned n) { url.database = static_cast<int>(n); });
}

result<void> parse_unix(store_url& url, std::string_view rest) {
  if (rest.starts_with("//")) rest.remove_prefix(2);
  auto path = decode(rest, "path");
  if (!path) return fail(std::move(path.error()));
  if (!path->starts_with('/')) return bad("unix: takes an absolute path: unix:/path/redis.sock");
  url.path = std::move(*path);
  return {};
}

constexpr std::array<std::string_view, 4> later_schemes{"redis+sentinel", "rediss+sentinel",
                                                        "redis+cluster", "rediss+cluster"};

// Schemes that are followed by hosts.
struct host_scheme {
  std::string_view name;
  store_url::kind what;
  bool has_tls;
  std::uint16_t port;
  std::string_view example;
};
constexpr std::array<host_scheme, 7> host_schemes{{
    {"redis", store_url::kind::tcp, false, 6379, "host[:port]"},
    {"rediss", store_url::kind::tcp, true, 6379, "host[:port]"},
    {"redlock", store_url::kind::redlock, false, 6379, "host1,host2,…"},
    {"redlock+tls", store_url::kind::redlock, true, 6379, "host1,host2,…"},
    {"etcd", store_url::kind::etcd, false, 2379, "host1,host2,…"},
    {"etcd+tls", store_url::kind::etcd, true, 2379, "host1,host2,…"},
    {"zookeeper", store_url::kind::zookeeper, false, 2181, "host1,host2,…"},
}};

}  // namespace

result<store_url> parse_url(std::string_view text) {
  // A URL that comes from a file ends with a newline.
  text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
  const auto colon = text.find(':');
  if (colon == std::string_view::npos)
    return bad("the store URL has no scheme: " + std::string{forms});
  const auto scheme = text.substr(0, colon);
  auto rest = text.substr(colon + 1);
  std::string_view query;
  if (const auto mark = rest.find('?'); mark != std::string_view::npos) {
    query = rest.substr(mark + 1);
    rest = rest.substr(0, mark);
  }
  store_url url;
  result<void> ok;
  const auto* const known = std::find_if(host_schemes.begin(), host_schemes.end(),
                                         [&](const auto& one) { return one.name == scheme; });
  const bool has_host = known != host_schemes.end();
  if (has_host && query.find('@') != std::string_view::npos) return bad(encode_advice);
  if (scheme == "memory") {
    url.what = store_url::kind::memory;
    url.name = std::string{rest};
    if (!query.empty()) return bad("memory: takes no options");
  } else if (scheme == "local") {
    url.what = store_url::kind::local;
    if (!rest.empty()) {
      return bad("local: takes no path: there is one such server for each user and host");
    }
  } else if (scheme == "unix") {
    url.what = store_url::kind::unix_socket;
    ok = parse_unix(url, rest);
  } else if (has_host) {
    url.what = known->what;
    url.has_tls = known->has_tls;
    url.port = known->port;
    if (!rest.starts_with("//")) {
      const auto name = std::string{scheme};
      return bad(name + ": is followed by //: " + name + "://" + std::string{known->example});
    }
    ok = parse_tcp(url, rest.substr(2));
  } else if (scheme == "zookeeper+tls" || scheme == "zookeepers") {
    return bad(
        "ZooKeeper's C library has no TLS as Debian builds it: write zookeeper://, and keep the "
        "servers on a network you trust, or behind a tunnel");
  } else {
    for (const auto later : later_schemes) {
      if (scheme == later) {
        return bad(std::string{later} + ":// is not supported by this version");
      }
    }
    return bad("the store URL's scheme is not known: " + std::string{forms});
  }
  if (!ok) return fail(std::move(ok.error()));
  if (auto options = take_options(url, query); !options) return fail(std::move(options.error()));
  return url;
}

}  // namespace holdfast::detail
