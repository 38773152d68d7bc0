// What a server tells unasked of keys that others have changed.
#include "channel_fixture.hpp"

namespace holdfast::test {

namespace {

using stores::redis::changed_keys;
using stores::redis::reply_kind;
using stores::redis::text_of;

const std::string told = ">2\r\n$10\r\ninvalidate\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n";
const std::string told_of_all = ">2\r\n$10\r\ninvalidate\r\n_\r\n";

class ChannelChanges : public Channel {
 protected:
  ChannelChanges() { connection_->keep_changes(); }
};

}  // namespace

TEST_F(ChannelChanges, AreReadWhileNothingIsUnderWay) {
  EXPECT_TRUE(connection_->take_changes().empty());
  server_says(told);
  EXPECT_EQ(connection_->take_changes().keys, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(connection_->take_changes().empty());
  EXPECT_FALSE(connection_->broken());
}

TEST_F(ChannelChanges, AreNotTakenForAReply) {
  once_heard([&] { server_says(told + "+PONG\r\n" + told_of_all); });
  const auto answer = connection_->call(ping, soon(), true);
  served();
  ASSERT_TRUE(answer);
  EXPECT_EQ(text_of(**answer), "PONG");
  EXPECT_TRUE(connection_->take_changes().all);
}

TEST_F(ChannelChanges, OnAnIdleConnectionDoNotBreakIt) {
  once_heard([&] { server_says("+PONG\r\n"); });
  ASSERT_TRUE(connection_->call(ping, soon(), true));
  served();
  server_says(told);
  std::this_thread::sleep_for(2 * stores::redis::channel::trusted_idle_max);
  once_heard([&] { server_says("+PONG\r\n"); });
  EXPECT_TRUE(connection_->call(ping, soon(), true));
  EXPECT_EQ(connection_->take_changes().keys.size(), 2U);
}

TEST_F(ChannelChanges, AReplyThatNobodyAskedForBreaksTheConnection) {
  server_says(told + "+OK\r\n");
  EXPECT_EQ(connection_->take_changes().keys.size(), 2U);
  EXPECT_TRUE(connection_->broken());
}

TEST_F(ChannelChanges, EndWithTheConnection) {
  server_hangs_up();
  EXPECT_TRUE(connection_->take_changes().empty());
  EXPECT_TRUE(connection_->broken());
}

TEST_F(Channel, WhereNothingIsToBeToldBreaksOnWhatComesUnasked) {
  server_says(told);
  EXPECT_FALSE(connection_->call(ping, soon(), true));
  EXPECT_TRUE(connection_->broken());
}

TEST(ChangedKeys, AreNotToldApartWhenThereAreTooMany) {
  changed_keys all;
  for (std::size_t i = 0; i < changed_keys::kept_max; ++i)
    all.take(changed_keys{false, {"key"}});
  EXPECT_FALSE(all.all);
  all.take(changed_keys{false, {"key"}});
  EXPECT_TRUE(all.all);
  EXPECT_TRUE(all.keys.empty());
}

}  // namespace holdfast::test
