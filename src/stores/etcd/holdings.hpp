// What this client holds: under which key and lease, and whether etcd still has it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "runtime/background.hpp"
#include "stores/etcd/cluster.hpp"
#include "stores/etcd/messages.hpp"
#include "stores/store.hpp"

namespace holdfast::stores::etcd {

struct holding {
  std::string key;
  revision created = 0;  // the token
  lease_id lease = 0;
};

// Thread-safe. The keys of what is held for more than a moment are watched, all by one stream, so
// that a key that goes is told at once: also one that etcd takes away wrongly, as servers before
// 3.4.31 and 3.5.13 could when they had lost the lead (etcd-io/etcd#15247). Renewal looks as well,
// so a watch that hears nothing costs time only.
class holdings : public std::enable_shared_from_this<holdings> {
 public:
  // Keys beyond it are looked at by renewal only.
  static constexpr std::size_t watched_max = 1000;

  holdings(cluster& at, std::shared_ptr<runtime::background> background)
      : cluster_{at}, background_{std::move(background)} {}
  holdings(const holdings&) = delete;
  holdings& operator=(const holdings&) = delete;
  ~holdings() = default;

  void on_events(store_events tell);

  void add(const core::owner_id& id, holding what);
  // Given back, kept by another, or lost. Nothing if it is not held.
  std::optional<holding> remove(const core::owner_id& id);
  [[nodiscard]] std::optional<holding> find(const core::owner_id& id) const;

  // All that are kept by this lease are lost with it.
  void lose_all_under(lease_id lease);

 private:
  using clock_and_id = std::pair<core::time_point, core::owner_id>;

  void look_later(core::duration pause);
  void look();
  void watch(std::vector<holding> keys);
  void on_line(std::uint64_t generation, std::string_view line);
  void on_end(std::uint64_t generation);
  void start_again(std::uint64_t generation, core::duration pause);
  void lose(const std::string& key, loss why);

  struct known {
    holding what;
    core::time_point since;
  };

  cluster& cluster_;
  const std::shared_ptr<runtime::background> background_;
  store_events tell_;
  mutable std::mutex m_;
  // Protected by m_.
  std::map<core::owner_id, known> held_;
  std::map<std::string, revision> watched_;
  std::uint64_t stream_ = 0;      // 0: none
  std::uint64_t generation_ = 0;  // of streams: what an older one says is not listened to
  bool will_look_ = false;
  bool from_now_ = false;     // the history that keys would be watched from is compacted
  bool missed_some_ = false;  // what became of them before the stream that is being opened
};

}  // namespace holdfast::stores::etcd
