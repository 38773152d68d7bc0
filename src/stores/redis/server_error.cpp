#include "stores/redis/server_error.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/status.hpp>

#include "core/counter.hpp"
#include "stores/redis/layout.hpp"

namespace holdfast::stores::redis {

namespace {

constexpr std::size_t shown_max = 200;

struct rule {
  std::string_view starts;
  errc code;
  std::string_view advice;
};

constexpr std::string_view refused_by_rules =
    "the server's access rules refuse this user a command or key that locking needs";

constexpr std::array rules{
    rule{"NOAUTH", errc::not_authenticated, "the server wants a password: put it into the URL"},
    rule{"WRONGPASS", errc::not_authenticated, "the server refused the user name or password"},
    rule{"ERR invalid password", errc::not_authenticated, "the server refused the password"},
    rule{"ERR AUTH", errc::not_authenticated,
         "the URL has a password but the server has none set: remove it, or set one"},
    rule{"ERR Client sent AUTH", errc::not_authenticated,
         "the URL has a password but the server has none set: remove it, or set one"},
    rule{"NOPERM", errc::not_permitted, refused_by_rules},
    rule{"ERR The user executing the script", errc::not_permitted, refused_by_rules},
    rule{"The user executing the script", errc::not_permitted,  // as 6.x wraps it
         refused_by_rules},
    rule{"ERR ACL failure in script", errc::not_permitted, refused_by_rules},
    rule{"LOADING", errc::store_loading, "the server is loading its data"},
    rule{"BUSY", errc::store_busy, "the server is busy with a long script"},
    rule{"OOM", errc::out_of_memory,
         "the server has reached maxmemory and refuses writes: free memory or raise the limit"},
    rule{"READONLY", errc::read_only, "the server is a read-only replica: name the master"},
    rule{"MISCONF", errc::read_only, "the server refuses writes because it cannot persist them"},
    rule{"NOREPLICAS", errc::read_only, "the server refuses writes: too few replicas"},
    rule{"MASTERDOWN", errc::read_only, "the server is a replica that lost its master"},
    rule{"WRONGTYPE", errc::wrong_type,
         "the lock's key holds something that is not a lock of this kind: choose another name or a "
         "prefix"},
    rule{"MOVED", errc::moved, "the key lives on another node: this server is part of a cluster"},
    rule{"ASK", errc::moved, "the key is moving to another node: this server is part of a cluster"},
    rule{"CLUSTERDOWN", errc::store_unreachable, "the cluster is down"},
    rule{"TRYAGAIN", errc::store_busy, "the cluster is moving the key"},
    rule{"CROSSSLOT", errc::invalid_argument,
         "in a cluster keys that are used together need the same {tag} in their names"},
    rule{"ERR Script attempted to access keys that do not hash to the same slot",
         errc::invalid_argument,
         "in a cluster keys that are used together need the same {tag} in their names"},
    rule{"ERR max number of clients", errc::overloaded, "the server accepts no more clients"},
    rule{"ERR DB index", errc::invalid_argument, "the server has no database of that number"},
    rule{"ERR unknown command", errc::incompatible,
         "the server lacks a command that locking needs: Redis 6.0 or newer is required"},
};

// The two words that follow `word` in what a script of ours said; nothing if it did not say that.
std::optional<std::vector<std::string>> said_after(std::string_view said, std::string_view word) {
  const auto at = said.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  said.remove_prefix(at + word.size());
  std::vector<std::string> words(2);
  for (auto& one : words) {
    said.remove_prefix(std::min(said.find_first_not_of(' '), said.size()));
    one = escape(said.substr(0, std::min<std::size_t>(said.find(' '), 16)));
    said.remove_prefix(std::min(said.find(' '), said.size()));
  }
  return words;
}

// Locks that several may hold: the name, or how many there are, is a matter of dispute.
std::optional<failure> kind_error(std::string_view said, const std::string& node) {
  const auto is_called = [&](std::string_view what) {
    return failure{errc::wrong_type,
                   "the name is in use for " + std::string{what} + " (" + node +
                       "): a name stands for one kind of lock at a time; choose another one",
                   {}};
  };
  if (const auto kind = said_after(said, "HOLDFAST_KIND")) {
    if (kind->front() == "shared") return is_called("a shared_mutex");
    if (kind->front() == "permits") return is_called("a semaphore");
    if (kind->front() == "latch") return is_called("a latch");
    return is_called("a mutex, or for something that is not a lock");
  }
  if (const auto units = said_after(said, "HOLDFAST_CAPACITY")) {
    return failure{errc::invalid_argument,
                   "the semaphore is in use with " + units->front() + " permits, not " +
                       units->back() +
                       ": its users must all name that number, or one of them sets it for "
                       "all by resize()",
                   {}};
  }
  if (const auto units = said_after(said, "HOLDFAST_UNITS")) {
    return failure{
        errc::invalid_argument,
        "more permits are asked for than the " + units->front() + " that the semaphore has",
        {}};
  }
  if (const auto counts = said_after(said, "HOLDFAST_COUNT")) {
    return core::other_count(counts->front(), counts->back());
  }
  if (const auto left = said_after(said, "HOLDFAST_LEFT")) {
    return core::counts_too_much(left->front(), left->back());
  }
  return std::nullopt;
}

}  // namespace

bool says_demoted(std::string_view said) noexcept {
  const auto inner = said.find("user_script:");
  constexpr std::array<std::string_view, 3> words{"READONLY", "MASTERDOWN", "LOADING"};
  // As older servers wrap it: "ERR Error running script … @user_script: 1: -READONLY …".
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return said.starts_with(word) ||
           (inner != std::string_view::npos && said.find(word, inner) != std::string_view::npos);
  });
}

