// The nodes of a Redis cluster: who has which slot, and keeping that current.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/background.hpp"
#include "stores/delayed_task.hpp"
#include "stores/pause.hpp"
#include "stores/redis/cluster/slot_map.hpp"
#include "stores/redis/topology.hpp"

namespace holdfast::stores::redis {

// Thread-safe; must outlive what it was asked for.
//
// The map of slots is learnt from any node at the first request, and corrected by what nodes say:
// MOVED puts one slot right at once, and like every other sign of trouble (a node that cannot be
// reached, a reply that does not come, a connection that ends) has the whole map fetched anew.
// While locks are used or held it is also fetched now and then without a reason: a node that hangs
// gives no sign, and a connection on which nothing is asked hears of no promotion.
class cluster final : public topology {
 public:
  struct hooks {
    // Connections to one node, and an inbox there.
    std::function<std::shared_ptr<server_node>(const node_address&)> make_node;
    // A master was replaced: what it had granted last may be gone.
    std::function<void()> replaced;
    // What has to be there while work in the background uses the cluster. Called when there is a
    // first request, at the earliest.
    std::function<std::weak_ptr<const void>()> owner;
  };

  cluster(std::vector<node_address> seeds, hooks tell,
          std::shared_ptr<runtime::background> background);
  ~cluster() override;

  request_carrier& calls() noexcept override;
  request_carrier& renewals() noexcept override;
  std::shared_ptr<server_node> node_of(std::string_view key) override;
  unsigned group_of(std::string_view key) const noexcept override;
  nodes_list nodes() override;
  result<nodes_list> nodes_with_keys(core::time_point until) override;
  bool has_sharded_channels() const noexcept override { return sharded_; }
  void needed_for(core::duration ttl) override;
  void on_doubt() override { look_soon(); }
  void close() noexcept override;

 private:
  class carrier;
  class journey;
  class map_fetch;
  struct member {
    node_address at;
    std::shared_ptr<server_node> node;
  };
  // What is to be done without m_ after the map has changed.
  struct aftermath {
    std::vector<std::shared_ptr<server_node>> departed;
    std::vector<std::pair<std::shared_ptr<server_node>, std::vector<bool>>> lost_slots;
    bool replaced = false;
  };
  using lock = std::unique_lock<std::mutex>;
  using on_looked = std::function<void(result<void>)>;

  // Null: not known.
  [[nodiscard]] std::shared_ptr<server_node> node_of_slot(unsigned slot);
  [[nodiscard]] std::shared_ptr<server_node> node_at(const node_address& where);
  void moved(unsigned slot, const node_address& to);

  // Fetches the map, or waits for a fetch that is under way; done at once if one has just ended.
  void look_anew(core::time_point until, caller& by, on_looked done);
  void look_ended(result<slot_map> got, std::uint64_t epoch, const on_looked& done);
  void add_seeds(nodes_list& to);
  // In the background, a moment later, once for all who ask meanwhile.
  void look_soon();
  // False: another fetch is under way, so look again a moment later.
  [[nodiscard]] bool look_in_background();
  // There are requests: the map is kept current.
  void used();
  [[nodiscard]] bool check_age();
  // Under m_.
  [[nodiscard]] std::shared_ptr<server_node> find_or_make(const node_address& where);
  [[nodiscard]] nodes_list whom_to_ask() const;
  [[nodiscard]] aftermath adopt(slot_map fresh);

  void settle(aftermath what);

  const std::vector<node_address> seeds_;
  const hooks tell_;
  const std::string name_;  // for messages
  const std::shared_ptr<runtime::background> background_;
  const std::unique_ptr<carrier> calls_;
  const std::unique_ptr<carrier> renewals_;
  delayed_task looks_;
  delayed_task age_;
  std::atomic<bool> used_{false};
  std::atomic<bool> sharded_{false};

  std::mutex m_;
  // Protected by m_.
  slot_map map_;
  std::vector<member> members_;  // as map_.masters()
  std::vector<member> others_;   // asked for the map, and not in it so far
  std::uint64_t epoch_ = 0;
  const caller* fetching_ = nullptr;  // whose I/O the fetch is; null: none is under way
  core::time_point fetched_at_{};
  result<void> fetched_;
  std::vector<on_looked> also_;                        // more requests of the same caller
  std::vector<std::shared_ptr<pause>> until_fetched_;  // other callers
  core::time_point needed_until_{};
  bool closed_ = false;
};

}  // namespace holdfast::stores::redis
