#include "support/fenced_row.hpp"

#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/fence.hpp>

#include "support/postgres_server.hpp"
#include "support/process.hpp"
#include "support/raw_redis.hpp"

namespace holdfast::test {

namespace {

constexpr std::string_view redis_scheme = "unix:";
constexpr std::string_view etcd_scheme = "http:";

class row_in_redis : public fenced_row {
 public:
  row_in_redis(const std::string& path, fencing how) : redis_{endpoint{path, 0}}, how_{how} {}

  std::string read(fencing_token token) override {
    if (how_ == fencing::all) show(token);
    return run({"GET", "row"}).text;
  }

  void write(fencing_token token, const std::string& value) override {
    if (how_ == fencing::none) {
      run({"SET", "row", value});
      return;
    }
    if (how_ == fencing::writes) show(token);
    run({"EVAL", std::string{fence::redis_script()}, "2", "fence", "row", to_string(token), "3",
         "SET", "row", value});
  }

 private:
  void show(fencing_token token) {
    run({"EVAL", std::string{fence::redis_script()}, "1", "fence", to_string(token)});
  }
  reply run(const std::vector<std::string>& words) {
    reply answer = redis_.command(words);
    if (answer.is_error()) throw turned_away{answer.text};
    return answer;
  }

  raw_redis redis_;
  fencing how_;
};

class row_in_postgresql : public fenced_row {
 public:
  row_in_postgresql(const std::string& where, fencing how) : session_{where}, how_{how} {}

  std::string read(fencing_token token) override {
    std::string value;
    transaction([&] {
      if (how_ == fencing::all) show("admit", token);
      value = session_.run("select value from row");
    });
    return value;
  }

  void write(fencing_token token, const std::string& value) override {
    transaction([&] {
      if (how_ == fencing::writes) show("admit", token);
      if (how_ == fencing::all) show("confirm", token);
      session_.run("update row set value = " + session_.quoted(value));
    });
  }

 private:
  void show(const std::string& function, fencing_token token) {
    session_.run("select holdfast." + function + "('row', " + to_string(token) + ")");
  }
  template <class Work>
  void transaction(Work work) {
    session_.run("begin");
    try {
      work();
    } catch (const sql_error& refused) {
      session_.run("rollback");
      throw turned_away{refused.code() + " " + refused.what()};
    }
    session_.run("commit");
  }

  sql_session session_;
  fencing how_;
};

// By etcdctl, as docs/fences.md has it.
class row_in_etcd : public fenced_row {
 public:
  row_in_etcd(std::string endpoint, fencing how) : endpoint_{std::move(endpoint)}, how_{how} {}

  std::string read(fencing_token token) override {
    if (how_ == fencing::all) show(token);
    std::string value = run({"get", "--print-value-only", "row"});
    if (value.ends_with('\n')) value.pop_back();
    return value;
  }

  void write(fencing_token token, const std::string& value) override {
    const std::string put = "put row " + value;
    if (how_ == fencing::none) {
      run({"put", "row", value});
      return;
    }
    if (how_ == fencing::writes) show(token);
    if (!holds("value(\"fence\") = \"" + digits(token) + "\"", put)) {
      throw turned_away{"another token was shown"};
    }
  }

 private:
  void show(fencing_token token) {
    const std::string put = "put fence " + digits(token);
    (void)holds("version(\"fence\") = \"0\"", put);
    (void)holds("value(\"fence\") < \"" + digits(token) + "\"", put);
  }
  static std::string digits(fencing_token token) {
    const std::string text = to_string(token);
    return std::string(16 - text.size(), '0') + text;
  }
  [[nodiscard]] bool holds(const std::string& comparison, const std::string& then) {
    return run({"txn"}, comparison + "\n\n" + then + "\n\n\n\n").starts_with("SUCCESS");
  }
  std::string run(std::vector<std::string> words, const std::string& input = {}) const {
    words.insert(words.begin(), "etcdctl");
    const auto done = run_program(
        {.args = std::move(words), .env = {{"ETCDCTL_API", "3"}, {"ETCDCTL_ENDPOINTS", endpoint_}}},
        input);
    if (done.exit != exit_status{}) throw std::runtime_error{"etcdctl: " + done.err};
    return done.out;
  }

  const std::string endpoint_;
  fencing how_;
};

}  // namespace

std::unique_ptr<fenced_row> fenced_row::open(const std::string& where, fencing how) {
  if (where.starts_with(redis_scheme)) {
    return std::make_unique<row_in_redis>(where.substr(redis_scheme.size()), how);
  }
  if (where.starts_with(etcd_scheme)) return std::make_unique<row_in_etcd>(where, how);
  return std::make_unique<row_in_postgresql>(where, how);
}

}  // namespace holdfast::test
