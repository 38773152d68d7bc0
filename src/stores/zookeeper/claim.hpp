// What one attempt has in ZooKeeper, or wants: its nodes, whatever the kind of the lock.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "stores/store.hpp"
#include "stores/zookeeper/session.hpp"
#include "stores/zookeeper/turn.hpp"

namespace holdfast::stores::zookeeper {

// Thread-safe. What it is asked for goes on, on the library's thread, for as long as that takes,
// also when nobody waits for it any more: a node that nobody removes would hold the lock for as
// long as the session lives. One thing is under way at a time.
class claim {
 public:
  using on_answer = std::function<void(result<core::answer>)>;
  using on_removal = std::function<void(result<removal>)>;
  using on_renewal = std::function<void(result<renewal>)>;

  claim() = default;
  claim(const claim&) = delete;
  claim& operator=(const claim&) = delete;
  virtual ~claim() = default;

  [[nodiscard]] virtual const core::owner_id& id() const noexcept = 0;
  // When to ask again.
  [[nodiscard]] virtual turn& its_turn() noexcept = 0;

  // Each function is called once; of several that ask for the same, the latest.
  virtual void ask(on_answer done) = 0;
  // For good.
  virtual void leave(on_removal done) = 0;
  // Makes what it holds this session's, if it was another's, and a reader's, if it is to be: in the
  // same place of the queue, with the same token, which is `token` unless that is zero.
  enum class as : bool { it_is, reader };
  virtual void replace(as what, fencing_token token, on_renewal done) = 0;

  // While it holds the lock.
  struct holding {
    std::shared_ptr<session> in{};
    std::vector<std::string> paths{};
    fencing_token token{};
    core::duration ttl{};  // that was asked for
  };
  [[nodiscard]] virtual holding held() const = 0;
  // False: nothing was sent that may have created a node.
  [[nodiscard]] virtual bool may_have_node() const = 0;
};

}  // namespace holdfast::stores::zookeeper
