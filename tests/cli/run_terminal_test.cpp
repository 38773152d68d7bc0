// `holdfast run` on a terminal: the command can be talked to, interrupted, suspended and resumed.
#include "cli_test.hpp"
#include "support/redlock_nodes.hpp"

namespace holdfast::test {
namespace {

class CliTerminal : public cli_test {
 protected:
  [[nodiscard]] process_options on_terminal(std::vector<std::string> args) const {
    process_options options = holdfast({});
    options.args = std::move(args);
    options.pty = true;
    options.env["PS1"] = "prompt> ";
    options.env["TERM"] = "dumb";
    return options;
  }
};

TEST_F(CliTerminal, TheCommandCanReadFromIt) {
  child_process wrapper{on_terminal(
      {HOLDFAST_BINARY, "run", "a", "--", "sh", "-c", "echo ask; read x; echo \"<$x>\""})};
  ASSERT_TRUE(wrapper.wait_for_output("ask"));
  wrapper.write_stdin("hello\n");
  EXPECT_TRUE(wrapper.wait_for_output("<hello>"));
  EXPECT_EQ(wrapper.wait_exit(), exited(0));
}

TEST_F(CliTerminal, InAPipelineTheCommandGetsItWhenItAsks) {
  child_process shell{
      on_terminal({"sh", "-c",
                   std::string{HOLDFAST_BINARY} +
                       " run a -- sh -c 'echo ask; read x </dev/tty; echo \"<$x>\"' | cat"})};
  ASSERT_TRUE(shell.wait_for_output("ask"));
  shell.write_stdin("hello\n");
  EXPECT_TRUE(shell.wait_for_output("<hello>"));
  EXPECT_EQ(shell.wait_exit(), exited(0));
}

TEST_F(CliTerminal, ControlCEndsTheCommand) {
  child_process wrapper{
      on_terminal({HOLDFAST_BINARY, "run", "a", "--", "sh", "-c", "echo started; exec sleep 60"})};
  ASSERT_TRUE(wrapper.wait_for_output("started"));
  wrapper.write_stdin("\x03");
  EXPECT_EQ(wrapper.wait_exit(), died_of(SIGINT));
  EXPECT_TRUE(is_free("a"));
}

// Both shells decide by how their command died and by whether they got the signal themselves.
TEST_F(CliTerminal, ControlCEndsTheScriptToo) {
  for (const char* shell : {"bash", "dash"}) {
    for (const char* rest : {"", " | cat"}) {
      child_process script{on_terminal({shell, "-c",
                                        std::string{HOLDFAST_BINARY} +
                                            " run a -- sh -c 'echo started; exec sleep 60'" + rest +
                                            "; echo ne\"\"xt"})};
      ASSERT_TRUE(script.wait_for_output("started"));
      script.write_stdin("\x03");
      EXPECT_EQ(script.wait_exit(), died_of(SIGINT)) << shell << rest;
      EXPECT_FALSE(contains(script.stdout_text(), "next")) << script.stdout_text();
      EXPECT_TRUE(eventually([&] { return is_free("a"); }));
    }
  }
}

TEST_F(CliTerminal, ControlBackslashIsSeenAsWithoutHoldfast) {
  child_process wrapper{
      on_terminal({HOLDFAST_BINARY, "run", "a", "--", "sh", "-c", "echo started; exec sleep 60"})};
  ASSERT_TRUE(wrapper.wait_for_output("started"));
  wrapper.write_stdin("\x1c");
  EXPECT_EQ(wrapper.wait_exit(), died_of(SIGQUIT));
  EXPECT_TRUE(is_free("a"));
}

TEST_F(CliTerminal, ControlCWhileWaitingEndsTheScriptToo) {
  ASSERT_EQ(run({"lock", "a", "--ttl", "10m"}).exit, exited(0));
  for (const char* verb : {" run a -- true", " lock a"}) {
    child_process script{
        on_terminal({"bash", "-c", std::string{HOLDFAST_BINARY} + verb + "; echo ne\"\"xt"})};
    ASSERT_TRUE(script.wait_for_output("waiting for 'a'"));
    script.write_stdin("\x03");
    EXPECT_EQ(script.wait_exit(), died_of(SIGINT)) << verb;
    EXPECT_FALSE(contains(script.stdout_text(), "next")) << script.stdout_text();
  }
}

// Why it waits, until when, and what helps do not fit into a line of a terminal.
TEST_F(CliTerminal, WaitForASetThatDoesNotVoteYetIsExplainedInFull) {
  redlock_nodes set{3, {.init = false}};
  auto narrow = on_terminal(
      {"bash", "-c",
       "stty cols 40; exec " HOLDFAST_BINARY " run a --store '" + set.url() + "' -- true"});
  narrow.env["TERM"] = "xterm";
  child_process waits{narrow};
  EXPECT_TRUE(waits.wait_for_output("votes in "));
  EXPECT_TRUE(waits.wait_for_output("`holdfast redlock init`"));
  waits.signal(SIGINT);
  EXPECT_EQ(waits.wait_exit(), died_of(SIGINT));
}

TEST_F(CliTerminal, ACommandThatCatchesControlCLetsTheScriptGoOn) {
  child_process script{on_terminal(
      {"bash", "-c",
       std::string{HOLDFAST_BINARY} +
           " run a -- bash -c 'trap \"exit 130\" INT; echo started; while :; do sleep 0.05; done'"
           "; echo status=$?"})};
  ASSERT_TRUE(script.wait_for_output("started"));
  script.write_stdin("\x03");
  EXPECT_EQ(script.wait_exit(), exited(0));
  EXPECT_TRUE(contains(script.stdout_text(), "status=130")) << script.stdout_text();
}

TEST_F(CliTerminal, ControlZSuspendsAndForegroundResumes) {
  child_process shell{on_terminal({"bash", "--norc", "--noprofile", "-i"})};
  ASSERT_TRUE(shell.wait_for_output("prompt> "));
  shell.write_stdin(std::string{HOLDFAST_BINARY} +
                    " run a -- sh -c 'echo be\"\"gun; read x; echo \"<$x>\"; exit 11'\n");
  ASSERT_TRUE(shell.wait_for_output("begun"));
  shell.write_stdin("\x1a");
  ASSERT_TRUE(shell.wait_for_output("Stopped")) << shell.stdout_text();
  shell.write_stdin("fg\n");
  shell.write_stdin("again\n");
  EXPECT_TRUE(shell.wait_for_output("<again>")) << shell.stdout_text();
  shell.write_stdin("echo status=$?\n");
  EXPECT_TRUE(shell.wait_for_output("status=11")) << shell.stdout_text();
  shell.write_stdin("exit\n");
  EXPECT_EQ(shell.wait_exit(), exited(0));
}

TEST_F(CliTerminal, WithoutAShellControlZDoesNotLeaveItStopped) {
  child_process wrapper{
      on_terminal({HOLDFAST_BINARY, "run", "a", "--", "sh", "-c", "echo ask; read x; exit 12"})};
  ASSERT_TRUE(wrapper.wait_for_output("ask"));
  wrapper.write_stdin("\x1a");
  wrapper.write_stdin("hello\n");
  EXPECT_EQ(wrapper.wait_exit(), exited(12)) << wrapper.stdout_text();
}

}  // namespace
}  // namespace holdfast::test
