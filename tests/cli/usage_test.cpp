// Help, mistakes, exit codes of failures, completion; and that a password is never shown.
#include <fstream>
#include <iterator>

#include "cli_test.hpp"
#include "support/temp_dir.hpp"

namespace holdfast::test {
namespace {

run_result holdfast_plain(std::vector<std::string> args, const std::string& store = {}) {
  args.insert(args.begin(), HOLDFAST_BINARY);
  process_options options{.args = std::move(args)};
  options.env["HOLDFAST_STORE"] = store.empty() ? std::nullopt : std::optional{store};
  return run_program(options);
}

TEST(CliUsage, EveryVerbHasHelpWithAnExample) {
  const std::vector<std::vector<std::string>> verbs{{},
                                                    {"run"},
                                                    {"lock"},
                                                    {"renew"},
                                                    {"unlock"},
                                                    {"status"},
                                                    {"break"},
                                                    {"local"},
                                                    {"local", "status"},
                                                    {"local", "stop"},
                                                    {"redlock"},
                                                    {"redlock", "status"},
                                                    {"redlock", "init"},
                                                    {"redlock", "move"},
                                                    {"doctor"},
                                                    {"fence"},
                                                    {"fence", "redis"},
                                                    {"fence", "postgresql"}};
  for (auto args : verbs) {
    std::string example = "\n  holdfast ";
    for (const auto& word : args)
      example += word + " ";
    args.emplace_back("--help");
    const auto help = holdfast_plain(args);
    EXPECT_EQ(help.exit, exited(0));
    EXPECT_TRUE(contains(help.out, "Examples:")) << help.out;
    example.pop_back();
    EXPECT_TRUE(contains(help.out, example)) << help.out;
    EXPECT_EQ(help.err, "");
  }
}

TEST(CliUsage, ShowsItsVersion) {
  const auto result = holdfast_plain({"--version"});
  EXPECT_EQ(result.exit, exited(0));
  EXPECT_TRUE(result.out.starts_with("holdfast ")) << result.out;
  EXPECT_EQ(holdfast_plain({"-V"}).out, result.out);
}

TEST(CliUsage, HelpIsAVerbToo) {
  EXPECT_EQ(holdfast_plain({"help"}).out, holdfast_plain({"--help"}).out);
  EXPECT_EQ(holdfast_plain({"help", "run"}).out, holdfast_plain({"run", "--help"}).out);
  EXPECT_EQ(holdfast_plain({"help", "local", "stop"}).out,
            holdfast_plain({"local", "stop", "--help"}).out);
}

TEST(CliUsage, APasswordComesFromAFileAndDoesNotGoToTheCommand) {
  const redis_server server{{.tcp = true, .password = "p@ss:w/rd"}};
  const temp_dir folder;
  const std::string file = folder.file("password");
  std::ofstream{file} << "p@ss:w/rd\n";
  process_options options{
      .args = {HOLDFAST_BINARY, "run", "a", "--wait", "0", "--", "sh", "-c",
               "echo $HOLDFAST_STORE; env | grep -F w/rd"},
      .env = {{"HOLDFAST_STORE", server.tcp_url()}, {"HOLDFAST_PASSWORD_FILE", file}}};
  const auto by_file = run_program(options);
  EXPECT_EQ(by_file.out, server.tcp_url() + "\n") << by_file.err;

  const auto with = "redis://:p%40ss%3Aw%2Frd@127.0.0.1:" + std::to_string(server.port());
  options.env = {{"HOLDFAST_STORE", with}};
  options.args.back() = "echo $HOLDFAST_STORE";
  const auto by_url = run_program(options);
  EXPECT_EQ(by_url.out, server.tcp_url() + "\n") << by_url.err;
  options.args.insert(options.args.begin() + 3, "--keep-password");
  EXPECT_EQ(run_program(options).out, with + "\n");

  options.args = {HOLDFAST_BINARY, "status"};
  const auto status = run_program(options);
  EXPECT_TRUE(contains(status.err, "on " + server.tcp_url())) << status.err;
  EXPECT_FALSE(contains(status.err, "w%2Frd")) << status.err;
}

TEST(CliUsage, MistakesAre64AndSayWhatIsWrong) {
  const redis_server server;
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes{
      {{}, "--help"},
      {{"frobnicate"}, "frobnicate"},
      {{"run"}, "NAME"},
      {{"run", "a"}, "-- COMMAND"},
      {{"run", "a", "--"}, "-- COMMAND"},
      {{"run", "a", "ls", "-l"}, "--help"},
      {{"run", "a", "--ttl", "soon", "--", "true"}, "--ttl"},
      {{"run", "a", "--ttl", "-5s", "--", "true"}, "--ttl"},
      {{"run", "a", "--ttl", "5 s", "--", "true"}, "--ttl"},
      {{"run", "a", "true"}, "-- COMMAND"},
      {{"run", "a", "--ttl", "1.s", "--", "true"}, "--ttl"},
      {{"run", "a", "--ttl", "1h30", "--", "true"}, "--ttl"},
      {{"run", "a", "--ttl", "1.2.3s", "--", "true"}, "--ttl"},
      {{"run", "a", "--ttl", "s", "--", "true"}, "--ttl"},
      {{"run", "a", "--wait", "400d", "--", "true"}, "year"},
      {{"run", "a", "--password-file", "/nonexistent", "--", "true"}, "/nonexistent"},
      {{"run", "a", "--ttl", "99999999999999999999s", "--", "true"}, "--ttl"},
      {{"run", "a", "--ttl", "forever", "--", "true"}, "--ttl"},
      {{"run", "a", "--wait", "long", "--", "true"}, "--wait"},
      {{"run", "a", "--busy-exit", "256", "--", "true"}, "--busy-exit"},
      {{"run", "a", "--max-hold", "x", "--", "true"}, "--max-hold"},
      {{"run", "a", "--store", "nonsense", "--", "true"}, "URL"},
      {{"run", "", "--", "true"}, ""},
      {{"run", "a", "--store", "", "--", "true"}, "store's URL"},
      {{"run", "a", "--store", "memory:", "--", "true"}, "exclude nobody"},
      {{"status", "--store", "memory:x"}, "exclude nobody"},
      {{"run", "a", "--ttl", "20ms", "--", "true"}, "100ms"},
      {{"run", "a", "--ttl", "99ms", "--", "true"}, "100ms"},
      {{"run", "a", "--unreachable", "x", "--", "true"}, "--unreachable"},
      {{"run", "a", "--ttl", "0", "--", "true"}, "ttl"},
      {{"break", "a"}, "--token"},
      {{"local"}, ""},
      {{"status", "a", "b"}, "b"},
  };
  for (const auto& [args, said] : mistakes) {
    const auto result = holdfast_plain(args, server.url());
    std::string line;
    for (const auto& word : args)
      line += word + " ";
    EXPECT_EQ(result.exit, exited(64)) << line << "\n" << result.err;
    EXPECT_TRUE(result.err.starts_with("holdfast: ")) << line << "\n" << result.err;
    EXPECT_TRUE(contains(result.err, said)) << line << "\n" << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_EQ(result.out, "");
  }
}

TEST(CliUsage, AnEmptyStoreIsAMistakeAndNotLocal) {
  const std::string owner(32, 'a');
  for (const std::vector<std::string>& args : {std::vector<std::string>{"run", "a", "--", "true"},
                                               {"lock", "a"},
                                               {"status"},
                                               {"break", "a", "--token", "1"},
                                               {"unlock", "a", "--owner", owner},
                                               {"redlock", "status"}}) {
    process_options options{.args = args, .env = {{"HOLDFAST_STORE", ""}}};
    options.args.insert(options.args.begin(), HOLDFAST_BINARY);
    const auto result = run_program(options);
    EXPECT_EQ(result.exit, exited(64)) << args[0] << ": " << result.err;
    EXPECT_TRUE(contains(result.err, "HOLDFAST_STORE")) << result.err;
    EXPECT_TRUE(contains(result.err, "unset it")) << result.err;
  }
}

TEST(CliUsage, WhiteSpaceAroundAStoreIsNotPartOfIt) {
  const redis_server server;
  EXPECT_EQ(holdfast_plain({"status", "a"}, server.url() + "\r\n").out,
            "a: free on " + server.url() + "\n");
  const auto blank = holdfast_plain({"status", "a"}, " \n");
  EXPECT_EQ(blank.exit, exited(64)) << blank.err;
  EXPECT_TRUE(contains(blank.err, "HOLDFAST_STORE")) << blank.err;
}

TEST(CliUsage, DurationsAreReadAsTheyAreWritten) {
  const redis_server server;
  for (const char* ttl : {"500ms", "30s", "5m", "2h", "45", "1.5s", "1h30m", "0.5d"}) {
    const auto result =
        holdfast_plain({"run", "a", "--ttl", ttl, "--wait", "0", "--", "true"}, server.url());
    EXPECT_EQ(result.exit, exited(0)) << ttl << ": " << result.err;
  }
}

TEST(CliUsage, UnreachableStoreIs69ForEveryVerb) {
  const std::string owner(32, 'a');
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"run", "a", "--wait", "0", "--", "echo", "ran"},
        {"lock", "a", "--unreachable", "100ms"},
        {"status"},
        {"status", "a"},
        {"break", "a", "--token", "1"},
        {"renew", "a", "--owner", owner, "--token", "1"},
        {"unlock", "a", "--owner", owner}}) {
    const auto result = holdfast_plain(args, "unix:/nonexistent/redis.sock");
    EXPECT_EQ(result.exit, exited(69)) << args[0] << ": " << result.err;
    EXPECT_TRUE(result.err.starts_with("holdfast: ")) << result.err;
    EXPECT_EQ(result.out, "");
  }
}

