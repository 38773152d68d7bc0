// One attempt at a lock, as its node in the lock's queue.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "stores/zookeeper/claim.hpp"
#include "stores/zookeeper/connection.hpp"
#include "stores/zookeeper/queue_nodes.hpp"

namespace holdfast::stores::zookeeper {

class contender final : public claim, public std::enable_shared_from_this<contender> {
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

  [[nodiscard]] const core::owner_id& id() const noexcept override { return id_; }
  [[nodiscard]] turn& its_turn() noexcept override { return *turn_; }
  void ask(on_answer done) override;
  void leave(on_removal done) override;
  void replace(as what, fencing_token token, on_renewal done) override;
  [[nodiscard]] holding held() const override;
  [[nodiscard]] bool may_have_node() const override;

  // For one who needs more than the place in the queue. Its turn comes when this node changes, too,
  // which has to be read with a watch.
  void watch(const std::shared_ptr<session>& in, const std::string& path);
  // Its node was removed with another change.
  void node_is_gone() { no_node(); }

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
