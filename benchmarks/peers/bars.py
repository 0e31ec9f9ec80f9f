"""Bar chart of a few figures, on a linear scale."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

_ROW, _BAR, _WIDTH = 22, 15, 420
# Maximum width of a character in the chart's font.
_CHARACTER = 6.2


def bars(title: str, figures: Mapping[str, float]) -> str:
    """Return an SVG with a bar for each name and figure."""
    largest = max(figures.values(), default=1.0)
    left = round(20 + _CHARACTER * max(map(len, figures), default=0))
    parts = []
    for index, (name, figure) in enumerate(figures.items()):
        top = 36 + _ROW * index
        length = _WIDTH * figure / largest
        parts.append(f'<text x="{left - 8}" y="{top + 12}" text-anchor="end">{escape(name)}</text>')
        parts.append(f'<rect x="{left}" y="{top}" width="{length:.1f}" height="{_BAR}" fill="#1b6e53"/>')
        parts.append(f'<text x="{left + length + 5:.1f}" y="{top + 12}" fill="#555">{figure:,.0f}</text>')
    height = 46 + _ROW * len(figures)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + _WIDTH + 100}" height="{height}" '
        'font-family="sans-serif" font-size="11">\n<rect width="100%" height="100%" fill="white"/>\n'
        f'<text x="10" y="18" font-size="13">{escape(title)}</text>\n' + "\n".join(parts) + "\n</svg>\n"
    )
