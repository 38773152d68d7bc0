"""Bars as SVG, for a README: more is better, and readable on light and dark pages."""

from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH = 760
LABELS = 250  # where bars begin
BAR_MAX = 330
ROW = 24
PANEL_GAP = 34

# Its own ground, so that it is readable whatever page it is on.
STYLE = """
.ground { fill: #ffffff; stroke: #d0d7de; }
text { fill: #1f2328; font: 13px sans-serif; }
.title { font-weight: bold; font-size: 14px; }
.small { fill: #59636e; font-size: 12px; }
.ours { fill: #1a7f37; }
.theirs { fill: #8c959f; }
@media (prefers-color-scheme: dark) {
  .ground { fill: #0d1117; stroke: #3d444d; }
  text { fill: #f0f6fc; }
  .small { fill: #9198a1; }
  .ours { fill: #3fb950; }
  .theirs { fill: #656c76; }
}
"""


@dataclass
class Bar:
    label: str
    value: float
    shown: str  # beside the bar
    is_ours: bool


@dataclass
class Panel:
    title: str
    bars: list


def panel_lines(panel, top):
    lines = [f'<text class="title" x="16" y="{top + 14}">{escape(panel.title)}</text>']
    most = max(one.value for one in panel.bars)
    y = top + 26
    for one in sorted(panel.bars, key=lambda bar: -bar.value):
        length = max(2.0, one.value / most * BAR_MAX)
        kind = "ours" if one.is_ours else "theirs"
        lines += [
            f'<text x="{LABELS - 8}" y="{y + 15}" text-anchor="end">{escape(one.label)}</text>',
            f'<rect class="{kind}" x="{LABELS}" y="{y + 3}" width="{length:.1f}" height="16"/>',
            f'<text class="small" x="{LABELS + length + 6:.1f}" y="{y + 15}">{escape(one.shown)}'
            "</text>",
        ]
        y += ROW
    return lines, y


def picture(panels, caption):
    lines, y = [], 12
    for panel in panels:
        drawn, y = panel_lines(panel, y)
        lines += drawn
        y += PANEL_GAP - ROW
    for line in caption:
        y += 18
        lines.append(f'<text class="small" x="16" y="{y}">{escape(line)}</text>')
    height = y + 14
    head = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
            f'viewBox="0 0 {WIDTH} {height}">',
            f"<style>{STYLE}</style>",
            f'<rect class="ground" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" '
            'rx="6"/>']
    return "\n".join(head + lines + ["</svg>"]) + "\n"
