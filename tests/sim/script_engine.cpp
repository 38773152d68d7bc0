#include "sim/script_engine.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <stdexcept>

// Debian's liblua5.1-c++ is compiled as C++: errors are exceptions, so that destructors run.
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

namespace holdfast::sim {

namespace {

constexpr std::size_t words_max = 64;  // in one call of ours; a longer one is a mistake
constexpr int depth_max = 16;          // of a table that a script returns

// The server that the script runs on, while it does.
struct running {
  keyspace* data;
  surroundings* around;
};
// Looked up in the registry it would cost as much as the command.
thread_local running* now_running = nullptr;

std::string_view text_at(lua_State* lua, int index) {
  std::size_t length = 0;
  const char* text = lua_tolstring(lua, index, &length);
  return {text, length};
}

void push_text(lua_State* lua, std::string_view text) {
  lua_pushlstring(lua, text.data(), text.size());
}

void push_field(lua_State* lua, const char* name, std::string_view text) {
  lua_createtable(lua, 0, 1);
  push_text(lua, text);
  lua_setfield(lua, -2, name);
}

void push_reply(lua_State* lua, const reply& what) {
  switch (what.type) {
    case reply::kind::nil:
      lua_pushboolean(lua, 0);
      return;
    case reply::kind::integer:
      lua_pushnumber(lua, static_cast<lua_Number>(what.integer));
      return;
    case reply::kind::text:
      push_text(lua, what.text);
      return;
    case reply::kind::status:
      push_field(lua, "ok", what.text);
      return;
    case reply::kind::error:
      push_field(lua, "err", what.text);
      return;
    case reply::kind::array:
      break;
  }
  lua_createtable(lua, static_cast<int>(what.items.size()), 0);
  int index = 0;
  for (const auto& item : what.items) {
    push_reply(lua, item);
    lua_rawseti(lua, -2, ++index);
  }
}

std::optional<std::string> string_field(lua_State* lua, int index, const char* name) {
  lua_pushstring(lua, name);
  lua_rawget(lua, index);
  std::optional<std::string> text;
  if (lua_type(lua, -1) == LUA_TSTRING) text = text_at(lua, -1);
  lua_pop(lua, 1);
  return text;
}

// What a script's value is to its client.
reply read_reply(lua_State* lua, int index, int depth = 0) {
  switch (lua_type(lua, index)) {
    case LUA_TSTRING:
      return reply::of(std::string{text_at(lua, index)});
    case LUA_TBOOLEAN:
      return lua_toboolean(lua, index) != 0 ? reply::of(1) : reply::none();
    case LUA_TNUMBER:
      return reply::of(static_cast<std::int64_t>(lua_tonumber(lua, index)));
    case LUA_TTABLE:
      break;
    default:
      return reply::none();
  }
  if (depth == depth_max) return reply::error("ERR reached lua stack limit");
  if (auto text = string_field(lua, index, "err")) return reply::error(std::move(*text));
  if (auto text = string_field(lua, index, "ok")) {
    return {reply::kind::status, 0, std::move(*text), {}};
  }
  std::vector<reply> items;
  for (int i = 1;; ++i) {
    lua_rawgeti(lua, index, i);
    if (lua_isnil(lua, -1)) break;
    items.push_back(read_reply(lua, lua_gettop(lua), depth + 1));
    lua_pop(lua, 1);
  }
  lua_pop(lua, 1);
  return reply::list(std::move(items));
}

using digits = std::array<char, 32>;
constexpr lua_Number whole_max = 9007199254740992.0;  // 2^53: all below are exact, of 16 digits

// As "%.17g" has it. Nearly all are whole, and it takes ten times as long.
std::string_view digits_of(lua_Number number, digits& into) {
  if (std::fabs(number) < whole_max && number == std::trunc(number) &&
      (number != 0 || !std::signbit(number))) {
    const auto end =
        std::to_chars(into.data(), into.data() + into.size(), static_cast<std::int64_t>(number));
    return {into.data(), static_cast<std::size_t>(end.ptr - into.data())};
  }
  const int length = std::snprintf(into.data(), into.size(), "%.17g", number);
  return {into.data(), static_cast<std::size_t>(length)};
}

reply called(lua_State* lua) {
  const int count = lua_gettop(lua);
  if (count == 0) {
    return reply::error("ERR Please specify at least one argument for this redis lib call");
  }
  if (static_cast<std::size_t>(count) > words_max) return reply::error("ERR too many words");
  // Kept: to clear them would take as long as the command.
  thread_local std::array<std::string_view, words_max> words;
  thread_local std::array<digits, words_max> numbers;
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (lua_type(lua, i + 1) == LUA_TNUMBER) {
      words[at] = digits_of(lua_tonumber(lua, i + 1), numbers[at]);
    } else if (lua_type(lua, i + 1) == LUA_TSTRING) {
      words[at] = text_at(lua, i + 1);
    } else {
      return reply::error("ERR Lua redis lib command arguments must be strings or integers");
    }
  }
  return execute(*now_running->data, *now_running->around,
                 {words.data(), static_cast<std::size_t>(count)});
}

int redis_call(lua_State* lua) {
  const auto answer = called(lua);
  push_reply(lua, answer);
  return answer.is_error() ? lua_error(lua) : 1;
}

int redis_pcall(lua_State* lua) {
  push_reply(lua, called(lua));
  return 1;
}

// "-CODE message" or "CODE message"; without a blank it is no code, and ERR is put before it.
int redis_error_reply(lua_State* lua) {
  auto text = std::string{text_at(lua, 1)};
  if (!text.empty() && text.front() == '-') text.erase(0, 1);
  if (text.find(' ') == std::string::npos) text.insert(0, "ERR ");
  push_field(lua, "err", text);
  return 1;
}

int redis_status_reply(lua_State* lua) {
  push_field(lua, "ok", text_at(lua, 1));
  return 1;
}

// Lua's own, which is the upvalue, is strtod. Nearly all are counters, and it takes ten times as
// long.
int to_number(lua_State* lua) {
  if (lua_gettop(lua) == 1 && lua_type(lua, 1) == LUA_TSTRING) {
    const auto text = text_at(lua, 1);
    std::uint64_t whole = 0;
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), whole);
    if (ec == std::errc{} && end == text.data() + text.size() &&
        static_cast<lua_Number>(whole) < whole_max) {
      lua_pushnumber(lua, static_cast<lua_Number>(whole));
      return 1;
    }
  }
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_insert(lua, 1);
  lua_call(lua, lua_gettop(lua) - 1, 1);
  return 1;
}

