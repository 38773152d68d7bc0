// The lock that people write by hand on several servers, with hiredis, at its best: asks all at
// once and goes on when a majority has answered; what comes later is read with the next answers. No
// token, no renewal, no line, no care for nodes that lost their data.
#pragma once

#include <poll.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "asking.hpp"

namespace holdfast::bench {

class hand_rolled_quorum {
 public:
  hand_rolled_quorum(const std::vector<redisContext*>& connected, std::size_t enough)
      : enough_{enough} {
    for (auto* one : connected) {
      nodes_.push_back({asking{one}});
      sha_ = nodes_.back().redis.load(compare_and_delete);
    }
  }

  bool lock(const std::string& key) {
    value_ = std::to_string(::getpid()) + "/" + std::to_string(++attempts_);
    return ask("SET %s %s NX PX 30000", key.c_str(), value_.c_str());
  }
  bool unlock(const std::string& key) {
    return ask("EVALSHA %s 1 %s %s", sha_.c_str(), key.c_str(), value_.c_str());
  }

 private:
  struct node {
    asking redis;
    int unanswered = 0;
  };

  // Whether enough said yes: OK, or 1.
  template <class... Words>
  bool ask(const char* format, Words... words) {
    for (auto& one : nodes_) {
      int all_sent = 0;
      redisAppendCommand(one.redis.on(), format, words...);
      while (all_sent == 0)
        if (redisBufferWrite(one.redis.on(), &all_sent) != REDIS_OK) throw failure(one);
      ++one.unanswered;
    }
    std::size_t yes = 0;
    std::size_t no = 0;
    while (yes < enough_ && no + enough_ <= nodes_.size()) {
      std::vector<pollfd> waits;
      std::vector<node*> whose;
      for (auto& one : nodes_) {
        if (one.unanswered == 0) continue;
        waits.push_back({one.redis.on()->fd, POLLIN, 0});
        whose.push_back(&one);
      }
      static_cast<void>(::poll(waits.data(), waits.size(), -1));
      for (std::size_t i = 0; i < waits.size(); ++i) {
        if (waits[i].revents == 0) continue;
        if (const auto said = newest_of(*whose[i]))
          ++(said->type == REDIS_REPLY_STATUS || said->integer == 1 ? yes : no);
      }
    }
    return yes >= enough_;
  }

  // Null: only answers to what was asked before.
  static asking::reply newest_of(node& from) {
    if (redisBufferRead(from.redis.on()) != REDIS_OK) throw failure(from);
    for (;;) {
      void* next = nullptr;
      if (redisGetReplyFromReader(from.redis.on(), &next) != REDIS_OK) throw failure(from);
      auto said = asking::own(static_cast<redisReply*>(next));
      if (!said) return said;
      if (--from.unanswered == 0) return said;
    }
  }
  static std::runtime_error failure(const node& with) {
    return std::runtime_error{std::string{"baseline: "} + with.redis.on()->errstr};
  }

  const std::size_t enough_;
  std::vector<node> nodes_;
  std::string sha_;
  std::string value_;
  unsigned long attempts_ = 0;
};

}  // namespace holdfast::bench