bool says_elsewhere(std::string_view said) noexcept {
  constexpr std::array<std::string_view, 6> words{"MOVED ",      "ASK ",    "TRYAGAIN",
                                                  "CLUSTERDOWN", "LOADING", "MASTERDOWN"};
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return said.starts_with(word); });
}

bool is_noscript(std::string_view said) noexcept { return said.starts_with("NOSCRIPT"); }

failure translate_error(std::string_view said, const std::string& node) {
  // A server repeats the arguments of a command that it does not know, and those of AUTH are
  // secrets. What is left is cut and escaped.
  said = said.substr(0, said.find(", with args beginning with"));
  const auto shown = escape(said.substr(0, shown_max));
  // A script's error may be wrapped: "ERR Error running script … : @user_script: 1: WRONGTYPE …".
  const auto inner = said.find("user_script:");
  constexpr std::string_view layout_error = "HOLDFAST_LAYOUT ";
  if (const auto at = said.find(layout_error); at != std::string_view::npos) {
    return {errc::incompatible,
            "locks on " + node + " are written by a newer Holdfast (stored layout " +
                escape(said.substr(at + layout_error.size(), 8)) +
                ", this version shares locks up to " + std::to_string(layout_readable_max) +
                "): update this program",
            {{node, shown}}};
  }
  if (said.find("HOLDFAST_FULL") != std::string_view::npos) {
    return {errc::overloaded,
            "too many wait for this lock already: its queue is full (" + node + ")",
            {{node, shown}}};
  }
  if (auto refused = kind_error(said, node)) {
    refused->nodes = {{node, shown}};
    return std::move(*refused);
  }
  for (const auto& one : rules) {
    const bool direct = said.starts_with(one.starts);
    const bool wrapped = !direct && inner != std::string_view::npos &&
                         said.find(one.starts, inner) != std::string_view::npos;
    if (direct || wrapped) {
      return {
          one.code, std::string{one.advice} + " (" + node + ": " + shown + ")", {{node, shown}}};
    }
  }
  return {errc::store_refused,
          "the server answered with an error (" + node + ": " + shown + ")",
          {{node, shown}}};
}

}  // namespace holdfast::stores::redis
