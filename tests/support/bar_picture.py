"""A small bar chart as an SVG that is legible on light and on dark pages.

The chart paints its own background, and follows the colour scheme of the reader's system where it is an image.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Bar", "bar_picture", "readable"]

_WIDTH, _LEFT, _RIGHT = 720, 270, 96
_ROW, _THICKNESS, _TOP, _MARGIN = 28, 16, 46, 16
_SMALLEST = 2.0
_STYLE = """\
<style>
.card { fill: #ffffff; stroke: #d0d7de } text { fill: #1f2328 } .note { fill: #59636e }
.ours { fill: #1a7f5a } .other { fill: #a9b4bf }
@media (prefers-color-scheme: dark) {
  .card { fill: #151b23; stroke: #3d444d } text { fill: #f0f6fc } .note { fill: #9198a1 }
  .ours { fill: #3fb98a } .other { fill: #59636e }
}
</style>"""


@dataclass(frozen=True, slots=True)
class Bar:
    """One measured value; ``is_ours`` distinguishes this library from what it is compared with."""

    label: str
    value: float
    is_ours: bool


def bar_picture(title: str, note: str, bars: Sequence[Bar]) -> str:
    """Return an SVG with one bar for each value, on a linear scale; ``note`` names the unit and the better end."""
    height = _TOP + _ROW * len(bars) + _MARGIN
    scale = (_WIDTH - _LEFT - _RIGHT) / max(each.value for each in bars)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}"',
        f' role="img" aria-label="{escape(title)}" font-family="system-ui, sans-serif" font-size="13">',
        _STYLE,
        f'<rect class="card" x="0.5" y="0.5" width="{_WIDTH - 1}" height="{height - 1}" rx="8"/>',
        f'<text class="note" x="{_MARGIN}" y="28">{escape(note)}</text>',
    ]
    for index, each in enumerate(bars):
        top = _TOP + _ROW * index
        length = max(_SMALLEST, scale * each.value)
        kind = "ours" if each.is_ours else "other"
        middle = top + _THICKNESS - 3
        parts += [
            f'<text x="{_LEFT - 10}" y="{middle}" text-anchor="end">{escape(each.label)}</text>',
            f'<rect class="{kind}" x="{_LEFT}" y="{top}" width="{length:.1f}" height="{_THICKNESS}" rx="2"/>',
            f'<text x="{_LEFT + length + 8:.1f}" y="{middle}">{readable(each.value)}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])


def readable(value: float) -> str:
    """Format with three significant digits, or with grouped thousands from 100."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
