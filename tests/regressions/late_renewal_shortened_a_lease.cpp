// Extending set the TTL to what was asked for, also when more of it was left. A renewal of the
// former holder that came late, with its short TTL, took from the long one that the adopter had
// been granted: the store let go while the adopter believed to hold the lock. So did an ask that
// was sent twice.
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "runtime/random.hpp"
#include "stores/memory/memory_store.hpp"
#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

constexpr auto short_ttl = 5s;
constexpr auto long_ttl = 60s;
// Between the two, far from both.
constexpr auto not_shortened = 30s;

const lock_options briefly{.ttl = short_ttl, .renew = false};
const lock_options for_long{.ttl = long_ttl, .renew = false};

}  // namespace

class LateRenewal : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "redis") server_.emplace();
    looker_.emplace(url());
  }
  [[nodiscard]] std::string url() const { return server_ ? server_->url() : "memory:late"; }
  [[nodiscard]] std::chrono::milliseconds remaining() {
    return looker_->status("orders").remaining.value_or(0ms);
  }

 private:
  std::optional<redis_server> server_;
  std::optional<client> looker_;
};

TEST_P(LateRenewal, OfTheFormerHolderDoesNotShorten) {
  client a{url()};
  client b{url()};
  lease former = a.mutex("orders", briefly).acquire();
  const lease_ticket ticket{"orders", std::string{former.owner()}, former.token()};
  const lease adopted = b.mutex("orders", for_long).adopt(ticket);
  ASSERT_GT(remaining(), not_shortened);
  EXPECT_TRUE(former.renew());
  EXPECT_GT(remaining(), not_shortened);
  (void)former.detach();
}

TEST_P(LateRenewal, ByAdoptionWithAShorterTtlDoesNotShorten) {
  client a{url()};
  client b{url()};
  const lease_ticket ticket = a.mutex("orders", briefly).acquire().detach();
  const lease adopted = b.mutex("orders", for_long).adopt(ticket);
  ASSERT_GT(remaining(), not_shortened);
  lease late = a.mutex("orders", briefly).adopt(ticket);
  EXPECT_GT(remaining(), not_shortened);
  EXPECT_LT(late.remaining(), not_shortened) << "it counts on no more than it asked for";
  (void)late.detach();
}

TEST_P(LateRenewal, WithALongerTtlStillExtends) {
  client a{url()};
  lease held = a.mutex("orders", briefly).acquire();
  ASSERT_LT(remaining(), not_shortened);
  lease longer =
      a.mutex("orders", for_long).adopt({"orders", std::string{held.owner()}, held.token()});
  EXPECT_GT(remaining(), not_shortened);
  (void)held.detach();
}

INSTANTIATE_TEST_SUITE_P(On, LateRenewal, testing::Values("memory", "redis"),
                         [](const auto& test) { return test.param; });

class LateAsk : public proxied_redis {};

TEST_F(LateAsk, ThatWasSentTwiceDoesNotShorten) {
  client a = through_proxy({.lock = briefly});
  client b = direct({.lock = for_long});
  proxy.inject(fault::hold_and_cut, asks);
  const lease_ticket ticket = a.mutex("orders").acquire().detach();
  ASSERT_TRUE(proxy.await_faults(1));
  const lease adopted = b.mutex("orders").adopt(ticket);
  ASSERT_GT(pttl("orders"), not_shortened);
  const auto before = server.calls_of("evalsha");
  proxy.let_go();  // the first of the two asks arrives
  ASSERT_TRUE(eventually([&] { return server.calls_of("evalsha") > before; }));
  EXPECT_GT(pttl("orders"), not_shortened);
}

TEST(LateExtensionInMemory, DoesNotShorten) {
  const auto store = stores::memory::make_memory_store("late ask");
  const auto lock = store->open("orders");
  ASSERT_TRUE(lock);
  const auto until = runtime::now() + patience;
  const auto who = (*lock)->begin({.ttl = long_ttl});
  ASSERT_TRUE(stores::wait_here<result<core::answer>>(
      [&](auto& by, auto done) { who->ask(until, by, std::move(done)); }));
  const auto again = stores::wait_here<result<stores::renewal>>([&](auto& by, auto done) {
    (*lock)->extend(who->id(), {}, short_ttl, until, by, std::move(done));
  });
  ASSERT_TRUE(again);
  ASSERT_TRUE(again->renewed);
  EXPECT_GT((*lock)->inspect(until)->remaining.value_or(0ms), not_shortened);
}

}  // namespace holdfast::test
