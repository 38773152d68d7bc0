"""What tools/sim-coverage counts, in repositories of a few lines."""

import importlib.machinery
import importlib.util
import pathlib
import subprocess
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "sim-coverage"

LEASE = """namespace lock {
int renew(int ttl) {
  if (ttl > 100)
    return 1;
  return 0;
}
int extend() {
  return 7;
}
}
"""
CALLS_RENEW = """namespace lock { int renew(int); }
int main() {
  lock::renew(TTL);
}
"""


def load(root):
    """The tool, looking at another repository."""
    loader = importlib.machinery.SourceFileLoader("sim_coverage", str(TOOL))
    tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("sim_coverage", loader))
    loader.exec_module(tool)
    tool.ROOT = str(root)
    tool.BUILD = str(root / "build-coverage")
    tool.SHIPPED = str(root / "build-coverage" / "shipped")
    tool.LEFT_OUT = ()
    return tool


class Counts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.tool = load(self.root)

    def compile(self, source, text, below, *flags):
        file = self.root / source
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        to = self.root / "build-coverage" / below
        to.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["g++", "--coverage", *flags, "-c", file, "-o", to], check=True)
        return to

    def run_program(self, lease, ttl):
        calls = self.compile("tests/sim/main.cpp", CALLS_RENEW, f"tests/sim/{ttl}.cpp.o",
                             f"-DTTL={ttl}")
        program = self.root / f"program_{ttl}"
        subprocess.run(["g++", "--coverage", lease, calls, "-o", program], check=True)
        subprocess.run([program], check=True)

    def shipped(self, source="client/lease.cpp"):
        return self.compile("src/" + source, LEASE, f"shipped/{source}.o")

    def file(self, path="src/client/lease.cpp"):
        return self.tool.read_counts()[0][path]

    def test_lines_that_did_not_run(self):
        self.run_program(self.shipped(), 50)
        self.assertEqual(self.file().lines - self.file().ran, {4, 7, 8})

    def test_a_file_that_is_not_linked_counts_with_all_its_lines(self):
        self.run_program(self.shipped(), 50)
        self.shipped("stores/redis/lease.cpp")
        other = self.file("src/stores/redis/lease.cpp")
        self.assertEqual((len(other.lines), len(other.ran)), (6, 0))

    def test_a_line_ran_if_it_did_in_either_copy(self):
        self.run_program(self.shipped(), 50)
        again = self.compile("src/client/lease.cpp", LEASE, "tests/sim/planted/lease.cpp.o")
        self.run_program(again, 500)
        self.assertEqual(self.file().lines - self.file().ran, {7, 8})

    def test_lines_that_only_the_other_copy_has_are_not_shipped(self):
        self.shipped()
        planted = LEASE.replace("  return 0;", "  return\n#ifdef PLANT\n    1 +\n#endif\n    0;")
        self.run_program(self.compile("src/client/lease.cpp", planted,
                                      "tests/sim/planted/lease.cpp.o", "-DPLANT"), 50)
        self.assertLessEqual(self.file().ran, self.file().lines)

    def test_what_is_left_out_does_not_count(self):
        self.run_program(self.shipped(), 500)
        self.tool.LEFT_OUT = (("src/client/lease.cpp", "extend", "never called"),)
        files, (out,) = self.tool.read_counts()
        self.assertEqual(out.lines, {7, 8})
        self.assertEqual(files["src/client/lease.cpp"].lines, {2, 3, 4, 5})

    def test_what_is_left_out_has_to_be_there(self):
        self.run_program(self.shipped(), 50)
        self.tool.LEFT_OUT = (("src/client/lease.cpp", "adopt", "is gone"),)
        with self.assertRaises(SystemExit):
            self.tool.read_counts()

    def test_a_source_that_was_not_built_is_an_error(self):
        self.run_program(self.shipped(), 50)
        (self.root / "src" / "client" / "new.cpp").write_text("", encoding="utf-8")
        with self.assertRaises(SystemExit):
            self.tool.read_counts()


if __name__ == "__main__":
    unittest.main()
