#include <algorithm>

#include <holdfast/redlock.hpp>

#include "client/open_store.hpp"
#include "client/url.hpp"
#include "runtime/clock.hpp"
#include "stores/redlock/moving.hpp"
#include "stores/redlock/node_set.hpp"

namespace holdfast::redlock {

namespace {

using stores::redlock::node_set;
using is = core::node_report::standing;
using standings = std::vector<node_set::standing>;

result<detail::store_url> redlock_url(std::string_view url) {
  auto parsed = detail::parse_url(url);
  if (parsed && parsed->what != detail::store_url::kind::redlock) {
    return fail(errc::invalid_argument, "this is for redlock:// URLs only");
  }
  return parsed;
}

// The nodes of a URL, without a client.
class nodes_of {
 public:
  static result<std::unique_ptr<nodes_of>> open(std::string_view url) {
    const auto parsed = redlock_url(url);
    if (!parsed) return fail(parsed.error());
    return std::make_unique<nodes_of>(*parsed);
  }
  explicit nodes_of(const detail::store_url& url)
      : work_{std::make_shared<runtime::background>(1)},
        set_{std::make_shared<node_set>(detail::redlock_config_of(url), work_)} {
    set_->start();
  }
  nodes_of(const nodes_of&) = delete;
  nodes_of& operator=(const nodes_of&) = delete;
  ~nodes_of() {
    set_->close();
    work_->stop();
  }
  [[nodiscard]] node_set& operator*() const noexcept { return *set_; }
  [[nodiscard]] node_set* operator->() const noexcept { return set_.get(); }

 private:
  const std::shared_ptr<runtime::background> work_;
  const std::shared_ptr<node_set> set_;
};

failure refusal(errc code, std::string message, const node_set& set, const standings& seen) {
  failure why{code, std::move(message), {}};
  for (std::size_t i = 0; i < seen.size(); ++i) {
    why.nodes.push_back({set.names()[i], seen[i].said});
    why.message += (i == 0 ? " (" : "; ") + set.names()[i] + " " + seen[i].said;
  }
  why.message += ")";
  return why;
}

bool any(const standings& seen, is which) {
  return std::any_of(seen.begin(), seen.end(),
                     [&](const auto& one) { return one.report.is == which; });
}

// A set whose nodes all answer and are ours.
result<standings> whole_set(const node_set& set, core::time_point until) {
  auto seen = set.survey(until);
  if (any(seen, is::unreachable)) {
    return fail(refusal(errc::store_unreachable, "every node has to answer for this", set, seen));
  }
  for (const auto& one : seen) {
    if (one.report.is == is::foreign && one.voted_elsewhere) {
      return fail(refusal(errc::incompatible,
                          "a node belongs to another set than " + set.description, set, seen));
    }
  }
  return seen;
}

}  // namespace

result<std::vector<node_status>> status(std::string_view url, std::chrono::milliseconds timeout) {
  auto set = nodes_of::open(url);
  if (!set) return fail(std::move(set.error()));
  const auto seen = (**set)->survey(core::after(runtime::now(), timeout));
  const auto lost =
      core::plan_admission(node_set::reports_of(seen), (**set)->config.max_ttl).counters_lost;
  std::vector<node_status> every;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    every.push_back({(**set)->names()[i], seen[i].report.is == is::votes, seen[i].said});
    if (lost && core::awaits_admission(seen[i].report)) {
      every.back().said.append("; ").append(stores::redlock::counters_lost_advice);
    }
  }
  return every;
}

result<void> init(std::string_view url, std::chrono::milliseconds timeout) {
  auto set = nodes_of::open(url);
  if (!set) return fail(std::move(set.error()));
  const auto until = core::after(runtime::now(), timeout);
  const auto seen = whole_set(***set, until);
  if (!seen) return fail(seen.error());
  const auto reports = node_set::reports_of(*seen);
  const bool is_new = !any(*seen, is::votes) && !any(*seen, is::restarted);
  // Or its first `init` was interrupted: its other nodes have not voted yet, either.
  const auto begun_with = [&](const core::node_report& one) {
    return is_new ? core::waits_of(reports) : core::still_to_begin(one, reports);
  };
  const auto may_begin = [&](const core::node_report& one) {
    return one.is == is::votes || !begun_with(one).empty();
  };
  if (!std::all_of(reports.begin(), reports.end(), may_begin)) {
    return fail(refusal(errc::store_refused,
                        "the set is not new: nodes that came back join by themselves after "
                        "max_ttl, and if a majority did, see `holdfast redlock recover`",
                        ***set, *seen));
  }
  for (std::size_t i = 0; i < seen->size(); ++i) {
    if (reports[i].is == is::votes) continue;
    auto ok = (**set)->admit(i, (*seen)[i], node_set::admit_mode::vouched_for, {},
                             begun_with(reports[i]), until);
    if (!ok) return ok;
  }
  return {};
}

result<void> recover(std::string_view url, std::chrono::milliseconds timeout) {
  auto set = nodes_of::open(url);
  if (!set) return fail(std::move(set.error()));
  const auto until = core::after(runtime::now(), timeout);
  const auto seen = whole_set(***set, until);
  if (!seen) return fail(seen.error());
  const auto counters = (**set)->counters_left(until);
  if (!counters) return fail(counters.error());
  for (std::size_t i = 0; i < seen->size(); ++i) {
    const auto& one = (*seen)[i];
    if (one.report.is == is::votes) continue;
    if (one.report.waited < (**set)->config.max_ttl) {
      return fail(refusal(errc::store_loading,
                          "wait until max_ttl is over, for somebody may hold a lock", ***set,
                          *seen));
    }
    auto ok = (**set)->admit(i, one, node_set::admit_mode::recovered, *counters, {}, until);
    if (!ok) return ok;
  }
  return {};
}

result<void> move(std::string_view from, std::string_view to, std::chrono::milliseconds timeout) {
  const auto old_url = redlock_url(from);
  if (!old_url) return fail(old_url.error());
  auto new_url = redlock_url(to);
  if (!new_url) return fail(new_url.error());
  if (new_url->database != old_url->database || new_url->prefix != old_url->prefix) {
    return fail(errc::invalid_argument,
                "both lists need the same database and prefix: locks elsewhere are other locks");
  }
  if (new_url->user.empty() && new_url->password.empty()) {
    new_url->user = old_url->user;
    new_url->password = old_url->password;
  }
  const nodes_of old_set{*old_url};
  const nodes_of new_set{*new_url};
  return stores::redlock::move_set(*old_set, *new_set, core::after(runtime::now(), timeout));
}

}  // namespace holdfast::redlock
