#include "stores/redis/script_call.hpp"

#include <utility>

#include "stores/redis/resp.hpp"

namespace holdfast::stores::redis {

script_call::script_call(const scripts::script& which, std::span<const std::string_view> keys,
                         std::span<const std::string_view> args, std::size_t to_come)
    : which_{&which}, arguments_{3 + keys.size() + args.size() + to_come} {
  command text{arguments_};
  text.arg("EVALSHA").arg(which.sha1);
  tail_at_ = text.bytes().size();
  text.arg(static_cast<long long>(keys.size()));
  for (const auto key : keys) {
    text.arg(key);
    if (key_at_ > 0) continue;
    constexpr std::size_t line_end = 2;
    key_at_ = text.bytes().size() - line_end - key.size();
    key_bytes_ = key.size();
  }
  for (const auto arg : args)
    text.arg(arg);
  by_hash_ = std::move(text).bytes();
}

std::string script_call::by_source() const {
  command text{arguments_};
  text.arg("EVAL").arg(which_->source);
  return text.bytes() + by_hash_.substr(tail_at_);
}

}  // namespace holdfast::stores::redis
