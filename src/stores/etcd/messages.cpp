#include "stores/etcd/messages.hpp"

#include <array>
#include <charconv>

#include <nlohmann/json.hpp>

namespace holdfast::stores::etcd {

namespace {

using nlohmann::json;

constexpr std::string_view digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

json to_value(const read& what) {
  json all{{"key", to_base64(what.from)}};
  if (!what.to.empty()) all["range_end"] = to_base64(what.to);
  if (what.sorted != read::order::by_key) {
    all["sort_target"] = "CREATE";
    all["sort_order"] = what.sorted == read::order::oldest_first ? "ASCEND" : "DESCEND";
  }
  if (what.limit > 0) all["limit"] = std::to_string(what.limit);
  if (what.created_by > 0) all["max_create_revision"] = std::to_string(what.created_by);
  if (what.keys_only) all["keys_only"] = true;
  return all;
}

json to_value(const operation& what) {
  if (const auto* one = std::get_if<read>(&what)) return {{"request_range", to_value(*one)}};
  if (const auto* one = std::get_if<remove>(&what)) {
    return {{"request_delete_range", {{"key", to_base64(one->key)}}}};
  }
  const auto& one = std::get<put>(what);
  json all{{"key", to_base64(one.key)}, {"lease", std::to_string(one.lease)}};
  if (one.keeps_value) {
    all["ignore_value"] = true;
  } else {
    all["value"] = to_base64(one.value);
  }
  return {{"request_put", std::move(all)}};
}

json to_value(const condition& what) {
  json all{{"key", to_base64(what.key)},
           {"target", "CREATE"},
           {"result", what.is_more ? "GREATER" : "EQUAL"},
           {"create_revision", std::to_string(what.created)}};
  if (!what.to.empty()) all["range_end"] = to_base64(what.to);
  return all;
}

// The gateway writes 64-bit numbers as strings, and leaves out zeros.
std::int64_t number(const json& in, const char* name) {
  const auto at = in.find(name);
  if (at == in.end()) return 0;
  if (at->is_number_integer()) return at->get<std::int64_t>();
  if (!at->is_string()) return 0;
  const auto& text = at->get_ref<const std::string&>();
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string text(const json& in, const char* name) {
  const auto at = in.find(name);
  return at != in.end() && at->is_string() ? at->get<std::string>() : std::string{};
}

std::string bytes(const json& in, const char* name) {
  return from_base64(text(in, name)).value_or(std::string{});
}

bool flag(const json& in, const char* name) {
  const auto at = in.find(name);
  return at != in.end() && at->is_boolean() && at->get<bool>();
}

const json& part(const json& in, const char* name) {
  static const json none = json::object();
  const auto at = in.find(name);
  return at == in.end() ? none : *at;
}

found found_in(const json& answer) {
  found all;
  all.count = number(answer, "count");
  for (const auto& one : part(answer, "kvs")) {
    all.keys.push_back({bytes(one, "key"), bytes(one, "value"), number(one, "create_revision"),
                        number(one, "lease")});
  }
  return all;
}

tl::unexpected<failure> strange() {
  return fail(errc::incompatible,
              "the server's answer is not one of etcd's JSON gateway, version 3.4 or newer");
}

// Every answer of the gateway is one object.
std::optional<json> object(std::string_view text) {
  auto all = json::parse(text, nullptr, false);
  if (!all.is_object()) return std::nullopt;
  return all;
}

}  // namespace

std::string to_base64(std::string_view all) {
  std::string out;
  out.reserve((all.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < all.size(); i += 3) {
    std::uint32_t three = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      three = three << 8U | (i + j < all.size() ? static_cast<unsigned char>(all[i + j]) : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      const bool is_padding = i + j > all.size();
      out += is_padding ? '=' : digits[three >> (18U - 6U * j) & 63U];
    }
  }
  return out;
}

std::optional<std::string> from_base64(std::string_view from) {
  if (from.size() % 4 != 0) return std::nullopt;
  while (!from.empty() && from.back() == '=')
    from.remove_suffix(1);
  std::string out;
  std::uint32_t bits = 0;
  unsigned have = 0;
  for (const char c : from) {
    const auto at = digits.find(c);
    if (at == std::string_view::npos) return std::nullopt;
    bits = bits << 6U | static_cast<std::uint32_t>(at);
    have += 6;
    if (have < 8) continue;
    have -= 8;
    out += static_cast<char>(bits >> have & 0xffU);
  }
  return out;
}

std::string end_of_prefix(std::string_view prefix) {
  std::string end{prefix};
  while (!end.empty() && static_cast<unsigned char>(end.back()) == 0xff)
    end.pop_back();
  if (end.empty()) return std::string(1, '\0');  // as etcd has it: to the last key there is
  end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return end;
}

std::string to_json(const transaction& what) {
  json all = json::object();
  for (const auto& one : what.if_all)
    all["compare"].push_back(to_value(one));
  for (const auto& one : what.then)
    all["success"].push_back(to_value(one));
  for (const auto& one : what.otherwise)
    all["failure"].push_back(to_value(one));
  return all.dump();
}

std::string to_json(const read& what) { return to_value(what).dump(); }

std::string lease_grant_json(std::int64_t ttl_s) {
  return json{{"TTL", std::to_string(ttl_s)}}.dump();
}

std::string lease_json(lease_id id) { return json{{"ID", std::to_string(id)}}.dump(); }

std::string watch_json(std::string_view key, revision from, bool with_puts) {
  json what{{"key", to_base64(key)}, {"start_revision", std::to_string(from)}};
  if (!with_puts) what["filters"] = {"NOPUT"};
  return json{{"create_request", std::move(what)}}.dump();
}

std::string credentials_json(std::string_view user, std::string_view password) {
  // What is not UTF-8 cannot be a password of etcd's: it is refused there, not here.
  return json{{"name", user}, {"password", password}}.dump(-1, ' ', false,
                                                           json::error_handler_t::replace);
}

result<transaction_answer> read_transaction(std::string_view json_text) {
  const auto all = object(json_text);
  if (!all || !all->contains("header")) return strange();
  transaction_answer answer;
  answer.succeeded = flag(*all, "succeeded");
  answer.at = number(part(*all, "header"), "revision");
  for (const auto& one : part(*all, "responses"))
    answer.reads.push_back(found_in(part(one, "response_range")));
  return answer;
}

result<found> read_found(std::string_view json_text) {
  const auto all = object(json_text);
  if (!all || !all->contains("header")) return strange();
  return found_in(*all);
}

result<lease_answer> read_lease(std::string_view json_text) {
  const auto all = object(json_text);
  if (!all) return strange();
  // Keeping alive is a stream: what it says is in an object called result.
  const auto& answer = all->contains("result") ? part(*all, "result") : *all;
  if (!answer.contains("header")) return strange();
  return lease_answer{number(answer, "ID"), number(answer, "TTL")};
}

result<watch_answer> read_watch(std::string_view json_text) {
  const auto all = object(json_text);
  if (!all) return strange();
  if (all->contains("error")) return watch_answer{false, true, read_refusal(json_text).message, {}};
  const auto& said = part(*all, "result");
  watch_answer answer;
  answer.canceled = flag(said, "canceled");
  answer.created = flag(said, "created") && !answer.canceled;
  answer.why = text(said, "cancel_reason");
  for (const auto& one : part(said, "events"))
    answer.events.push_back({text(one, "type") == "DELETE", bytes(part(one, "kv"), "key")});
  return answer;
}

result<std::string> read_token(std::string_view json_text) {
  const auto all = object(json_text);
  auto token = all ? text(*all, "token") : std::string{};
  if (token.empty()) return strange();
  return token;
}

refusal read_refusal(std::string_view json_text) {
  const auto all = object(json_text);
  if (!all) return {};
  // Of a stream the error is an object in itself.
  const auto& said =
      part(*all, "error").is_object() && all->contains("error") ? part(*all, "error") : *all;
  auto message = text(said, "message");
  if (message.empty()) message = text(said, "error");
  auto code = number(said, "code");
  if (code == 0) code = number(said, "grpc_code");
  return {static_cast<int>(code), std::move(message)};
}

}  // namespace holdfast::stores::etcd
