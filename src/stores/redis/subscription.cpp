#include "stores/redis/subscription.hpp"

#include <poll.h>

#include <array>
#include <utility>

#include "runtime/clock.hpp"
#include "runtime/socket.hpp"

namespace holdfast::stores::redis {

namespace {

constexpr std::size_t read_chunk_bytes = 8 * 1024;

}  // namespace

// The wait for the answer to SUBSCRIBE.
class subscription::confirmation final : public waiting,
                                         public std::enable_shared_from_this<confirmation> {
 public:
  confirmation(std::shared_ptr<subscription> of, core::time_point until, on_open done)
      : of_{std::move(of)}, until_{until}, done_{std::move(done)} {}

  void wait() override {
    while (!is_answered()) {
      const bool ready = of_->has_buffered() || runtime::wait_ready(of_->fd(), POLLIN, until_) ==
                                                    runtime::readiness::ready;
      if (!ready) break;
      of_->receive();
    }
    finish();
  }

  void watch(timers& by) override {
    of_->on_readable([weak = weak_from_this()] {
      const auto self = weak.lock();
      if (!self) return;
      self->of_->receive();
      if (self->is_answered()) self->finish();
    });
    by.at(until_, [self = shared_from_this()] { self->finish(); });
  }

 private:
  [[nodiscard]] bool is_answered() const { return of_->confirmed_ || of_->over(); }

  void finish() {
    const auto done = std::exchange(done_, nullptr);
    if (!done) return;
    const auto of = std::move(of_);
    of->on_readable(nullptr);
    if (of->over()) return done(fail(*of->why_over_));
    if (of->confirmed_) return done(of);
    done(fail(errc::store_unreachable, "no answer to SUBSCRIBE from " + of->node_));
  }

  std::shared_ptr<subscription> of_;
  const core::time_point until_;
  on_open done_;  // empty: it was called
};

void subscription::open(dialer& to, const std::vector<std::string>& channels,
                        core::time_point until, caller& by, on_open done) {
  command text{1 + channels.size()};
  text.arg("SUBSCRIBE");
  for (const auto& one : channels)
    text.arg(one);
  to.dial(until,
          [node = to.node(), text = text.bytes(), until, &by, done = std::move(done)](auto over) {
            if (!over) return done(fail(std::move(over.error())));
            const std::shared_ptr<subscription> made{new subscription{std::move(*over), node}};
            const bool told = made->stream_->tells([weak = std::weak_ptr{made}] {
              const auto self = weak.lock();
              if (self && self->readable_) std::function<void()>{self->readable_}();
            });
            static_cast<void>(told);  // otherwise the thread that reads polls
            // A few bytes on a fresh connection always fit.
            if (made->stream_->send_some(text).bytes != text.size()) {
              return done(fail(errc::store_unreachable, "cannot subscribe at " + node));
            }
            by.wait_for(std::make_shared<confirmation>(made, until, done));
          });
}

bool subscription::receive() {
  if (over()) return false;
  std::array<char, read_chunk_bytes> chunk;
  const auto got = stream_->receive_some(chunk.data(), chunk.size());
  if (got.error != 0) {
    end({errc::store_unreachable, runtime::describe_end(*stream_, got.error), {}});
  }
  if (got.bytes == 0) return false;
  reader_.feed({chunk.data(), got.bytes});
  while (const auto one = reader_.next())
    read(*one);
  if (!reader_.trouble().empty()) {
    end({errc::incompatible, node_ + ": " + std::string{reader_.trouble()}, {}});
  }
  return true;
}

void subscription::read(const reply_value& what) {
  if (!std::exchange(confirmed_, true)) {
    if (what.type != reply_kind::error) return;
    confirmed_ = false;
    return end(
        {errc::not_permitted, node_ + " refuses SUBSCRIBE: waiting falls back to polling", {}});
  }
  const auto fields = elements_of(what);
  if (fields.size() != 3 || text_of(*fields[0]) != "message") return;
  messages_.emplace_back(text_of(*fields[2]));
}

std::optional<std::string> subscription::next() {
  if (messages_.empty()) return std::nullopt;
  std::optional<std::string> first{std::move(messages_.front())};
  messages_.pop_front();
  return first;
}

void subscription::end(failure why) {
  if (!why_over_) why_over_ = std::move(why);
}

}  // namespace holdfast::stores::redis