TEST(CliUsage, RefusedCredentialsAre77) {
  const redis_server server{{.tcp = true, .password = "right"}};
  const std::string url = "redis://:hunter2@127.0.0.1:" + std::to_string(server.port());
  const auto result = holdfast_plain({"run", "a", "--", "true"}, url);
  EXPECT_EQ(result.exit, exited(77)) << result.err;
  EXPECT_FALSE(contains(result.err, "hunter2")) << result.err;
  EXPECT_EQ(holdfast_plain({"run", "a", "--", "true"}, server.url()).exit, exited(77));
}

TEST(CliUsage, APasswordIsNeverShown) {
  const std::string url = "redis://user:hunter2@127.0.0.1:1";
  const std::vector<std::vector<std::string>> commands{
      {"run", "a", "--store", url, "--wait", "0", "--", "true"},
      {"run", "a", "--stroe", url, "--", "true"},
      {"run", "a", url, "--", "true"},
      {"run", "a", "--ttl", url, "--", "true"},
      {"status", "a", url},
      {"status", "--store", url},
      {"lock", "a", "--wait", "0", "--store=" + url},
      {"break", "a", "--store", url, "--token", url},
      {url},
      {"lock", "a", "--store", url + "/not-a-db?what=ever"},
  };
  for (const auto& args : commands) {
    const auto result = holdfast_plain(args);
    EXPECT_NE(result.exit, exited(0)) << args[0];
    EXPECT_FALSE(contains(result.out + result.err, "hunter2")) << result.err;
  }
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"status", "a"}, {"run", "a", "--frob", "--", "true"}}) {
    const auto result = holdfast_plain(args, url);
    EXPECT_NE(result.exit, exited(0)) << args[0];
    EXPECT_FALSE(contains(result.out + result.err, "hunter2")) << result.err;
  }
}

