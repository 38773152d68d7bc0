#include "stores/redis/plain_replicas.hpp"

#include <poll.h>

#include <mutex>
#include <optional>
#include <utility>

#include "core/passing.hpp"
#include "runtime/background.hpp"
#include "runtime/clock.hpp"
#include "runtime/socket.hpp"
#include "stores/redis/ask_all.hpp"
#include "stores/redis/channel.hpp"
#include "stores/redis/server_error.hpp"

namespace holdfast::stores::redis {

namespace {

// No server tells when a person promotes another one, so each is asked so often.
constexpr core::duration look_pause = std::chrono::seconds{1};

std::string list_of(const std::vector<endpoint>& all) {
  std::string text;
  for (const auto& one : all)
    text += (text.empty() ? "" : ", ") + one.node;
  return text;
}

// The value of one line "name:value" of INFO.
std::string_view line_of(std::string_view info, std::string_view name) {
  for (auto at = info.find(name); at != std::string_view::npos; at = info.find(name, at + 1)) {
    const bool begins = at == 0 || info[at - 1] == '\n';
    const auto value = info.substr(at + name.size());
    if (begins && value.starts_with(':')) return value.substr(1, value.find_first_of("\r\n") - 1);
  }
  return {};
}

class plain_replicas final : public deployment {
 public:
  plain_replicas(std::vector<endpoint> among, std::vector<core::server_address> addresses)
      : among_{std::move(among)},
        addresses_{std::move(addresses)},
        name_{"the master among " + list_of(among_)},
        open_(among_.size()),
        threads_{among_.size()} {}
  ~plain_replicas() override { threads_.stop(); }

  [[nodiscard]] const std::string& name() const noexcept override { return name_; }
  [[nodiscard]] result<core::server_address> find_master(core::time_point until) override;
  [[nodiscard]] bool await_news(int wake_fd) override {
    const auto next = core::after(runtime::now(), look_pause);
    return runtime::wait_ready(wake_fd, POLLIN, next) == runtime::readiness::timed_out;
  }

 private:
  using words = std::vector<result<core::replication_word>>;

  [[nodiscard]] result<core::replication_word> ask(std::size_t which, core::time_point until);
  [[nodiscard]] failure nobody_answered(const words& said) const;

  const std::vector<endpoint> among_;
  const std::vector<core::server_address> addresses_;
  const std::string name_;

  core::replication_views views_;  // of the thread that searches

  std::mutex m_;
  // Protected by m_. Kept from one look to the next; empty while one is asked.
  std::vector<std::unique_ptr<channel>> open_;

  runtime::background threads_;  // last: its threads use the rest
};

result<core::replication_word> plain_replicas::ask(std::size_t which, core::time_point until) {
  const auto& where = among_[which];
  command info{2};
  info.arg("INFO").arg("replication");
  std::unique_ptr<channel> to;
  {
    const std::lock_guard guard{m_};
    to = std::move(open_[which]);
  }
  result<reply> said = fail(errc::store_unreachable, "not connected");
  if (to) said = to->call(info.bytes(), until, true);
  // The connection may have been closed since the last look.
  if (!said && (!to || to->broken())) {
    auto over = open_connection(where, until);
    if (!over) return fail(std::move(over.error()));
    to = std::make_unique<channel>(std::move(*over), where.node, core::duration::zero());
    said = to->call(info.bytes(), until, true);
  }
  if (!said) return fail(std::move(said.error()));
  if ((*said)->type == reply_kind::error) return fail(translate_error(text_of(**said), where.node));
  const auto text = text_of(**said);
  core::replication_word word{line_of(text, "role") == "master",
                              std::string{line_of(text, "master_replid")},
                              std::string{line_of(text, "master_replid2")}};
  const std::lock_guard guard{m_};
  open_[which] = std::move(to);
  return word;
}

result<core::server_address> plain_replicas::find_master(core::time_point until) {
  const auto said = ask_all<core::replication_word>(
      threads_, among_.size(), until,
      [this](std::size_t i, core::time_point by) { return ask(i, by); });
  std::vector<std::optional<core::replication_word>> known;
  bool answered = false;
  for (const auto& one : said) {
    known.emplace_back();
    if (one) known.back() = *one;
    answered = answered || one;
  }
  const auto found = views_.hear(known, runtime::now());
  switch (found.is) {
    case core::master_found::verdict::one:
      return addresses_[found.which];
    case core::master_found::verdict::several:
      return fail(errc::incompatible,
                  "several servers say that they are " + name_ +
                      ": make the others its replicas (REPLICAOF host port), or, if they are meant "
                      "to be independent, write redlock://");
    case core::master_found::verdict::none:
      break;
  }
  if (!answered) return fail(nobody_answered(said));
  return fail(errc::read_only, "no server that answers is " + name_ +
                                   ": start the master, or make one by REPLICAOF NO ONE");
}

failure plain_replicas::nobody_answered(const words& said) const {
  failure why{errc::store_unreachable, "no server answers that may be " + name_, {}};
  for (std::size_t i = 0; i < said.size(); ++i) {
    if (said[i]) continue;
    const auto& one = said[i].error();
    if (!core::is_passing(one.code)) why = {one.code, one.message, std::move(why.nodes)};
    why.nodes.push_back({among_[i].node, one.message});
  }
  return why;
}

}  // namespace

std::unique_ptr<deployment> make_plain_replicas(std::vector<endpoint> among,
                                                std::vector<core::server_address> addresses) {
  return std::make_unique<plain_replicas>(std::move(among), std::move(addresses));
}

}  // namespace holdfast::stores::redis
