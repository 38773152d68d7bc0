#include <utility>

#include <holdfast/error.hpp>

namespace holdfast {

namespace {

condition condition_of(errc code) noexcept {
  switch (code) {
    case errc::timed_out:
    case errc::stopped:
    case errc::store_unreachable:
    case errc::store_loading:
    case errc::store_busy:
    case errc::out_of_memory:
    case errc::read_only:
    case errc::overloaded:
      return condition::try_again;
    case errc::lease_lost:
      return condition::lease_lost;
    case errc::outcome_unknown:
      return condition::outcome_unknown;
    case errc::invalid_argument:
    case errc::would_deadlock:
    case errc::forked:
      return condition::misuse;
    case errc::not_authenticated:
    case errc::not_permitted:
    case errc::not_trusted:
    case errc::wrong_type:
    case errc::moved:
    case errc::incompatible:
    case errc::store_refused:
    case errc::store_missing:
    case errc::unsafe_folder:
    case errc::not_held:
    case errc::unsupported:
      break;
  }
  return condition::give_up;
}

const char* message_of(errc code) noexcept {
  switch (code) {
    case errc::timed_out:
      return "the lock was not free in time";
    case errc::stopped:
      return "the wait was stopped";
    case errc::lease_lost:
      return "the lease is lost";
    case errc::outcome_unknown:
      return "the outcome is not known";
    case errc::store_unreachable:
      return "the store cannot be reached";
    case errc::store_loading:
      return "the store is starting up";
    case errc::store_busy:
      return "the store is busy";
    case errc::out_of_memory:
      return "the store is out of memory";
    case errc::read_only:
      return "the store refuses writes";
    case errc::not_authenticated:
      return "the store refused the login";
    case errc::not_permitted:
      return "the store's access rules forbid it";
    case errc::wrong_type:
      return "the lock's key holds something else";
    case errc::moved:
      return "the key lives on another node";
    case errc::incompatible:
      return "not a store this version can use";
    case errc::store_refused:
      return "the store answered with an error";
    case errc::store_missing:
      return "redis-server is not installed";
    case errc::unsafe_folder:
      return "the folder is not safe to use";
    case errc::overloaded:
      return "a limit was reached";
    case errc::not_held:
      return "the lock is not held with that token";
    case errc::invalid_argument:
      return "invalid argument";
    case errc::would_deadlock:
      return "this thread holds the lock already";
    case errc::unsupported:
      return "this store has no locks of that kind";
    case errc::forked:
      return "the handle was made before fork()";
    case errc::not_trusted:
      return "a certificate is refused";
  }
  return "unknown error";
}

class holdfast_category final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "holdfast"; }
  [[nodiscard]] std::string message(int code) const override {
    return message_of(static_cast<errc>(code));
  }
  [[nodiscard]] std::error_condition default_error_condition(int code) const noexcept override {
    return make_error_condition(condition_of(static_cast<errc>(code)));
  }
};

class holdfast_conditions final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "holdfast condition"; }
  [[nodiscard]] std::string message(int code) const override {
    switch (static_cast<condition>(code)) {
      case condition::try_again:
        return "try again";
      case condition::give_up:
        return "give up: something must be changed first";
      case condition::lease_lost:
        return "the lease is lost: stop";
      case condition::outcome_unknown:
        return "the outcome is not known";
      case condition::misuse:
        return "a bug in the calling program";
    }
    return "unknown condition";
  }
};

}  // namespace

const std::error_category& error_category() noexcept {
  static const holdfast_category category;
  return category;
}

const std::error_category& condition_category() noexcept {
  static const holdfast_conditions category;
  return category;
}

std::error_code make_error_code(errc code) noexcept {
  return {static_cast<int>(code), error_category()};
}

std::error_condition make_error_condition(condition c) noexcept {
  return {static_cast<int>(c), condition_category()};
}

error::error(failure why)
    : std::system_error{why.code},
      message_{std::move(why.message)},
      nodes_{std::move(why.nodes)},
      holder_{std::move(why.holder)} {}

error::~error() = default;

const char* error::what() const noexcept {
  return message_.empty() ? std::system_error::what() : message_.c_str();
}

}  // namespace holdfast
