#include "stores/redis/redis_store.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <unordered_map>

#include "runtime/clock.hpp"
#include "stores/redis/layout.hpp"
#include "stores/redis/redis_lock.hpp"
#include "stores/redis/server.hpp"

namespace holdfast::stores::redis {

namespace {

constexpr std::size_t renewals_per_call = 100;
// list() is for people: more than this is cut, and walking the keys is paced by SCAN's COUNT.
constexpr std::size_t listed_max = 10'000;
constexpr std::size_t scan_count = 500;
// Between two renewals the server's clock and ours advance alike, but for delays of a request.
constexpr core::duration clock_step_noticed = std::chrono::seconds{1};

class redis_store final : public store {
 public:
  redis_store(redis_config config, std::shared_ptr<runtime::background> background)
      : server_{std::make_shared<server>(std::move(config), std::move(background))} {}

  ~redis_store() override { close_links(); }

  void on_events(store_events events) override { server_->events = std::move(events); }

  result<std::shared_ptr<store_lock>> open(std::string_view name) override {
    auto key = server_->prefix + std::string{name};
    if (key.starts_with(reserved_prefix)) {
      return fail(errc::invalid_argument, "names that begin with \"" +
                                              std::string{reserved_prefix} +
                                              "\" are kept for Holdfast's own keys");
    }
    const std::lock_guard guard{m_};
    auto& known = locks_[key];
    auto lock = known.lock();
    if (!lock) known = lock = std::make_shared<redis_lock>(server_, key);
    if (locks_.size() >= purge_at_) {
      std::erase_if(locks_, [](const auto& one) { return one.second.expired(); });
      purge_at_ = std::max(purge_at_, 2 * locks_.size());
    }
    return lock;
  }

  [[nodiscard]] std::size_t renewal_batch_max() const noexcept override {
    return renewals_per_call;
  }

  result<std::vector<renewal>> renew(std::span<const held> leases, core::time_point until) override;
  result<std::vector<lock_status>> list(std::string_view pattern, core::duration timeout) override;

  [[nodiscard]] guarantees describe() const override { return server_->promises; }
  void flush(core::time_point until) noexcept override { server_->flush(until); }
  void close() noexcept override { close_links(); }

 private:
  void close_links() noexcept {
    server_->calls.close();
    server_->renewals.close();
    server_->grants.close();
  }
  void compare_clocks(const redisReply& seconds, const redisReply& micros, core::time_point sent);
  result<void> append_statuses(std::span<const std::string> keys, core::time_point until,
                               std::vector<lock_status>& to);

  const std::shared_ptr<server> server_;
  // The renewing thread's: how far the server's clock is ahead of ours, and how sure that is.
  std::optional<core::duration> clock_offset_;
  core::duration clock_doubt_{};

