#include "client/url_options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <holdfast/status.hpp>

#include "client/url_text.hpp"
#include "stores/token_base.hpp"

namespace holdfast::detail {

namespace {

using kind = store_url::kind;

constexpr std::size_t prefix_bytes_max = 256;
constexpr unsigned connections_max = 64;
constexpr unsigned spin_us_max = 1000;
// A master has no more of them that are worth waiting for.
constexpr unsigned replicas_max = 15;
constexpr unsigned replica_timeout_ms_max = 10'000;
constexpr unsigned node_timeout_ms_max = 10'000;
constexpr unsigned max_ttl_ms_max = 24 * 3600 * 1000;
constexpr unsigned tick_ms_max = 60'000;

// ---- values ------------------------------------------------------------------------------------

result<void> take_text(std::string& into, std::string_view key, std::string_view value) {
  auto text = decode_url(value, "option " + std::string{key});
  if (!text) return fail(std::move(text.error()));
  if (text->empty() || text->find('\0') != std::string::npos) {
    return bad_url("the option " + std::string{key} +
                   " in the store URL is empty, or has a byte 0 in it");
  }
  into = std::move(*text);
  return {};
}

result<void> take_prefix(store_url& url, std::string_view value) {
  auto text = decode_url(value, "prefix");
  if (!text) return fail(std::move(text.error()));
  if (text->size() > prefix_bytes_max) {
    return bad_url("the prefix in the store URL must be at most " +
                   std::to_string(prefix_bytes_max) + " bytes");
  }
  url.prefix = std::move(*text);
  return {};
}

result<void> take_token_base(store_url& url, std::string_view value) {
  const char* const end = value.data() + value.size();
  std::uint64_t base = 0;
  const auto [stop, problem] = std::from_chars(value.data(), end, base);
  if (problem != std::errc{} || stop != end || base > stores::token_base_max) {
    return bad_url("the option token_base in the store URL must be a number from 0 to " +
                   std::to_string(stores::token_base_max) +
                   ": what is added to each token, above all that the resource has seen");
  }
  url.token_base = base;
  return {};
}

result<void> take_foreign(store_url& url, std::string_view value) {
  if (value != "share") return bad_url("the option foreign in the store URL can only be \"share\"");
  url.share_with_foreign = true;
  return {};
}

result<void> take_acl(store_url& url, std::string_view value) {
  if (value != "open" && value != "creator")
    return bad_url("the option acl in the store URL is \"open\" or \"creator\"");
  url.open_to_all = value == "open";
  return {};
}

template <auto Member, class Unit = void>
result<void> take_number(store_url& url, std::string_view value, std::string_view what,
                         unsigned least, unsigned most) {
  const auto number = url_number(value, what, least, most);
  if (!number) return fail(number.error());
  if constexpr (std::is_void_v<Unit>) {
    using member = std::remove_reference_t<decltype(url.*Member)>;
    url.*Member = static_cast<member>(*number);
  } else {
    url.*Member = Unit{*number};
  }
  return {};
}

// ---- options -----------------------------------------------------------------------------------

template <class... Kinds>
constexpr unsigned of(Kinds... which) {
  return ((1U << static_cast<unsigned>(which)) | ...);
}
constexpr unsigned servers = of(kind::unix_socket, kind::tcp, kind::replicas, kind::sentinel);
constexpr unsigned with_queue = servers | of(kind::local, kind::cluster);
constexpr unsigned with_login =
    servers | of(kind::cluster, kind::redlock, kind::etcd, kind::zookeeper);

struct option {
  std::string_view name;
  unsigned kinds;  // of stores
  result<void> (*take)(store_url& url, std::string_view value);
};

using std::chrono::microseconds;
using std::chrono::milliseconds;
using url_t = store_url;
using text_t = std::string_view;

constexpr std::array options{
    option{"prefix", with_queue | of(kind::redlock, kind::etcd), take_prefix},
    option{"spin", with_queue | of(kind::redlock),
           [](url_t& url, text_t value) {
             return take_number<&url_t::spin, microseconds>(
                 url, value, "option spin (microseconds)", 0, spin_us_max);
           }},
    option{"connections", with_queue,
           [](url_t& url, text_t value) {
             return take_number<&url_t::connections>(url, value, "option connections", 1,
                                                     connections_max);
           }},
    option{"foreign", with_queue, take_foreign},
    option{"password_file", with_login,
           [](url_t& url, text_t value) {
             return take_text(url.password_file, "password_file", value);
           }},
    option{"db", of(kind::unix_socket),
           [](url_t& url, text_t value) {
             return take_number<&url_t::database>(url, value, "option db", 0, 1'000'000);
           }},
    option{"replicas", servers,
           [](url_t& url, text_t value) {
             return take_number<&url_t::replicas_awaited>(url, value, "option replicas", 0,
                                                          replicas_max);
           }},
    option{"replica_timeout", servers,
           [](url_t& url, text_t value) {
             return take_number<&url_t::replica_timeout, milliseconds>(
                 url, value, "option replica_timeout (milliseconds)", 1, replica_timeout_ms_max);
           }},
    option{"sentinel_user", of(kind::sentinel),
           [](url_t& url, text_t value) {
             return take_text(url.sentinel_user, "sentinel_user", value);
           }},
    option{"sentinel_password_file", of(kind::sentinel),
           [](url_t& url, text_t value) {
             return take_text(url.sentinel_password_file, "sentinel_password_file", value);
           }},
    option{"node_timeout", of(kind::redlock),
           [](url_t& url, text_t value) {
             return take_number<&url_t::node_timeout, milliseconds>(
                 url, value, "option node_timeout (milliseconds)", 1, node_timeout_ms_max);
           }},
    option{"max_ttl", of(kind::redlock),
           [](url_t& url, text_t value) {
             return take_number<&url_t::max_ttl, milliseconds>(
                 url, value, "option max_ttl (milliseconds)", 20, max_ttl_ms_max);
           }},
    option{"epoch", of(kind::redlock),
           [](url_t& url, text_t value) {
             return take_number<&url_t::epoch>(url, value, "option epoch", 1, 1'000'000);
           }},
    option{"token_base", of(kind::etcd, kind::zookeeper), take_token_base},
    option{"tick", of(kind::zookeeper),
           [](url_t& url, text_t value) {
             return take_number<&url_t::tick, milliseconds>(
                 url, value, "option tick (milliseconds)", 1, tick_ms_max);
           }},
    option{"acl", of(kind::zookeeper), take_acl},
};

// ---- of TLS ------------------------------------------------------------------------------------

struct tls_option {
  std::string_view name;
  std::string runtime::tls_settings::*into;
};
constexpr std::array tls_options{tls_option{"ca", &runtime::tls_settings::ca},
                                 tls_option{"cert", &runtime::tls_settings::cert},
                                 tls_option{"key", &runtime::tls_settings::key},
                                 tls_option{"server_name", &runtime::tls_settings::server_name}};

// How its URL begins with TLS; empty: it has none.
std::string_view scheme_with_tls(kind of_store) {
  switch (of_store) {
    case kind::tcp:
    case kind::replicas:
      return "rediss://";
    case kind::sentinel:
      return "rediss+sentinel://";
    case kind::cluster:
      return "rediss+cluster://";
    case kind::redlock:
      return "redlock+tls://";
    case kind::etcd:
      return "etcd+tls://";
    case kind::memory:
    case kind::local:
    case kind::unix_socket:
    case kind::zookeeper:
      break;
  }
  return {};
}

result<void> take_tls_option(store_url& url, const tls_option& which, std::string_view value) {
  if (url.has_tls) return take_text(url.tls.*which.into, which.name, value);
  const std::string name{which.name};
  const auto secure = scheme_with_tls(url.what);
  if (secure.empty()) {
    return bad_url("the option " + name + " in the store URL is for TLS, which " + url.begins +
                   " does not have");
  }
  return bad_url("the option " + name + " in the store URL is for TLS: write " +
                 std::string{secure});
}

// ---- what there is not -------------------------------------------------------------------------

std::string listed(const std::vector<std::string_view>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

failure no_such_option(const store_url& url, std::string_view key) {
  std::vector<std::string_view> there;
  for (const auto& one : options) {
    if ((one.kinds & of(url.what)) != 0) there.push_back(one.name);
  }
  std::vector<std::string_view> tls;
  for (const auto& one : tls_options)
    tls.push_back(one.name);
  if (url.has_tls) there.insert(there.end(), tls.begin(), tls.end());
  auto text = url.begins + " has no option \"" + escape(key) + "\": there are " + listed(there);
  const auto secure = scheme_with_tls(url.what);
  if (!url.has_tls && !secure.empty())
    text += ", and with TLS (" + std::string{secure} + ") " + listed(tls);
  return {errc::invalid_argument, std::move(text), {}};
}

// What people write who have not read that it is another way here.
std::string_view advice_on(const store_url& url, std::string_view key) {
  if (key == "verify") {
    return "the store URL has an option \"verify\", which does not exist: certificates are always "
           "verified. For one that is signed by itself name its file with ca=, for a server that "
           "is reached by another name say server_name=";
  }
  if (key == "sentinel_password" && url.what == kind::sentinel) {
    return "the Sentinels' password is not written into the store URL, where it would be shown: "
           "name its file with sentinel_password_file=PATH";
  }
  if (key == "prefix" && url.what == kind::zookeeper) {
    return "zookeeper:// has no prefix: what stands before every lock is the chroot: "
           "zookeeper://host/chroot";
  }
  if (key == "token_base") {
    return "the option token_base in the store URL is for stores that count from small numbers: "
           "for etcd:// and zookeeper://";
  }
  return {};
}

result<void> take(store_url& url, std::string_view key, std::string_view value) {
  const auto* const found = std::find_if(options.begin(), options.end(), [&](const auto& one) {
    return one.name == key && (one.kinds & of(url.what)) != 0;
  });
  if (found != options.end()) return found->take(url, value);
  const auto* const tls = std::find_if(tls_options.begin(), tls_options.end(),
                                       [&](const auto& one) { return one.name == key; });
  if (tls != tls_options.end()) return take_tls_option(url, *tls, value);
  if (const auto advice = advice_on(url, key); !advice.empty()) return bad_url(std::string{advice});
  return fail(no_such_option(url, key));
}

result<void> check_together(const store_url& url) {
  if (!url.user.empty() && !url.has_password && url.password_file.empty()) {
    return bad_url(
        "the store URL has a user name without a password: write user:password@host, or "
        ":password@host for the default user, or password_file=PATH");
  }
  if (url.has_password && !url.password_file.empty())
    return bad_url("the store URL has a password and a password_file: leave one of them out");
  if (!url.sentinel_user.empty() && url.sentinel_password_file.empty())
    return bad_url("the store URL has a sentinel_user without a sentinel_password_file");
  if (url.tls.cert.empty() && !url.tls.key.empty())
    return bad_url("the store URL has a key and no cert: a client certificate needs both");
  if (url.what == kind::zookeeper && url.user.empty() &&
      (url.has_password || !url.password_file.empty() || url.open_to_all == false)) {
    return bad_url(
        "the store URL names no user for zookeeper://, which has no default one: write "
        "user:password@host");
  }
  return {};
}

}  // namespace

result<void> take_url_options(store_url& url, std::string_view query) {
  if (url.what == kind::memory && !query.empty()) return bad_url("memory: takes no options");
  while (!query.empty()) {
    const auto end = query.find('&');
    const auto one = query.substr(0, end);
    query = end == std::string_view::npos ? std::string_view{} : query.substr(end + 1);
    if (one.empty()) continue;
    const auto equals = one.find('=');
    if (equals == std::string_view::npos)
      return bad_url("options in the store URL are written option=value");
    if (auto ok = take(url, one.substr(0, equals), one.substr(equals + 1)); !ok) return ok;
  }
  return check_together(url);
}

}  // namespace holdfast::detail
