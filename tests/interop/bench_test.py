"""What `./dev interop --bench` makes of its figures: the table, and the picture."""

import sys
import unittest
import xml.etree.ElementTree as xml

sys.dont_write_bytecode = True

import bench
import clients
import picture

SVG = "{http://www.w3.org/2000/svg}"


def contender(label, pair_us, rates=(), slowest_ms=(), is_ours=False):
    return bench.Contender(label, [], "key", races=bool(rates), is_ours=is_ours,
                           pair_us=list(pair_us), rates=list(rates), slowest_ms=list(slowest_ms))


US = contender("Holdfast mutex", (100, 50, 1000), (800, 700, 900), (17, 12, 20), is_ours=True)
SENT = contender("not awaited", (40, 50, 60), is_ours=True)
THEM = contender("a<b & c", (200, 200, 200), (200, 200, 100), (9.94, 10000, 10001))


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


class Table(unittest.TestCase):
    def test_shows_medians_and_what_they_are_of_ours(self):
        rows = [cells(line) for line in bench.table([US, SENT, THEM]).split("\n")]
        self.assertEqual(rows[2], ["Holdfast mutex", "10,000/s", "1.00", "800/s", "1.00", "17 ms"])
        self.assertEqual(rows[3], ["not awaited", "20,000/s", "2.00", "", "", ""])
        self.assertEqual(rows[4], ["a<b & c", "5,000/s", "0.50", "200/s", "0.25", "over 10 s"])

    def test_lines_up(self):
        self.assertEqual(len({len(line) for line in bench.table([US, SENT, THEM]).split("\n")}), 1)


class Turns(unittest.TestCase):
    def test_each_goes_first_once(self):
        them = list("abc")
        firsts = [bench.by_turns(them, number)[0] for number in range(3)]
        self.assertEqual(sorted(firsts), them)
        self.assertEqual(sorted(bench.by_turns(them, 2)), them)


class Picture(unittest.TestCase):
    def setUp(self):
        self.svg = xml.fromstring(bench.picture_of([US, SENT, THEM]))

    def bars(self):
        return [(one.get("class"), float(one.get("width")), float(one.get("y")))
                for one in self.svg.iter(SVG + "rect") if one.get("class") != "ground"]

    def test_has_a_bar_for_each_in_order_of_their_figures(self):
        bars = self.bars()
        self.assertEqual([kind for kind, _, _ in bars],
                         ["ours", "ours", "theirs", "ours", "theirs"])
        widths = [width for _, width, _ in bars]
        self.assertEqual(widths[0], picture.BAR_MAX)
        self.assertAlmostEqual(widths[1], picture.BAR_MAX / 2)
        self.assertAlmostEqual(widths[4], picture.BAR_MAX / 4)

    def test_fits_on_its_ground(self):
        height = float(self.svg.get("height"))
        for text in self.svg.iter(SVG + "text"):
            self.assertLess(float(text.get("y")), height)

    def test_shows_names_as_they_are(self):
        self.assertIn("a<b & c", [text.text for text in self.svg.iter(SVG + "text")])

    def test_colours_are_said_for_light_and_dark_pages(self):
        style = self.svg.find(SVG + "style").text
        light, dark = style.split("@media (prefers-color-scheme: dark)")
        for kind in (".ground", "text", ".ours", ".theirs"):
            self.assertIn(kind, light)
            self.assertIn(kind, dark)


class Versions(unittest.TestCase):
    def test_are_those_of_the_manifests(self):
        compared = [one for one in clients.CLIENTS if one.pinned]
        self.assertEqual(len({one.pinned for one in compared}), len(compared), "one of each client")
        for one in compared:
            self.assertRegex(bench.version(one), r"^\d+\.\d+\.\d+", one.name)


unittest.main()
