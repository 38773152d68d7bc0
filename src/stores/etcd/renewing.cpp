#include "stores/etcd/renewing.hpp"

#include <map>
#include <optional>
#include <utility>

#include "core/fail.hpp"

namespace holdfast::stores::etcd {

namespace {

// One call of renew(). All that happens to it happens in turn with the caller.
class renewing : public std::enable_shared_from_this<renewing> {
 public:
  renewing(std::shared_ptr<services> of, std::vector<held> leases, core::time_point until,
           caller& by, store::on_renewals done)
      : of_{std::move(of)},
        leases_{std::move(leases)},
        answers_(leases_.size()),
        known_(leases_.size()),
        until_{until},
        by_{by},
        done_{std::move(done)} {}

  void begin() {
    left_ = 1;  // this function itself
    for (std::size_t i = 0; i < leases_.size(); ++i) {
      known_[i] = of_->held->find(leases_[i].id);
      // It was told to be lost, or is given back just now.
      if (!known_[i]) {
        answers_[i] = {false, loss::deleted, {}, {}, {}};
      } else if (of_->sessions.is_retired(known_[i]->lease)) {
        move(i);
      } else {
        sessions_[known_[i]->lease];
      }
    }
    for (auto& one : sessions_) {
      ++left_;
      of_->sessions.keep_alive(
          one.first, until_, by_,
          [self = shared_from_this(), &kept = one.second](result<session> got) {
            kept = std::move(got);
            self->one_is_over();
          });
    }
    one_is_over();
  }

 private:
  void move(std::size_t i) {
    ++left_;
    const auto& lease = leases_[i];
    lease.lock->extend(lease.id, lease.token, lease.ttl, until_, by_,
                       [self = shared_from_this(), i](result<renewal> got) {
                         if (got) self->answers_[i] = *got;
                         if (!got) self->failed_ = got.error();
                         self->known_[i].reset();
                         self->one_is_over();
                       });
  }

  void one_is_over() {
    if (--left_ == 0) look();
  }

  void look() {
    transaction what;
    std::vector<std::size_t> asked;
    for (std::size_t i = 0; i < leases_.size(); ++i) {
      if (!known_[i]) continue;
      const auto& kept = *sessions_[known_[i]->lease];
      if (kept) {
        asked.push_back(i);
        what.then.emplace_back(read{.from = known_[i]->key, .keys_only = true});
      } else if (kept.error().code == errc::lease_lost) {
        answers_[i] = {false, loss::session, {}, {}, {}};
        static_cast<void>(of_->held->remove(leases_[i].id));
      } else {
        failed_ = kept.error();
      }
    }
    for (const auto& [lease, kept] : sessions_)
      if (!*kept && kept->error().code == errc::lease_lost) of_->held->lose_all_under(lease);
    if (asked.empty()) return finish();
    of_->servers.call({"/v3/kv/txn", to_json(what), false}, until_, by_,
                      [self = shared_from_this(), asked](const result<answer>& got) {
                        self->looked(asked, got);
                      });
  }

  void looked(const std::vector<std::size_t>& asked, const result<answer>& got) {
    const auto said = got ? read_transaction(got->body) : fail(got.error());
    if (!said || said->reads.size() < asked.size()) {
      failed_ = said ? failure{errc::incompatible, "the answer lacks keys", {}} : said.error();
      return finish();
    }
    for (std::size_t n = 0; n < asked.size(); ++n) {
      const auto i = asked[n];
      const auto& keys = said->reads[n].keys;
      const auto& mine = *known_[i];
      const auto& kept = **sessions_[mine.lease];
      if (keys.empty()) {
        answers_[i] = {false, loss::deleted, {}, {}, {}};
      } else if (keys[0].created != mine.created || keys[0].lease != mine.lease) {
        answers_[i] = {false, loss::taken, {}, {}, {}};
      } else {
        answers_[i] = {true, loss::none, kept.ttl, kept.counted_from,
                       fencing_token{static_cast<std::uint64_t>(mine.created)}};
      }
      if (!answers_[i].renewed) static_cast<void>(of_->held->remove(leases_[i].id));
    }
    finish();
  }

  // Of those that nothing is known of, that is said: the others were answered.
  void finish() {
    const auto done = std::move(done_);
    bool any = false;
    for (const auto& one : answers_)
      any = any || one.renewed || one.why != loss::none;
    if (!any && failed_) return done(fail(*failed_));
    done(std::move(answers_));
  }

  const std::shared_ptr<services> of_;
  const std::vector<held> leases_;
  std::vector<renewal> answers_;
  std::vector<std::optional<holding>> known_;
  const core::time_point until_;
  caller& by_;
  store::on_renewals done_;
  std::map<lease_id, std::optional<result<session>>> sessions_;
  std::optional<failure> failed_;
  std::size_t left_ = 0;
};

}  // namespace

void renew_all(std::shared_ptr<services> of, std::vector<held> leases, core::time_point until,
               caller& by, store::on_renewals done) {
  std::make_shared<renewing>(std::move(of), std::move(leases), until, by, std::move(done))->begin();
}

}  // namespace holdfast::stores::etcd
