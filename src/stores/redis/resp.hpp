// Commands as bytes, replies as values.
//
// The reader is our own: a parser from another library would be found by name when the process
// starts, and a process may hold several, of different versions (docs/decisions/0024).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::stores::redis {

enum class reply_kind { nothing, integer, text, status, error, array, push };

// What a server answered. RESP3 is read as what RESP2 says in its place: a map or a set is an
// array, a truth value an integer, a fraction a text. Only a push has a kind of its own.
struct reply_value {
  reply_kind type = reply_kind::nothing;
  long long integer = 0;
  std::string text{};  // of a text, a status or an error
  std::vector<reply_value> items{};
};
using reply = std::unique_ptr<const reply_value>;

[[nodiscard]] inline std::string_view text_of(const reply_value& r) noexcept { return r.text; }

// The elements of an array or a push, as pointers into it; none of anything else.
class reply_elements {
 public:
  class iterator {
   public:
    explicit iterator(const reply_value* at) noexcept : at_{at} {}
    const reply_value* operator*() const noexcept { return at_; }
    iterator& operator++() noexcept {
      ++at_;
      return *this;
    }
    bool operator==(const iterator&) const = default;

   private:
    const reply_value* at_;
  };

  reply_elements(const reply_value* first, std::size_t count) noexcept
      : first_{first}, count_{count} {}
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] const reply_value* operator[](std::size_t i) const noexcept { return first_ + i; }
  [[nodiscard]] reply_elements subspan(std::size_t from, std::size_t count) const noexcept {
    return {first_ + from, count};
  }
  [[nodiscard]] iterator begin() const noexcept { return iterator{first_}; }
  [[nodiscard]] iterator end() const noexcept { return iterator{first_ + count_}; }

 private:
  const reply_value* first_;
  std::size_t count_;
};
[[nodiscard]] inline reply_elements elements_of(const reply_value& r) noexcept {
  return {r.items.data(), r.items.size()};
}

// Turns the bytes of a connection into replies, however they are cut. Not thread-safe.
// Memory grows with the bytes that have come, never with the sizes that a server announces.
class reply_reader {
 public:
  // Arrays within arrays. The deepest reply that Holdfast asks for has four.
  static constexpr std::size_t depth_max = 16;
  // A line: a status, an error, or the head of what follows.
  static constexpr std::size_t line_bytes_max = std::size_t{64} * 1024;
  // Elements in one reply, over all its arrays. A Redlock node's record has 2 x 16,384 at most.
  static constexpr std::size_t elements_max = std::size_t{256} * 1024;
  // One reply, and therefore one text.
  static constexpr std::size_t reply_bytes_max = std::size_t{64} * 1024 * 1024;

  void feed(std::string_view bytes);
  // The next reply that is complete. Nothing: more bytes are needed, or trouble() says why not.
  [[nodiscard]] reply next();
  // Empty, or why nothing more can be read. That is final: where the next reply begins is unknown.
  [[nodiscard]] std::string_view trouble() const noexcept { return trouble_; }
  // True if everything that was fed has been given out.
  [[nodiscard]] bool between_replies() const noexcept {
    return !root_ && at_ == buffer_.size() && trouble_.empty();
  }

 private:
  struct open_array {
    reply_value* into;  // stays where it is: what holds it does not grow before it is complete
    std::size_t missing;
    bool is_attribute;  // comes before a value and is read over
  };

  // These say whether they got as far as they could: false asks for more bytes, or means trouble.
  [[nodiscard]] bool read_value(reply_value& to);
  [[nodiscard]] bool read_text(reply_value& to);
  [[nodiscard]] bool open(reply_value& to, char mark, std::string_view count);
  [[nodiscard]] bool refuse(std::string_view why);
  [[nodiscard]] std::optional<std::string_view> line();
  [[nodiscard]] reply finish();

  std::string buffer_;
  std::size_t at_ = 0;       // read so far
  std::size_t scanned_ = 0;  // no line ends between at_ and here
  std::string_view trouble_;

  // Of the reply that is being read.
  std::unique_ptr<reply_value> root_;
  reply_value* pending_ = nullptr;  // what the next bytes belong to
  std::vector<open_array> open_;
  std::size_t bytes_ = 0;
  std::size_t elements_ = 0;
  std::optional<std::size_t> text_bytes_;  // the head of a text was read, and this much follows
  char text_mark_ = 0;
};

// One argument of a command, as it is sent.
[[nodiscard]] std::string as_argument(std::string_view text);

// Builds one command.
class command {
 public:
  explicit command(std::size_t arguments) { head('*', arguments); }
  command& arg(std::string_view text) {
    head('$', text.size());
    bytes_ += text;
    bytes_ += "\r\n";
    return *this;
  }
  command& arg(long long number) { return arg(std::string_view{std::to_string(number)}); }
  [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }

 private:
  void head(char kind, std::size_t count) {
    bytes_ += kind;
    bytes_ += std::to_string(count);
    bytes_ += "\r\n";
  }
  std::string bytes_;
};

}  // namespace holdfast::stores::redis
