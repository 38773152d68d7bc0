#include "stores/redis/master_connections.hpp"

#include <utility>

namespace holdfast::stores::redis {

class master_connections::kept_stream final : public runtime::stream {
 public:
  kept_stream(std::shared_ptr<master_connections> in, std::unique_ptr<runtime::stream> inner,
              core::server_address where)
      : to{std::move(where)}, inner_{std::move(inner)}, in_{std::move(in)} {}
  ~kept_stream() override {
    const std::lock_guard guard{in_->m_};
    in_->kept_.erase(this);
  }

  runtime::io_outcome send_some(std::string_view bytes) noexcept override {
    return inner_->send_some(bytes);
  }
  runtime::io_outcome receive_some(char* into, std::size_t room) noexcept override {
    return inner_->receive_some(into, room);
  }
  runtime::io_outcome peek() noexcept override { return inner_->peek(); }
  [[nodiscard]] int fd() const noexcept override { return inner_->fd(); }
  [[nodiscard]] bool has_buffered() const noexcept override { return inner_->has_buffered(); }
  [[nodiscard]] std::optional<failure> trouble() const override { return inner_->trouble(); }
  bool wake_at(int bytes) noexcept override { return inner_->wake_at(bytes); }
  bool tells(std::function<void()> readable) override { return inner_->tells(std::move(readable)); }
  void shut_down() noexcept override { inner_->shut_down(); }

  const core::server_address to;

 private:
  const std::unique_ptr<runtime::stream> inner_;
  const std::shared_ptr<master_connections> in_;
};

std::optional<core::server_address> master_connections::master() {
  const std::lock_guard guard{m_};
  return master_;
}

bool master_connections::set_master(const core::server_address& now) {
  const std::lock_guard guard{m_};
  if (master_ == now) return false;
  master_ = now;
  for (auto* one : kept_) {
    if (one->to != now) one->shut_down();
  }
  return true;
}

std::unique_ptr<runtime::stream> master_connections::keep(std::unique_ptr<runtime::stream> made,
                                                          const core::server_address& to) {
  auto kept = std::make_unique<kept_stream>(shared_from_this(), std::move(made), to);
  const std::lock_guard guard{m_};
  kept_.insert(kept.get());
  if (master_ != to) kept->shut_down();
  return kept;
}

}  // namespace holdfast::stores::redis
