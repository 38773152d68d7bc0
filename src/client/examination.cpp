// `examine()`: from a URL to what is wrong with its servers. A store that has servers of another
// kind adds a case in deployment_of().
#include <algorithm>
#include <functional>
#include <thread>
#include <utility>

#include <holdfast/examination.hpp>

#include "client/open_store.hpp"
#include "client/url.hpp"
#include "core/diagnosis.hpp"
#include "runtime/clock.hpp"
#include "stores/local/local_store.hpp"
#include "stores/redis/examine.hpp"
#include "stores/redlock/admin.hpp"

namespace holdfast {

namespace {

using detail::fail;
using detail::store_url;
using stores::redis::locks_kept;
using stores::redis::user_scope;

user_scope scope_of(const store_url& url) {
  user_scope all{.prefix = url.prefix,
                 .selects_database = url.database != 0,
                 .awaits_replicas = url.replicas_awaited > 0,
                 .seeks_master = url.what == store_url::kind::replicas};
  if (url.what == store_url::kind::redlock) all.locks = locks_kept::on_a_quorum;
  if (url.what == store_url::kind::cluster) all.locks = locks_kept::in_a_cluster;
  return all;
}

result<store_url> with_servers(std::string_view text) {
  auto url = detail::parse_url(text);
  if (!url) return url;
  if (url->what == store_url::kind::memory) {
    return fail(errc::unsupported, "memory: has no server that could be looked at");
  }
  if (url->what == store_url::kind::etcd || url->what == store_url::kind::zookeeper) {
    return fail(errc::unsupported, url->begins +
                                       " has no Redis servers, and only those can be looked at: "
                                       "`holdfast status` says whether locks can be had there");
  }
  if (auto ok = detail::check_files(*url); !ok) return fail(std::move(ok.error()));
  return url;
}

// Those that are away cost their time once.
std::vector<core::server_facts> examine_all(const std::vector<stores::redis::endpoint>& servers,
                                            const user_scope& scope, core::time_point until) {
  std::vector<core::server_facts> all(servers.size());
  std::vector<std::jthread> looks;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    looks.emplace_back([&, i] { all[i] = stores::redis::examine(servers[i], scope, until); });
  }
  looks.clear();  // joined
  return all;
}

core::deployment::form form_of(store_url::kind of_store) {
  using form = core::deployment::form;
  switch (of_store) {
    case store_url::kind::replicas:
    case store_url::kind::sentinel:
      return form::replicated;
    case store_url::kind::cluster:
      return form::cluster;
    case store_url::kind::redlock:
      return form::quorum;
    default:
      return form::one_server;
  }
}

result<core::deployment> queueing(const store_url& url, core::time_point until) {
  const auto servers = detail::servers_of(url, until);
  if (!servers) return fail(servers.error());
  core::deployment what;
  what.is = form_of(url.what);
  what.on_this_host =
      url.what == store_url::kind::local || url.what == store_url::kind::unix_socket;
  what.has_prefix = !url.prefix.empty();
  what.servers = examine_all(*servers, scope_of(url), until);
  return what;
}

core::deployment quorum(const store_url& url, core::time_point until) {
  const auto config = detail::redlock_config_of(url);
  core::deployment what;
  what.is = form_of(url.what);
  what.has_prefix = !url.prefix.empty();
  what.max_ttl = config.max_ttl;
  what.node_timeout = config.node_timeout;
  std::vector<redlock::node_status> standings;
  {
    const std::jthread look{[&] { standings = stores::redlock::look_at_set(config, until); }};
    what.servers = examine_all(config.nodes, scope_of(url), until);
  }
  for (auto& one : what.servers) {
    const auto known = std::find_if(standings.begin(), standings.end(),
                                    [&](const auto& of) { return of.node == one.node; });
    if (known == standings.end()) continue;
    one.votes = known->votes;
    one.standing = known->description;
  }
  return what;
}

result<core::deployment> deployment_of(const store_url& url, core::time_point until) {
  if (url.what == store_url::kind::redlock) return quorum(url, until);
  return queueing(url, until);
}

}  // namespace

std::string_view to_string(finding::severity how) noexcept {
  switch (how) {
    case finding::severity::danger:
      return "danger";
    case finding::severity::warning:
      return "warning";
    case finding::severity::note:
      break;
  }
  return "note";
}

result<examination> examine(std::string_view text, std::chrono::milliseconds timeout) {
  const auto url = with_servers(text);
  if (!url) return fail(url.error());
  const auto what = deployment_of(*url, core::after(runtime::now(), timeout));
  if (!what) return fail(what.error());
  examination all;
  all.servers = what->servers.size();
  const failure* trouble = nullptr;
  for (const auto& one : what->servers) {
    if (!one.trouble) {
      ++all.answered;
    } else if (trouble == nullptr && one.trouble->code != errc::incompatible) {
      trouble = &*one.trouble;
    }
  }
  if (all.answered == 0 && trouble != nullptr) return fail(*trouble);
  all.findings = core::diagnose(*what);
  return all;
}

result<std::string> acl_rule(std::string_view text, std::string_view user) {
  const auto url = with_servers(text);
  if (!url) return fail(url.error());
  constexpr std::string_view allowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
  if (user.empty() || user.find_first_not_of(allowed) != std::string_view::npos) {
    return fail(errc::invalid_argument, "a user's name here is letters, digits, - and _");
  }
  return stores::redis::rule_text(scope_of(*url), user);
}

}  // namespace holdfast
