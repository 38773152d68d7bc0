// Lock names as paths of nodes, and back.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <holdfast/result.hpp>

namespace holdfast::stores::zookeeper {

// A name is the path below the chroot, as a Curator user would write it: orders/42 is /orders/42.
// Bytes that ZooKeeper takes in no path (control characters, what is not ASCII, empty and dotted
// components) and % are written %XX. errc::invalid_argument: a component looks like a contender.
[[nodiscard]] result<std::string> path_of(std::string_view chroot, std::string_view name);
[[nodiscard]] std::string name_of(std::string_view chroot, std::string_view path);

// /a, /a/b and /a/b/c of /a/b/c.
[[nodiscard]] std::vector<std::string> ancestry(std::string_view path);

}  // namespace holdfast::stores::zookeeper
