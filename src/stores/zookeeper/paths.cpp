#include "stores/zookeeper/paths.hpp"

#include <algorithm>
#include <charconv>

#include "core/fail.hpp"
#include "stores/zookeeper/queue_nodes.hpp"

namespace holdfast::stores::zookeeper {

namespace {

void append_hex(std::string& to, char byte) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  const auto value = static_cast<unsigned char>(byte);
  to += '%';
  to += digits[value / 16];
  to += digits[value % 16];
}

std::string component_of(std::string_view text) {
  // A component of its own that decodes to nothing: two slashes in a row, or one at the end.
  if (text.empty()) return "%";
  const bool dots = text == "." || text == "..";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f || c == '%' || (dots && out.empty())) {
      append_hex(out, c);
    } else {
      out += c;
    }
  }
  return out;
}

std::string decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    const auto digits = text.substr(i + 1, 2);
    const auto* end = digits.data() + digits.size();
    if (text[i] != '%' || digits.size() != 2 ||
        std::from_chars(digits.data(), end, byte, 16).ptr != end) {
      if (text[i] != '%') out += text[i];
      continue;
    }
    out += static_cast<char>(byte);
    i += 2;
  }
  return out;
}

}  // namespace

result<std::string> path_of(std::string_view chroot, std::string_view name) {
  std::string path{chroot};
  while (true) {
    const auto slash = name.find('/');
    const auto part = name.substr(0, slash);
    if (parse_node(part) || (chroot.empty() && path.empty() && part == "zookeeper")) {
      return stores::fail(errc::invalid_argument,
                          "ZooKeeper or its lock clients use \"" + escape(part) +
                              "\" for themselves: choose another name for the lock");
    }
    path += '/';
    path += component_of(part);
    if (slash == std::string_view::npos) return path;
    name.remove_prefix(slash + 1);
  }
}

std::string name_of(std::string_view chroot, std::string_view path) {
  path.remove_prefix(std::min(path.size(), chroot.size() + 1));
  std::string name;
  while (true) {
    const auto slash = path.find('/');
    name += decoded(path.substr(0, slash));
    if (slash == std::string_view::npos) return name;
    name += '/';
    path.remove_prefix(slash + 1);
  }
}

std::vector<std::string> ancestry(std::string_view path) {
  std::vector<std::string> all;
  for (auto slash = path.find('/', 1); slash != std::string_view::npos;
       slash = path.find('/', slash + 1)) {
    all.emplace_back(path.substr(0, slash));
  }
  all.emplace_back(path);
  return all;
}

}  // namespace holdfast::stores::zookeeper
