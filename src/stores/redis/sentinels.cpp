#include "stores/redis/sentinels.hpp"

#include <poll.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "core/backoff.hpp"
#include "core/passing.hpp"
#include "runtime/background.hpp"
#include "runtime/clock.hpp"
#include "runtime/random.hpp"
#include "runtime/wake_fd.hpp"
#include "stores/redis/ask_all.hpp"
#include "stores/redis/channel.hpp"
#include "stores/redis/server_error.hpp"
#include "stores/redis/subscription.hpp"

namespace holdfast::stores::redis {

namespace {

using std::chrono::milliseconds;

// The Sentinel that leads a failover says first that a replica was promoted, and that the master is
// another once all is done; the others say the latter as soon as they hear of it.
const std::vector<std::string>& news_channels() {
  static const std::vector<std::string> both{"+switch-master", "+promoted-slave"};
  return both;
}
// How long a Sentinel may take to let us listen.
constexpr core::duration listening_max = std::chrono::seconds{2};
// Between attempts to listen to a Sentinel that is not there.
constexpr core::backoff::bounds listen_pace{milliseconds{100}, std::chrono::seconds{5}};

std::string list_of(const std::vector<endpoint>& all) {
  std::string text;
  for (const auto& one : all)
    text += (text.empty() ? "" : ", ") + one.node;
  return text;
}

std::optional<std::uint64_t> read_number(std::string_view text, std::uint64_t most) {
  std::uint64_t value = 0;
  const auto* end = text.data() + text.size();
  const auto got = std::from_chars(text.data(), end, value);
  if (text.empty() || got.ec != std::errc{} || got.ptr != end || value > most) return std::nullopt;
  return value;
}

class sentinels final : public deployment {
 public:
  sentinels(std::vector<endpoint> of, std::string master);
  ~sentinels() override { threads_.stop(); }

  [[nodiscard]] const std::string& name() const noexcept override { return name_; }
  [[nodiscard]] result<core::server_address> find_master(core::time_point until) override;
  [[nodiscard]] bool await_news(int wake_fd) override;

 private:
  // Of one Sentinel. Opened on a thread of its own, read by the thread that waits for news.
  struct listening {
    std::shared_ptr<subscription> to;
    bool opening = false;
    bool fresh = false;  // opened since news were waited for last: some may have been missed
    core::time_point not_before{};
    core::backoff pace{listen_pace, runtime::random_bits()};
  };

  [[nodiscard]] result<core::sentinel_word> ask(const endpoint& one, core::time_point until) const;
  [[nodiscard]] failure nobody_knows(const std::vector<result<core::sentinel_word>>& said) const;
  [[nodiscard]] core::time_point listen_again();
  void listen(std::size_t which);
  [[nodiscard]] bool take_news(listening& from);
  [[nodiscard]] bool heard_all_anew();

  const std::vector<endpoint> of_;
  const std::string master_;
  const std::string name_;
  std::vector<std::shared_ptr<dialer>> dialers_;
  core::sentinel_views views_;  // of the thread that searches
  const runtime::wake_fd opened_;

  std::mutex m_;
  // Protected by m_.
  std::vector<listening> listening_;

