#include "sim/stream.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/types.hpp"
#include "stores/redis/resp.hpp"

namespace holdfast::sim {

namespace {

using runtime::io_outcome;

void write(const reply& what, std::string& to) {
  switch (what.type) {
    case reply::kind::nil:
      to += "$-1\r\n";
      return;
    case reply::kind::integer:
      to += ":" + std::to_string(what.integer) + "\r\n";
      return;
    case reply::kind::status:
      to += "+" + what.text + "\r\n";
      return;
    case reply::kind::error:
      to += "-" + what.text + "\r\n";
      return;
    case reply::kind::text:
      to += "$" + std::to_string(what.text.size()) + "\r\n" + what.text + "\r\n";
      return;
    case reply::kind::array:
      to += "*" + std::to_string(what.items.size()) + "\r\n";
      for (const auto& one : what.items)
        write(one, to);
  }
}

class sim_stream final : public runtime::stream {
 public:
  explicit sim_stream(connection& on) : on_{on} {
    on_.tell.answered = [this](const reply& what) { came(what); };
    on_.tell.pushed = [this](std::string channel, std::string text) {
      came(reply::list({reply::of(std::string{"message"}), reply::of(std::move(channel)),
                        reply::of(std::move(text))}));
    };
    on_.tell.broken = [this] {
      broken_ = true;
      tell();
    };
  }
  ~sim_stream() override { on_.close(); }

  io_outcome send_some(std::string_view bytes) noexcept override {
    if (broken_ || !on_.usable()) return {0, false, ECONNRESET};
    commands_.feed(bytes);
    while (const auto one = commands_.next()) {
      std::vector<std::string> words;
      for (const auto& word : one->items)
        words.push_back(word.text);
      on_.send(std::move(words));
    }
    return {bytes.size(), false, 0};
  }
  io_outcome receive_some(char* into, std::size_t room) noexcept override {
    if (unread_.empty()) return peek();
    const auto count = std::min(room, unread_.size());
    std::memcpy(into, unread_.data(), count);
    unread_.erase(0, count);
    return {count, false, 0};
  }
  io_outcome peek() noexcept override {
    if (!unread_.empty()) return {1, false, 0};
    if (broken_) return {0, false, -1};
    return {0, true, 0};
  }
  int fd() const noexcept override { return -1; }
  bool wake_at(int bytes) noexcept override {
    static_cast<void>(bytes);
    return true;
  }
  bool tells(std::function<void()> readable) override {
    readable_ = std::move(readable);
    return true;
  }
  void shut_down() noexcept override { on_.close(); }

 private:
  void came(const reply& what) {
    write(what, unread_);
    tell();
  }
  // Whoever is told may end this stream.
  void tell() const {
    if (const auto told = readable_) told();
  }

  connection& on_;
  stores::redis::reply_reader commands_;
  std::string unread_;
  std::function<void()> readable_;
  bool broken_ = false;
};

}  // namespace

void sim_dialer::dial(core::time_point until, on_connected done) {
  // Whichever comes first: it is open, it is refused, or there is no more time.
  const auto told = std::make_shared<on_connected>(std::move(done));
  const auto failed = [told](const char* why) {
    if (const auto tell = std::exchange(*told, nullptr)) {
      tell(detail::fail(errc::store_unreachable, why));
    }
  };
  from_.at(until, [failed] { failed("no answer to the connection attempt"); });
  net_.connect(from_, to_, [told, failed](connection* fresh) {
    if (fresh == nullptr) return failed("connection refused");
    const auto tell = std::exchange(*told, nullptr);
    if (!tell) return fresh->close();
    tell(std::make_unique<sim_stream>(*fresh));
  });
}

}  // namespace holdfast::sim