TEST(CliUsage, APasswordDoesNotStayOnTheCommandLine) {
  const redis_server server{{.tcp = true, .password = "p@hunter2"}};
  const std::string url = "redis://:p@hunter2@127.0.0.1:" + std::to_string(server.port());
  child_process wrapper{process_options{.args = {HOLDFAST_BINARY, "run", "a", "--store", url, "--",
                                                 "sh", "-c", "echo ready $PPID $$ go; read x"}}};
  auto pids = ready_numbers(wrapper);
  pids.push_back(wrapper.pid());
  ASSERT_EQ(pids.size(), 3U);
  for (const pid_t pid : pids) {
    std::ifstream file{"/proc/" + std::to_string(pid) + "/cmdline", std::ios::binary};
    const std::string text{std::istreambuf_iterator<char>{file}, {}};
    EXPECT_FALSE(text.empty());
    EXPECT_FALSE(contains(text, "hunter2")) << text;
  }
}

TEST(CliUsage, TheManualPageSaysWhatHelpSays) {
  const auto page = holdfast_plain({"--man-page"});
  EXPECT_EQ(page.exit, exited(0)) << page.err;
  EXPECT_TRUE(page.out.starts_with(".TH HOLDFAST 1 ")) << page.out.substr(0, 80);
  for (const char* part : {".SH NAME\n", ".SH \"HOLDFAST RUN\"\n", ".SH \"HOLDFAST LOCAL STOP\"\n",
                           "\\-\\-max\\-hold", "\\-\\-unreachable", "76 lock lost"}) {
    EXPECT_TRUE(contains(page.out, part)) << part;
  }
}

