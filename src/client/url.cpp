#include "client/url.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "client/url_options.hpp"
#include "client/url_text.hpp"

namespace holdfast::detail {

namespace {

using kind = store_url::kind;

constexpr std::string_view forms =
    "a store URL is one of local:, memory:[name], unix:/path[?option=…], "
    "redis://[user[:password]@]host[:port][,host[:port],…][/db][?option=…], "
    "redis+sentinel://[user[:password]@]host[:port],…/master[/db][?option=…], "
    "redis+cluster://[user[:password]@]host[:port],…[?option=…], "
    "redlock://[user[:password]@]host[:port],host[:port],…[/db][?option=…], "
    "etcd://[user[:password]@]host[:port],…[?option=…], "
    "zookeeper://[user:password@]host[:port],…[/chroot][?option=…]; with TLS rediss://…, "
    "rediss+sentinel://…, rediss+cluster://…, redlock+tls://… and etcd+tls://…";
constexpr std::string_view encode_advice =
    "in the store URL an @ comes only before the host: write @ / ? and # in a user name, password "
    "or option as %40 %2F %3F %23";
// A majority of more would cost more than it could add, and of the others one that answers is
// enough.
constexpr std::size_t hosts_max = 15;
constexpr std::size_t master_name_bytes_max = 256;
constexpr std::size_t chroot_bytes_max = 256;

// Schemes that are followed by hosts.
struct host_scheme {
  std::string_view name;
  kind what;
  bool has_tls;
  std::uint16_t port;
  std::string_view example;
};
constexpr std::array host_schemes{
    host_scheme{"redis", kind::tcp, false, 6379, "host[:port]"},
    host_scheme{"rediss", kind::tcp, true, 6379, "host[:port]"},
    host_scheme{"redis+sentinel", kind::sentinel, false, 26379, "host1,host2,…/master"},
    host_scheme{"rediss+sentinel", kind::sentinel, true, 26379, "host1,host2,…/master"},
    host_scheme{"redis+cluster", kind::cluster, false, 6379, "host1,host2,…"},
    host_scheme{"rediss+cluster", kind::cluster, true, 6379, "host1,host2,…"},
    host_scheme{"redlock", kind::redlock, false, 6379, "host1,host2,…"},
    host_scheme{"redlock+tls", kind::redlock, true, 6379, "host1,host2,…"},
    host_scheme{"etcd", kind::etcd, false, 2379, "host1,host2,…"},
    host_scheme{"etcd+tls", kind::etcd, true, 2379, "host1,host2,…"},
    host_scheme{"zookeeper", kind::zookeeper, false, 2181, "host1,host2,…"},
};

result<void> take_credentials(store_url& url, std::string_view text) {
  const auto colon = text.find(':');
  auto user = decode_url(text.substr(0, colon), "user name");
  if (!user) return fail(std::move(user.error()));
  url.user = std::move(*user);
  if (colon == std::string_view::npos) return {};  // the options may name a password file
  auto password = decode_url(text.substr(colon + 1), "password");
  if (!password) return fail(std::move(password.error()));
  url.password = std::move(*password);
  url.has_password = true;
  return {};
}

result<store_url::node> read_host(std::string_view text, const store_url& of) {
  store_url::node one{{}, of.port};
  std::string_view port;
  bool has_port = false;
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    if (close == std::string_view::npos) return bad_url("the store URL has a [ without a ]");
    one.host = std::string{text.substr(1, close - 1)};
    const auto rest = text.substr(close + 1);
    has_port = rest.starts_with(':');
    if (!has_port && !rest.empty())
      return bad_url("the store URL has text after the address in [ ]");
    if (has_port) port = rest.substr(1);
  } else {
    const auto colon = text.find(':');
    has_port = colon != std::string_view::npos;
    one.host = std::string{text.substr(0, colon)};
    if (has_port) port = text.substr(colon + 1);
    if (port.find(':') != std::string_view::npos)
      return bad_url("an IPv6 address in the store URL is written in brackets: redis://[::1]:6379");
  }
  if (one.host.empty()) return bad_url("the store URL names no host: " + of.begins + "host[:port]");
  if (!has_port) return one;
  const auto number = url_number(port, "port", 1, 65535);
  if (!number) return fail(number.error());
  one.port = static_cast<std::uint16_t>(*number);
  return one;
}

// One after the other, with commas between.
result<void> take_hosts(store_url& url, std::string_view text) {
  if (text.empty()) return bad_url("the store URL names no host: " + url.begins + "host[:port]");
  for (;;) {
    const auto comma = text.find(',');
    auto one = read_host(text.substr(0, comma), url);
    if (!one) return fail(std::move(one.error()));
    if (std::find(url.nodes.begin(), url.nodes.end(), *one) != url.nodes.end()) {
      const bool votes = url.what == kind::redlock;
      return bad_url(url.begins + " names a host twice: " +
                     (votes ? "each node has one vote, so name it once" : "name it once"));
    }
    url.nodes.push_back(std::move(*one));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) return bad_url(url.begins + " has a comma with no host after it");
  }
  if (url.nodes.size() > hosts_max)
    return bad_url(url.begins + " takes at most " + std::to_string(hosts_max) + " hosts");
  return {};
}

