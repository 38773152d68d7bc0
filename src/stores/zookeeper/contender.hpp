// One attempt at a lock, as its node in the lock's queue.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "stores/store.hpp"
#include "stores/zookeeper/connection.hpp"
#include "stores/zookeeper/queue_nodes.hpp"
#include "stores/zookeeper/turn.hpp"

namespace holdfast::stores::zookeeper {

// Thread-safe. What it is asked for goes on, on the library's thread, for as long as that takes,
// also when nobody waits for it any more: a node that nobody removes would hold the lock for as
// long as the session lives. One thing is under way at a time.
class contender : public std::enable_shared_from_this<contender> {
 public:
  struct place {
    std::string path{};  // of the lock
    node_kind kind = node_kind::mutex;
  };
  // How often a node may be removed under our hands before an ask gives up.
  static constexpr int rounds_max = 20;
  // A waiter's net under a watch that says nothing.
  static constexpr core::duration look_again = std::chrono::seconds{5};

  contender(std::shared_ptr<connection> on, place where, const core::owner_id& id,
            attempt_spec what)
      : connection_{std::move(on)}, place_{std::move(where)}, id_{id}, spec_{std::move(what)} {}
  // Of an attempt that was made elsewhere: it may have a node.
  [[nodiscard]] static std::shared_ptr<contender> made_elsewhere(std::shared_ptr<connection> on,
                                                                 place where,
                                                                 const core::owner_id& id,
                                                                 core::duration ttl);

  using on_answer = std::function<void(result<core::answer>)>;
  using on_removal = std::function<void(result<removal>)>;
  using on_renewal = std::function<void(result<renewal>)>;
  // Each function is called once; of several that ask for the same, the latest.
  void ask(on_answer done);
  // For good.
  void leave(on_removal done);
  // Makes what it holds this session's, if it was another's, and a reader's, if it is to be: in the
  // same place of the queue, with the same token, which is `token` unless that is zero.
  enum class as : bool { it_is, reader };
  void replace(as what, fencing_token token, on_renewal done);

  [[nodiscard]] turn& its_turn() noexcept { return *turn_; }
  [[nodiscard]] const core::owner_id& id() const noexcept { return id_; }

  // While it holds the lock.
  struct holding {
    std::shared_ptr<session> in{};
    std::string path{};
    fencing_token token{};
  };
  [[nodiscard]] holding held() const;
  // False: nothing was sent that may have created a node.
  [[nodiscard]] bool may_have_node() const;

 private:
  using children = std::vector<std::string>;
  enum class goal : std::uint8_t { ask, leave, replace };

  void step();
  void with(const std::shared_ptr<session>& in);
  void finish(result<core::answer> got);
  void finish(result<removal> got);
  void finish(result<renewal> got);
  template <class Done, class Got>
  void finish_with(Done contender::*done, Got got);
  void fail_with(failure why);

  // contender_asking.cpp
  void create();
  void create_and_look();
  struct creation;
  void created(const creation& got);
  void make_parents();
  void look();
  void decide(const children& all);
  void grant();
  void meet(const std::vector<contender_node>& queue, const standing& where);
  void met(int rc, const std::string& data, const node_stat& of);
  void again();

  // contender_finding.cpp
  void find();
  void found(const children& all);
  void take_found(const children& all, const contender_node& mine);
  void remove();
  void removed(int rc);
  void say_who_has_it();
  void move(const children& all, const contender_node& old);
  void moved(const contender_node& old, const std::string& data, const node_stat& of);

  void set_node(std::string name, fencing_token token);
  void no_node();
  [[nodiscard]] std::string path_of(std::string_view node) const;
  [[nodiscard]] std::string data(fencing_token token) const;

  const std::shared_ptr<connection> connection_;
  const place place_;
  const core::owner_id id_;
  const attempt_spec spec_;
  const std::shared_ptr<turn> turn_ = std::make_shared<turn>();

  mutable std::mutex m_;
  // Protected by m_.
  bool under_way_ = false;
  bool leaving_ = false;
  on_answer ask_done_;
  on_removal leave_done_;
  on_renewal replace_done_;
  // Changed by what is under way only, with m_ held.
  std::shared_ptr<session> session_;
  std::string node_;  // empty: none that is known of
  fencing_token token_;
  bool may_have_node_ = false;  // a creation is not answered
  // Of what is under way, and for nothing else.
  goal goal_ = goal::ask;
  int rounds_ = 0;
  std::string watched_;
  bool removal_unanswered_ = false;
  bool removed_one_ = false;
  as kind_wanted_ = as::it_is;
  fencing_token token_wanted_;
};

}  // namespace holdfast::stores::zookeeper
