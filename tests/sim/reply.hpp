// What a simulated Redis answers.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::sim {

struct reply {
  enum class kind { nil, integer, text, status, error, array };
  kind type = kind::nil;
  std::int64_t integer = 0;
  std::string text{};  // of a text, a status or an error
  std::vector<reply> items{};

  [[nodiscard]] static reply none() { return {}; }
  [[nodiscard]] static reply of(std::int64_t number) { return {kind::integer, number, {}, {}}; }
  [[nodiscard]] static reply of(std::string text) { return {kind::text, 0, std::move(text), {}}; }
  [[nodiscard]] static reply ok() { return {kind::status, 0, "OK", {}}; }
  [[nodiscard]] static reply error(std::string text) {
    return {kind::error, 0, std::move(text), {}};
  }
  [[nodiscard]] static reply list(std::vector<reply> items) {
    return {kind::array, 0, {}, std::move(items)};
  }
  [[nodiscard]] bool is_error() const noexcept { return type == kind::error; }
  // As a person would read it.
  [[nodiscard]] std::string shown() const;
};

}  // namespace holdfast::sim