// Takes it off the path; a database may follow.
result<void> take_master(store_url& url, std::string_view& path) {
  const auto end = path.find('/');
  auto name = decode_url(path.substr(0, end), "name of the master");
  if (!name) return fail(std::move(name.error()));
  // A space would make two names of it in what Sentinels tell.
  if (name->empty() || name->size() > master_name_bytes_max ||
      name->find_first_of(std::string_view{" \0\r\n", 4}) != std::string::npos) {
    return bad_url(url.begins + " is followed by the Sentinels and by what they call the master: " +
                   url.begins + "host1,host2,host3/mymaster");
  }
  url.master = std::move(*name);
  path = end == std::string_view::npos ? std::string_view{} : path.substr(end + 1);
  return {};
}

// `text`: without the slash in front.
result<void> take_chroot(store_url& url, std::string_view text) {
  auto path = decode_url("/" + std::string{text}, "chroot");
  if (!path) return fail(std::move(path.error()));
  const bool odd = path->find("//") != std::string::npos || path->find("/.") != std::string::npos ||
                   path->find('\0') != std::string::npos || path->starts_with("/zookeeper");
  if (path->ends_with('/') || odd || path->size() > chroot_bytes_max) {
    return bad_url("the chroot in the store URL is a path of nodes, as /locks/production");
  }
  url.path = std::move(*path);
  return {};
}

result<void> take_host_path(store_url& url, std::string_view path) {
  if (url.what == kind::sentinel) {
    if (auto ok = take_master(url, path); !ok) return ok;
  }
  if (path.empty()) return {};
  if (url.what == kind::zookeeper) return take_chroot(url, path);
  if (url.what == kind::etcd) {
    return bad_url("etcd:// takes no path: what stands before every key is prefix=…");
  }
  if (url.what == kind::cluster && path != "0") {
    return bad_url("a Redis cluster has database 0 only: leave the one in " + url.begins + " out");
  }
  const auto database = url_number(path, "database", 0, 1'000'000);
  if (!database) return fail(database.error());
  url.database = static_cast<int>(*database);
  return {};
}

// `rest`: after the //.
result<void> take_authority(store_url& url, std::string_view rest) {
  const auto slash = rest.find('/');
  if (slash != std::string_view::npos && rest.find('@', slash) != std::string_view::npos)
    return bad_url(std::string{encode_advice});
  auto authority = rest.substr(0, slash);
  if (const auto at = authority.rfind('@'); at != std::string_view::npos) {
    if (auto ok = take_credentials(url, authority.substr(0, at)); !ok) return ok;
    authority.remove_prefix(at + 1);
  }
  if (auto ok = take_hosts(url, authority); !ok) return ok;
  if (url.what == kind::tcp && url.nodes.size() > 1) url.what = kind::replicas;
  if (url.what == kind::tcp) {
    url.host = url.nodes.front().host;
    url.port = url.nodes.front().port;
  }
  return take_host_path(
      url, slash == std::string_view::npos ? std::string_view{} : rest.substr(slash + 1));
}

result<void> take_socket(store_url& url, std::string_view rest) {
  if (rest.starts_with("//")) rest.remove_prefix(2);
  auto path = decode_url(rest, "path");
  if (!path) return fail(std::move(path.error()));
  if (!path->starts_with('/'))
    return bad_url("unix: takes an absolute path: unix:/path/redis.sock");
  url.path = std::move(*path);
  return {};
}

// Everything but the options.
result<void> take_place(store_url& url, std::string_view scheme, std::string_view rest,
                        std::string_view query) {
  const std::string name{scheme};
  url.begins = name + ":";
  if (scheme == "memory") {
    url.what = kind::memory;
    url.name = std::string{rest};
    return {};
  }
  if (scheme == "local") {
    url.what = kind::local;
    if (rest.empty()) return {};
    return bad_url("local: takes no path: there is one such server for each user and host");
  }
  if (scheme == "unix") {
    url.what = kind::unix_socket;
    return take_socket(url, rest);
  }
  if (scheme == "zookeeper+tls" || scheme == "zookeepers") {
    return bad_url(
        "zookeeper:// has no TLS, because its C library has none as Debian builds it: leave the "
        "TLS "
        "out, and keep the servers on a network you trust, or behind a tunnel");
  }
  const auto* const known = std::find_if(host_schemes.begin(), host_schemes.end(),
                                         [&](const auto& one) { return one.name == scheme; });
  if (known == host_schemes.end())
    return bad_url("the store URL's scheme is not known: " + std::string{forms});
  if (query.find('@') != std::string_view::npos) return bad_url(std::string{encode_advice});
  url.what = known->what;
  url.has_tls = known->has_tls;
  url.port = known->port;
  url.begins = name + "://";
  if (rest.starts_with("//")) return take_authority(url, rest.substr(2));
  return bad_url(name + ": is followed by //: " + url.begins + std::string{known->example});
}

}  // namespace

result<store_url> parse_url(std::string_view text) {
  // A URL that comes from a file ends with a newline.
  text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
  const auto colon = text.find(':');
  if (colon == std::string_view::npos)
    return bad_url("the store URL has no scheme: " + std::string{forms});
  auto rest = text.substr(colon + 1);
  std::string_view query;
  if (const auto mark = rest.find('?'); mark != std::string_view::npos) {
    query = rest.substr(mark + 1);
    rest = rest.substr(0, mark);
  }
  store_url url;
  if (auto ok = take_place(url, text.substr(0, colon), rest, query); !ok)
    return fail(std::move(ok.error()));
  if (auto ok = take_url_options(url, query); !ok) return fail(std::move(ok.error()));
  return url;
}

}  // namespace holdfast::detail