  std::mutex m_;
  // Protected by m_. Names in use, or with a release under way, which must be known to whoever
  // asks for the name next.
  std::unordered_map<std::string, std::weak_ptr<redis_lock>> locks_;
  std::size_t purge_at_ = 1024;
};

result<std::vector<renewal>> redis_store::renew(std::span<const held> leases,
                                                core::time_point until) {
  std::vector<std::string_view> keys;
  std::vector<std::string> ttls;
  std::vector<std::string_view> args;
  keys.reserve(leases.size());
  ttls.reserve(leases.size());
  args.reserve(2 * leases.size());
  for (const auto& one : leases) {
    keys.push_back(static_cast<redis_lock*>(one.lock)->key());
    ttls.push_back(std::to_string(std::chrono::ceil<std::chrono::milliseconds>(one.ttl).count()));
    args.push_back(one.id.text());
    args.push_back(ttls.back());
  }
  const auto counted_from = runtime::now();
  auto answer = server_->renewals.run({scripts::renew, keys, args}, until);
  if (!answer) return fail(std::move(answer.error()));
  const auto fields = elements_of(**answer);
  if (fields.size() != leases.size() + 2) {
    return fail(errc::incompatible,
                server_->renewals.node() + " gave an answer that makes no sense for our script");
  }
  compare_clocks(*fields[0], *fields[1], counted_from);
  std::vector<renewal> all;
  all.reserve(leases.size());
  for (std::size_t i = 0; i < leases.size(); ++i) {
    all.push_back(read_renewal(*fields[i + 2], leases[i].ttl, counted_from));
  }
  return all;
}

// Redis expires keys by its wall clock. If that jumps, leases end early or late; fencing survives
// it, and a person should hear of it.
void redis_store::compare_clocks(const redisReply& seconds, const redisReply& micros,
                                 core::time_point sent) {
  const auto number = [](const redisReply& r) {
    return std::atoll(std::string{text_of(r)}.c_str());
  };
  const core::duration theirs =
      std::chrono::seconds{number(seconds)} + std::chrono::microseconds{number(micros)};
  const auto received = runtime::now();
  const auto offset = theirs - sent.time_since_epoch();
  const auto step = clock_offset_ ? offset - *clock_offset_ : core::duration::zero();
  const auto doubt = received - sent;
  const auto tolerated = clock_step_noticed + doubt + clock_doubt_;
  clock_offset_ = offset;
  clock_doubt_ = doubt;
  if ((step > tolerated || step < -tolerated) && server_->events.clock_stepped) {
    server_->events.clock_stepped(step);
  }
}

result<void> redis_store::append_statuses(std::span<const std::string> keys, core::time_point until,
                                          std::vector<lock_status>& to) {
  if (keys.empty()) return {};
  std::vector<std::string> queues;
  std::vector<std::string_view> names;
  for (const auto& key : keys)
    queues.push_back(lock_keys{key}.queue);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    names.push_back(keys[i]);
    names.push_back(queues[i]);
  }
  const std::array<std::string_view, 1> args{waiters_shown_max};
  auto answer = server_->calls.look({scripts::inspect, names, args}, until);
  if (!answer) return fail(std::move(answer.error()));
  const auto fields = elements_of(**answer);
  const std::span<const redisReply* const> said{fields.data(), fields.size()};
  for (std::size_t i = 0; i < keys.size() && (i + 1) * status_elements <= said.size(); ++i) {
    auto status = read_status(keys[i].substr(server_->prefix.size()),
                              said.subspan(i * status_elements, status_elements));
    if (!status) return fail(std::move(status.error()));
    // Any string key of the database may match the pattern: only ours are known to be locks.
    if (status->holder && !status->holder->foreign) to.push_back(std::move(*status));
  }
  return {};
}

result<std::vector<lock_status>> redis_store::list(std::string_view pattern,
                                                   core::duration timeout) {
  std::vector<lock_status> all;
  std::string cursor = "0";
  // The prefix is literal text, the rest a pattern.
  std::string match;
  for (const char c : server_->prefix) {
    if (std::string_view{"*?[]\\"}.find(c) != std::string_view::npos) match += '\\';
    match += c;
  }
  match += pattern;
  do {
    command scan{8};
    scan.arg("SCAN").arg(cursor).arg("MATCH").arg(match);
    scan.arg("COUNT").arg(static_cast<long long>(scan_count)).arg("TYPE").arg("string");
    auto answer = server_->calls.look(scan.bytes(), core::after(runtime::now(), timeout));
    if (!answer) return fail(std::move(answer.error()));
    const auto fields = elements_of(**answer);
    if (fields.size() < 2) break;
    cursor = text_of(*fields[0]);
    std::vector<std::string> keys;
    for (const auto* one : elements_of(*fields[1]))
      keys.emplace_back(text_of(*one));
    if (auto ok = append_statuses(keys, core::after(runtime::now(), timeout), all); !ok)
      return fail(std::move(ok.error()));
  } while (cursor != "0" && all.size() < listed_max);
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  // SCAN may give a key twice.
  all.erase(std::unique(all.begin(), all.end(),
                        [](const auto& a, const auto& b) { return a.name == b.name; }),
            all.end());
  return all;
}

}  // namespace

std::unique_ptr<store> make_redis_store(redis_config config,
                                        std::shared_ptr<runtime::background> background) {
  return std::make_unique<redis_store>(std::move(config), std::move(background));
}

}  // namespace holdfast::stores::redis