  // Last: its threads use the rest. One that asks and one that listens for each Sentinel.
  runtime::background threads_;
};

sentinels::sentinels(std::vector<endpoint> of, std::string master)
    : of_{std::move(of)},
      master_{std::move(master)},
      name_{"master " + escape(master_) + " of the Sentinels " + list_of(of_)},
      views_{of_.size()},
      listening_(of_.size()),
      threads_{2 * of_.size()} {
  for (const auto& one : of_)
    dialers_.push_back(make_dialer(one));
}

// ---- asking ------------------------------------------------------------------------------------

// The address by the command that knows of a failover first, and the epoch beside it.
result<core::sentinel_word> sentinels::ask(const endpoint& one, core::time_point until) const {
  auto over = open_connection(one, until);
  if (!over) return fail(std::move(over.error()));
  channel to{std::move(*over), one.node, core::duration::zero()};
  command address{3};
  address.arg("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(master_);
  command details{3};
  details.arg("SENTINEL").arg("MASTER").arg(master_);

  core::sentinel_word word;
  const auto where = to.call(address.bytes(), until, true);
  if (!where) return fail(where.error());
  if ((*where)->type == reply_kind::error) return fail(translate_error(text_of(**where), one.node));
  const auto fields = elements_of(**where);
  if (fields.size() < 2) {
    return fail(errc::store_refused, one.node + " knows no master \"" + escape(master_) +
                                         "\": SENTINEL MASTERS lists those that it knows");
  }
  const auto port = read_number(text_of(*fields[1]), 65535);
  if (!port) return fail(errc::incompatible, one.node + " gives no address of the master");
  word.master = {std::string{text_of(*fields[0])}, static_cast<std::uint16_t>(*port)};

  const auto said = to.call(details.bytes(), until, true);
  if (!said) return fail(said.error());
  const auto pairs = elements_of(**said);
  // A user that may not ask for it gets the address all the same.
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    if (text_of(*pairs[i]) != "config-epoch") continue;
    word.epoch = read_number(text_of(*pairs[i + 1]), ~std::uint64_t{0}).value_or(0);
  }
  return word;
}

result<core::server_address> sentinels::find_master(core::time_point until) {
  const auto said = ask_all<core::sentinel_word>(
      threads_, of_.size(), until,
      [this](std::size_t i, core::time_point by) { return ask(of_[i], by); });
  std::vector<std::optional<core::sentinel_word>> words;
  for (const auto& one : said) {
    words.emplace_back();
    if (one) words.back() = *one;
  }
  // One that is known may be used without them.
  const auto& master = views_.hear(words, runtime::now());
  if (!master) return fail(nobody_knows(said));
  return *master;
}

// A failure that will not pass by itself says more than that another Sentinel is down.
failure sentinels::nobody_knows(const std::vector<result<core::sentinel_word>>& said) const {
  const auto lasting = std::find_if(said.begin(), said.end(), [](const auto& one) {
    return !one && !core::is_passing(one.error().code);
  });
  failure why{errc::store_unreachable, "no Sentinel says who is the " + name_, {}};
  if (lasting != said.end()) why = {lasting->error().code, lasting->error().message, {}};
  for (std::size_t i = 0; i < said.size(); ++i) {
    if (!said[i]) why.nodes.push_back({of_[i].node, said[i].error().message});
  }
  return why;
}

// ---- listening ---------------------------------------------------------------------------------

void sentinels::listen(std::size_t which) {
  const auto until = core::after(runtime::now(), listening_max);
  auto made = wait_here<result<std::shared_ptr<subscription>>>([&](auto& by, auto done) {
    subscription::open(*dialers_[which], news_channels(), until, by, std::move(done));
  });
  {
    const std::lock_guard guard{m_};
    auto& mine = listening_[which];
    mine.opening = false;
    if (made) {
      mine.to = std::move(*made);
      mine.fresh = true;
      mine.pace.reset();
    } else {
      mine.not_before = core::after(runtime::now(), mine.pace.next());
    }
  }
  opened_.wake();
}

// Begins to listen to those that are not listened to. Gives when to do so again.
core::time_point sentinels::listen_again() {
  const std::lock_guard guard{m_};
  const auto now = runtime::now();
  auto next = core::never;
  for (std::size_t i = 0; i < listening_.size(); ++i) {
    auto& one = listening_[i];
    if (one.to || one.opening) continue;
    if (one.not_before <= now) {
      one.opening = threads_.run([this, i] { listen(i); });
      if (one.opening) continue;
      one.not_before = core::after(now, one.pace.next());
    }
    next = std::min(next, one.not_before);
  }
  return next;
}

// What was told between the last answer and now was not heard.
bool sentinels::heard_all_anew() {
  const std::lock_guard guard{m_};
  const auto opening = [](const listening& one) { return one.opening; };
  if (std::any_of(listening_.begin(), listening_.end(), opening)) return false;
  bool fresh = false;
  for (auto& one : listening_)
    fresh = std::exchange(one.fresh, false) || fresh;
  return fresh;
}

// Under m_. The message is a hint: who the master is by now is asked for.
bool sentinels::take_news(listening& from) {
  from.to->receive();
  bool news = false;
  while (const auto message = from.to->next()) {
    const bool is_ours = message->starts_with(master_ + ' ') ||
                         message->find(" @ " + master_ + ' ') != std::string::npos;
    news = news || is_ours;
  }
  if (from.to->over()) {
    from.to.reset();
    from.not_before = core::after(runtime::now(), from.pace.next());
  }
  return news;
}

bool sentinels::await_news(int wake_fd) {
  for (;;) {
    const auto again_at = listen_again();
    if (heard_all_anew()) return true;
    std::vector<pollfd> fds{{wake_fd, POLLIN, 0}, {opened_.fd(), POLLIN, 0}};
    bool buffered = false;
    {
      const std::lock_guard guard{m_};
      for (const auto& one : listening_) {
        fds.push_back({one.to ? one.to->fd() : -1, POLLIN, 0});
        buffered = buffered || (one.to && one.to->has_buffered());
      }
    }
    const auto left = buffered ? timespec{} : runtime::until(again_at);
    static_cast<void>(::ppoll(fds.data(), fds.size(), &left, nullptr));
    if (fds[0].revents != 0) return false;
    if (fds[1].revents != 0) opened_.reset();
    bool news = false;
    {
      const std::lock_guard guard{m_};
      for (std::size_t i = 0; i < listening_.size(); ++i) {
        auto& one = listening_[i];
        const bool ready = fds[i + 2].revents != 0 || (one.to && one.to->has_buffered());
        if (one.to && ready) news = take_news(one) || news;
      }
    }
    if (news) return true;
  }
}

}  // namespace

std::unique_ptr<deployment> make_sentinels(std::vector<endpoint> of, std::string master) {
  return std::make_unique<sentinels>(std::move(of), std::move(master));
}

}  // namespace holdfast::stores::redis
