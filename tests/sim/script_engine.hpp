// Runs Lua scripts as Redis 7 does, with the interpreter that Redis has: Lua 5.1.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "sim/keyspace.hpp"

struct lua_State;

namespace holdfast::sim {

// A script that an engine has compiled.
struct loaded_script {
  int at = 0;
  friend bool operator==(loaded_script, loaded_script) = default;
};

// Not thread-safe. One engine serves any number of servers: a script keeps nothing between calls.
class script_engine {
 public:
  script_engine();
  script_engine(const script_engine&) = delete;
  script_engine& operator=(const script_engine&) = delete;
  ~script_engine();

  // Throws std::runtime_error if it does not compile. The same text is compiled once.
  [[nodiscard]] loaded_script load(std::string_view source);

  [[nodiscard]] reply run(loaded_script which, std::span<const std::string_view> keys,
                          std::span<const std::string_view> args, keyspace& data,
                          surroundings& around);

 private:
  struct close_state {
    void operator()(lua_State* state) const noexcept;
  };
  std::unique_ptr<lua_State, close_state> state_;
  std::map<std::string, int, std::less<>> known_;
  // What KEYS and ARGV are, for all scripts.
  struct array {
    int table = 0;
    std::size_t size = 0;
  };
  void fill(array& into, std::span<const std::string_view> texts);
  array keys_;
  array args_;
};

}  // namespace holdfast::sim
