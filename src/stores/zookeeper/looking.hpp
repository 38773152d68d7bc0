// Who holds what, for people who look; and taking a lock away.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <holdfast/status.hpp>

#include "stores/zookeeper/connection.hpp"

namespace holdfast::stores::zookeeper {

// Nodes below the chroot that a list() walks through.
inline constexpr std::size_t nodes_walked_max = 10'000;

void look_at_lock(const std::shared_ptr<connection>& on, const std::string& name,
                  const std::string& path, std::function<void(result<lock_status>)> done);

// Of those who hold it, the one with this token.
void break_lock(const std::shared_ptr<connection>& on, const std::string& path, fencing_token token,
                std::function<void(result<void>)> done);

// The paths of locks below the chroot that somebody contends for.
void find_locks(const std::shared_ptr<connection>& on, const std::string& chroot,
                std::function<void(result<std::vector<std::string>>)> done);

}  // namespace holdfast::stores::zookeeper