TEST(CliUsage, TheFolderOfLocalCanBeChosen) {
  const temp_dir parent;
  const std::string folder = parent.file("locks");
  const auto here = [](const std::string& chosen, std::vector<std::string> args) {
    args.insert(args.begin(), HOLDFAST_BINARY);
    return run_program({.args = std::move(args),
                        .env = {{"HOLDFAST_STORE", std::nullopt}, {"HOLDFAST_LOCAL_DIR", chosen}}});
  };
  EXPECT_TRUE(contains(here(folder, {"local", "status"}).out, folder));
  EXPECT_EQ(here(folder, {"run", "a", "--wait", "5s", "--", "true"}).exit, exited(0));
  const auto shown = here(folder, {"status", "a"});
  EXPECT_EQ(shown.out, "a: free on local: (" + folder + ")\n") << shown.err;
  EXPECT_EQ(here(folder, {"local", "stop"}).exit, exited(0));

  const auto nowhere = here("/proc/none/locks", {"run", "a", "--wait", "0", "--", "true"});
  EXPECT_EQ(nowhere.exit, exited(77)) << nowhere.err;
  EXPECT_TRUE(contains(nowhere.err, "HOLDFAST_LOCAL_DIR")) << nowhere.err;
  EXPECT_EQ(here("", {"run", "a", "--wait", "0", "--", "true"}).exit, exited(64));
}

TEST(CliUsage, AFullFileSystemIsNamedWithWhatHelps) {
  const temp_dir mounted;
  const std::string where = "'" + mounted.file(".") + "'";
  process_options options{
      .args = {"unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
               "mount -t tmpfs -o size=64k none " + where +
                   " || exit 99; cat /dev/zero 2>/dev/null >" + where +
                   "/x; exec '" HOLDFAST_BINARY "' run a --wait 0 -- true"},
      .env = {{"HOLDFAST_STORE", "local:"}, {"HOLDFAST_LOCAL_DIR", mounted.file("locks")}}};
  const auto result = run_program(options);
  if (result.exit == exited(99) || result.exit == exited(1)) {
    GTEST_SKIP() << "no file system can be mounted here: " << result.err;
  }
  EXPECT_EQ(result.exit, exited(69)) << result.err;
  EXPECT_TRUE(contains(result.err, "is full; make room, or set HOLDFAST_LOCAL_DIR")) << result.err;
}

TEST(CliUsage, BashCompletionKnowsVerbsOptionsAndStores) {
  const auto complete = [](const std::string& words) {
    const std::string script =
        "set -eu; source '" HOLDFAST_SOURCE_DIR "/completions/holdfast.bash'; COMP_WORDS=(" +
        words +
        "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMP_LINE=\"${COMP_WORDS[*]}\"; "
        "COMP_POINT=${#COMP_LINE}; _holdfast; echo \"${COMPREPLY[*]-}\"";
    const auto result = run_program({.args = {"bash", "--norc", "-c", script}});
    EXPECT_EQ(result.exit, exited(0)) << result.err;
    return result.out;
  };
  for (const char* verb : {"run", "lock", "renew", "unlock", "status", "break", "local"}) {
    EXPECT_TRUE(contains(complete("holdfast ''"), verb));
  }
  EXPECT_EQ(complete("holdfast un"), "unlock\n");
  EXPECT_EQ(complete("holdfast run a --ma"), "--max-hold\n");
  EXPECT_TRUE(contains(complete("holdfast run a --store ''"), "local:"));
  EXPECT_EQ(complete("holdfast local s"), "status stop\n");
}

}  // namespace
}  // namespace holdfast::test
