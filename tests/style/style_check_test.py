"""What tools/style-check finds, in repositories of a few lines."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

STYLE_CHECK = pathlib.Path(__file__).resolve().parents[2] / "tools" / "style-check"


def findings(files):
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            file = pathlib.Path(root, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        done = subprocess.run([sys.executable, STYLE_CHECK, root], text=True, check=False,
                              stdout=subprocess.PIPE)
        found = done.stdout.splitlines()
        return found if done.returncode else []


def public(text):
    return "#pragma once\n" + text


class Core(unittest.TestCase):
    def test_may_see_public_headers_and_its_own(self):
        self.assertEqual(findings({
            "include/holdfast/token.hpp": public("#include <string>\n"),
            "src/core/types.hpp": "#include <holdfast/token.hpp>\n",
            "src/core/backoff.cpp": '#include "core/types.hpp"\n',
        }), [])

    def test_may_not_include_what_blocks(self):
        found = findings({"src/core/backoff.cpp": "#include <thread>\n"})
        self.assertEqual(len(found), 1)
        self.assertIn("src/core/backoff.cpp:1: ", found[0])

    def test_may_not_see_a_stop_token_through_a_public_header(self):
        found = findings({
            "include/holdfast/lease.hpp": public("#include <stop_token>\n"),
            "src/core/round.hpp": "// A round.\n#include <holdfast/lease.hpp>\n",
        })
        self.assertEqual(found, ["src/core/round.hpp:2: core decides and does nothing: "
                                 "<stop_token> comes in by way of holdfast/lease.hpp"])

    def test_may_not_see_a_mutex_through_two_headers(self):
        found = findings({
            "include/holdfast/client.hpp": public("#include <holdfast/lease.hpp>\n"),
            "include/holdfast/lease.hpp": public("#include <mutex>\n"),
            "src/core/round.hpp": '#include "core/types.hpp"\n',
            "src/core/types.hpp": "#include <holdfast/client.hpp>\n",
        })
        self.assertEqual([line.split(": ")[0] for line in found],
                         ["src/core/round.hpp:1", "src/core/types.hpp:1"])
        self.assertTrue(found[1].endswith("<mutex> comes in by way of "
                                          "holdfast/client.hpp and holdfast/lease.hpp"))

    def test_headers_that_include_each_other_are_looked_at_once(self):
        self.assertEqual(findings({
            "src/core/a.hpp": '#include "core/b.hpp"\n',
            "src/core/b.hpp": '#include "core/a.hpp"\n',
        }), [])

    def test_may_not_read_a_clock(self):
        self.assertEqual(len(findings({"src/core/a.cpp": "auto t = boot_clock::now();\n"})), 1)


class Map(unittest.TestCase):
    def test_names_files_that_are_there(self):
        self.assertEqual(findings({
            "src/core/types.hpp": "",
            "docs/architecture.md": "`core/types.hpp`, `src/core/types.hpp`, `types.hpp`\n",
        }), [])

    def test_names_no_other(self):
        found = findings({"docs/architecture.md": "\n| words | `core/types.hpp` |\n"})
        self.assertEqual(found, ["docs/architecture.md:2: there is no core/types.hpp"])


class Limits(unittest.TestCase):
    LIMIT = "constexpr int waiters_max = 3;\n"

    def test_are_where_the_table_says(self):
        self.assertEqual(findings({
            "src/core/queue.hpp": self.LIMIT,
            "docs/limits.md": "| waiters | 3 | `waiters_max`, core/queue.hpp |\n"
                              "| the same | 3 | `queue::waiters_max`, core/queue |\n",
        }), [])

    def test_are_nowhere_else(self):
        found = findings({
            "src/core/queue.hpp": self.LIMIT,
            "docs/limits.md": "| waiters | 3 | `waiting_max`, core/queue.hpp |\n"
                              "| waiters | 3 | `waiters_max`, core/line |\n",
        })
        self.assertEqual(found, ["docs/limits.md:1: waiting_max is not in core/queue.hpp",
                                 "docs/limits.md:2: there is no core/line"])


class OtherRooms(unittest.TestCase):
    def test_a_store_may_use_another_only_if_that_is_said(self):
        include = '#include "stores/redis/b.hpp"\n'
        self.assertEqual(findings({"src/stores/local/a.cpp": include}), [])
        self.assertEqual(len(findings({"src/stores/memory/a.cpp": include})), 1)

    def test_the_interface_of_stores_knows_none_of_them(self):
        self.assertEqual(findings({"src/stores/store.hpp": '#include "core/types.hpp"\n'}), [])
        for path in ("stores/redis/b.hpp", "runtime/clock.hpp", "client/url.hpp"):
            self.assertEqual(len(findings({"src/stores/store.hpp": f'#include "{path}"\n'})), 1)

    def test_what_stores_share_knows_none_of_them(self):
        for path in ("core/types.hpp", "runtime/clock.hpp", "stores/waiting.hpp"):
            self.assertEqual(findings({"src/stores/pause.cpp": f'#include "{path}"\n'}), [])
        for path in ("stores/redis/b.hpp", "client/url.hpp"):
            self.assertEqual(len(findings({"src/stores/pause.cpp": f'#include "{path}"\n'})), 1)

    def test_runtime_knows_no_store_and_no_client(self):
        for path in ("stores/store.hpp", "client/url.hpp"):
            self.assertEqual(len(findings({"src/runtime/a.cpp": f'#include "{path}"\n'})), 1)

    def test_public_headers_include_public_headers(self):
        self.assertEqual(
            len(findings({"include/holdfast/a.hpp": public('#include "core/types.hpp"\n')})), 1)

    def test_the_command_line_sees_public_headers(self):
        self.assertEqual(len(findings({"cli/a.cpp": '#include "core/types.hpp"\n'})), 1)


if __name__ == "__main__":
    unittest.main()
