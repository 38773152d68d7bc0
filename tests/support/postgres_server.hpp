// A real PostgreSQL server of a test's own, and connections to it.
#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "support/process.hpp"
#include "support/temp_dir.hpp"

struct pg_conn;

namespace holdfast::test {

// What the server refused.
class sql_error : public std::runtime_error {
 public:
  sql_error(std::string code, const std::string& message)
      : std::runtime_error{message}, code_{std::move(code)} {}
  [[nodiscard]] const std::string& code() const noexcept { return code_; }  // five characters

 private:
  std::string code_;
};

// One connection. Not thread-safe.
class sql_session {
 public:
  explicit sql_session(const std::string& where);

  // Runs it; the first column of the first row, empty without one. Throws sql_error.
  std::string run(const std::string& sql);
  // The code it is refused with; empty if it is not.
  std::string refusal(const std::string& sql);
  [[nodiscard]] std::string quoted(const std::string& text) const;
  // As pg_stat_activity knows it.
  [[nodiscard]] int server_pid() const;

 private:
  struct closer {
    void operator()(pg_conn* connection) const noexcept;
  };
  std::unique_ptr<pg_conn, closer> connection_;
};

// A database cluster in a folder of its own, on a unix socket there; as root it runs as the user
// postgres, since the server refuses root. Takes a second or two to make: share it within a suite,
// each test with a database of its own. Not thread-safe but for new_database().
class postgres_server {
 public:
  postgres_server();
  postgres_server(const postgres_server&) = delete;
  postgres_server& operator=(const postgres_server&) = delete;
  ~postgres_server();

  // An empty database: what sql_session, psql and libpq take to connect to it.
  [[nodiscard]] std::string new_database();

 private:
  [[nodiscard]] std::string where(const std::string& database) const;

  temp_dir folder_;
  std::optional<child_process> server_;
};

}  // namespace holdfast::test
