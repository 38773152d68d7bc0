#include <holdfast/redlock.hpp>

#include "client/open_store.hpp"
#include "client/url.hpp"
#include "runtime/clock.hpp"
#include "stores/redlock/admin.hpp"
#include "stores/redlock/moving.hpp"
#include "stores/redlock/node_set.hpp"

namespace holdfast::redlock {

namespace {

using stores::redlock::node_set;

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
        set_{std::make_shared<node_set>(detail::redlock_config_of(url), work_,
                                        node_set::role::visitor)} {
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

}  // namespace

result<std::vector<node_status>> status(std::string_view url, std::chrono::milliseconds timeout) {
  auto set = nodes_of::open(url);
  if (!set) return fail(std::move(set.error()));
  const auto seen =
      (**set)->survey(core::after(runtime::now(), timeout), stores::redlock::with_counters::no);
  std::vector<node_status> every;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const bool votes = seen[i].report.is == core::node_report::standing::votes;
    every.push_back({(**set)->names()[i], votes, seen[i].said});
  }
  return every;
}

result<void> init(std::string_view url, std::chrono::milliseconds timeout) {
  const auto set = nodes_of::open(url);
  if (!set) return fail(set.error());
  return stores::redlock::init_set(***set, core::after(runtime::now(), timeout));
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
