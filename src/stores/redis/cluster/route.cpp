#include "stores/redis/cluster/route.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace holdfast::stores::redis {

namespace {

using std::chrono::milliseconds;

// A slot is on its way for milliseconds, a promotion takes longer.
constexpr core::backoff::bounds not_now_pause{milliseconds{2}, milliseconds{100}};

}  // namespace

std::optional<redirection> read_redirection(std::string_view said, const std::string& said_by) {
  constexpr std::array<std::string_view, 4> passing{"TRYAGAIN", "CLUSTERDOWN", "LOADING",
                                                    "MASTERDOWN"};
  if (std::any_of(passing.begin(), passing.end(),
                  [&](std::string_view word) { return said.starts_with(word); })) {
    return redirection{redirection::kind::not_now, 0, {}};
  }
  const bool moved = said.starts_with("MOVED ");
  if (!moved && !said.starts_with("ASK ")) return std::nullopt;
  said.remove_prefix(said.find(' ') + 1);
  redirection there{moved ? redirection::kind::moved : redirection::kind::ask, 0, {}};
  const auto got = std::from_chars(said.data(), said.data() + said.size(), there.slot);
  if (got.ec != std::errc{} || there.slot >= slot_map::slots) return std::nullopt;
  said.remove_prefix(static_cast<std::size_t>(got.ptr - said.data()));
  if (!said.starts_with(' ')) return std::nullopt;
  said.remove_prefix(1);
  there.to = read_address(said.substr(0, said.find(' ')), said_by);
  if (there.to.port == 0) return std::nullopt;
  return there;
}

route::route(core::time_point until, std::uint64_t seed) noexcept
    : until_{until}, pace_{not_now_pause, seed} {}

route::step route::pause(core::time_point now) noexcept {
  hops_ = 0;
  const auto again = core::after(now, pace_.next());
  if (again >= until_) return {step::verb::give_up, {}, {}};
  return {step::verb::pause, {}, again};
}

route::step route::on_redirection(const redirection& said, core::time_point now) {
  if (said.what == redirection::kind::not_now || ++hops_ > hops_max) return pause(now);
  return {said.what == redirection::kind::moved ? step::verb::send : step::verb::send_asking,
          said.to,
          {}};
}

route::step route::on_unreachable(core::time_point now) noexcept {
  if (now >= until_ || looks_++ >= looks_max) return {step::verb::give_up, {}, {}};
  return {step::verb::look_anew, {}, {}};
}

}  // namespace holdfast::stores::redis
