#include "support/postgres_server.hpp"

#include <libpq-fe.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::test {

namespace {

// Not "holdfast": what a role creates without naming a schema goes into the one named like it.
constexpr const char* owner = "tester";

// Debian keeps each version in a folder of its own: the newest.
std::string program(const std::string& name) {
  std::vector<std::filesystem::path> versions;
  std::error_code none;
  for (const auto& each : std::filesystem::directory_iterator{"/usr/lib/postgresql", none}) {
    if (std::filesystem::exists(each.path() / "bin" / name)) versions.push_back(each.path());
  }
  if (versions.empty()) return name;  // from PATH
  return *std::max_element(versions.begin(), versions.end()) / "bin" / name;
}

// Runs a program as a user whom the server accepts, and ends it with the test: a change of user
// takes back what child_process has arranged. SIGQUIT and not SIGKILL, so that the server removes
// its shared memory.
std::vector<std::string> as_owner(const temp_dir& folder, std::vector<std::string> args) {
  std::vector<std::string> all{"setpriv", "--pdeathsig", "QUIT"};
  if (::geteuid() == 0) {
    const passwd* const user = ::getpwnam("postgres");
    if (user == nullptr) throw std::runtime_error{"no user postgres: run ./dev setup"};
    if (::chown(folder.path().c_str(), user->pw_uid, user->pw_gid) != 0) {
      throw std::system_error{errno, std::generic_category(), "chown"};
    }
    all.insert(all.end(), {"--reuid", std::to_string(user->pw_uid), "--regid",
                           std::to_string(user->pw_gid), "--clear-groups"});
  }
  all.insert(all.end(), args.begin(), args.end());
  return all;
}

}  // namespace

sql_session::sql_session(const std::string& where) : connection_{PQconnectdb(where.c_str())} {
  if (PQstatus(connection_.get()) != CONNECTION_OK) {
    throw std::runtime_error{PQerrorMessage(connection_.get())};
  }
}

void sql_session::closer::operator()(pg_conn* connection) const noexcept { PQfinish(connection); }

std::string sql_session::run(const std::string& sql) {
  const std::unique_ptr<PGresult, decltype(&PQclear)> answer{PQexec(connection_.get(), sql.c_str()),
                                                             &PQclear};
  const auto status = PQresultStatus(answer.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK && status != PGRES_EMPTY_QUERY) {
    const char* const code = PQresultErrorField(answer.get(), PG_DIAG_SQLSTATE);
    throw sql_error{code != nullptr ? code : "", PQerrorMessage(connection_.get())};
  }
  return PQntuples(answer.get()) == 0 ? "" : PQgetvalue(answer.get(), 0, 0);
}

std::string sql_session::refusal(const std::string& sql) {
  try {
    run(sql);
    return {};
  } catch (const sql_error& refused) {
    return refused.code();
  }
}

std::string sql_session::quoted(const std::string& text) const {
  char* const literal = PQescapeLiteral(connection_.get(), text.data(), text.size());
  if (literal == nullptr) throw std::runtime_error{PQerrorMessage(connection_.get())};
  std::string copy{literal};
  PQfreemem(literal);
  return copy;
}

int sql_session::server_pid() const { return PQbackendPID(connection_.get()); }

postgres_server::postgres_server() {
  const std::string data = folder_.file("data");
  const auto made =
      run_program({.args = as_owner(folder_, {program("initdb"), "--pgdata", data, "--username",
                                              owner, "--auth", "trust", "--encoding", "UTF8",
                                              "--locale", "C", "--no-sync", "--no-instructions"}),
                   .cwd = "/"},
                  {}, 2 * patience);
  if (made.exit != exit_status{}) throw std::runtime_error{"initdb: " + made.out + made.err};
  server_.emplace(process_options{
      .args = as_owner(folder_,
                       {program("postgres"), "-D", data, "-k", folder_.path(), "-c",
                        "listen_addresses=", "-c", "fsync=off", "-c", "full_page_writes=off", "-c",
                        "autovacuum=off", "-c", "shared_buffers=4MB", "-c", "max_connections=30"}),
      .cwd = "/"});
  std::string problem;
  const bool answers = eventually([&] {
    if (server_->wait_exit(std::chrono::nanoseconds{0})) return true;
    try {
      sql_session{where("postgres")};
      problem.clear();
      return true;
    } catch (const std::exception& not_yet) {
      problem = not_yet.what();
      return false;
    }
  });
  if (!answers || !problem.empty()) {
    throw std::runtime_error{"postgres: " + problem + server_->stderr_text()};
  }
}

postgres_server::~postgres_server() {
  server_->signal(SIGQUIT);
  server_->wait_exit();
}

std::string postgres_server::where(const std::string& database) const {
  return "host=" + folder_.path().string() + " user=" + owner + " dbname=" + database +
         " options='-c client_min_messages=warning'";
}

std::string postgres_server::new_database() {
  static std::atomic<int> last{0};
  const std::string name = "test" + std::to_string(++last);
  sql_session{where("postgres")}.run("create database " + name + " template template0");
  return where(name);
}

}  // namespace holdfast::test