int no_such_global(lua_State* lua) {
  return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'",
                    lua_tostring(lua, 2));
}

int no_new_global(lua_State* lua) { return luaL_error(lua, "Attempt to modify a readonly table"); }

void open(lua_State* lua, const char* name, lua_CFunction library) {
  lua_pushcfunction(lua, library);
  lua_pushstring(lua, name);
  lua_call(lua, 1, 0);
}

}  // namespace

void script_engine::close_state::operator()(lua_State* state) const noexcept { lua_close(state); }

script_engine::script_engine() : state_{luaL_newstate()} {
  auto* lua = state_.get();
  open(lua, "", luaopen_base);
  open(lua, LUA_TABLIBNAME, luaopen_table);
  open(lua, LUA_STRLIBNAME, luaopen_string);
  open(lua, LUA_MATHLIBNAME, luaopen_math);
  // What would make a run differ from its replay is not there, as in Redis.
  for (const auto* name : {"dofile", "loadfile", "print", "collectgarbage"}) {
    lua_pushnil(lua);
    lua_setglobal(lua, name);
  }
  lua_getglobal(lua, "tonumber");
  lua_pushcclosure(lua, to_number, 1);
  lua_setglobal(lua, "tonumber");
  const std::array<luaL_Reg, 5> functions{{{"call", redis_call},
                                           {"pcall", redis_pcall},
                                           {"error_reply", redis_error_reply},
                                           {"status_reply", redis_status_reply},
                                           {nullptr, nullptr}}};
  luaL_register(lua, "redis", functions.data());
  lua_pop(lua, 1);
  for (auto [name, into] : {std::pair{"KEYS", &keys_}, std::pair{"ARGV", &args_}}) {
    lua_createtable(lua, words_max, 0);
    lua_pushvalue(lua, -1);
    into->table = luaL_ref(lua, LUA_REGISTRYINDEX);
    lua_setglobal(lua, name);
  }
  lua_createtable(lua, 0, 2);
  lua_pushcfunction(lua, no_such_global);
  lua_setfield(lua, -2, "__index");
  lua_pushcfunction(lua, no_new_global);
  lua_setfield(lua, -2, "__newindex");
  lua_setmetatable(lua, LUA_GLOBALSINDEX);
}

script_engine::~script_engine() = default;

loaded_script script_engine::load(std::string_view source) {
  if (const auto found = known_.find(source); found != known_.end()) return {found->second};
  auto* lua = state_.get();
  if (luaL_loadbuffer(lua, source.data(), source.size(), "@user_script") != 0) {
    const std::string why{text_at(lua, -1)};
    lua_pop(lua, 1);
    throw std::runtime_error{"the script does not compile: " + why};
  }
  const int at = luaL_ref(lua, LUA_REGISTRYINDEX);
  known_.emplace(source, at);
  return {at};
}

// Its table is kept: two new ones for each script would be a tenth of the time.
void script_engine::fill(array& into, std::span<const std::string_view> texts) {
  auto* lua = state_.get();
  lua_rawgeti(lua, LUA_REGISTRYINDEX, into.table);
  int index = 0;
  for (const auto text : texts) {
    push_text(lua, text);
    lua_rawseti(lua, -2, ++index);
  }
  for (; into.size > texts.size(); --into.size) {
    lua_pushnil(lua);
    lua_rawseti(lua, -2, static_cast<int>(into.size));
  }
  into.size = texts.size();
  lua_pop(lua, 1);
}

reply script_engine::run(loaded_script which, std::span<const std::string_view> keys,
                         std::span<const std::string_view> args, keyspace& data,
                         surroundings& around) {
  auto* lua = state_.get();
  running on{&data, &around};
  now_running = &on;
  fill(keys_, keys);
  fill(args_, args);
  lua_rawgeti(lua, LUA_REGISTRYINDEX, which.at);
  const bool failed = lua_pcall(lua, 0, 1, 0) != 0;
  auto answer = read_reply(lua, lua_gettop(lua));
  lua_settop(lua, 0);
  // A mistake in Lua itself: Redis adds where it happened, which nobody reads.
  if (failed && !answer.is_error()) answer = reply::error("ERR " + answer.text);
  return answer;
}

}  // namespace holdfast::sim
