"""Bar chart of the figures, per work and system, on a logarithmic scale."""

from __future__ import annotations

from html import escape
from math import log10
from typing import Any

from benchmarks.peers.catalogue import NAMES

_COLOURS = ("#1b6e53", "#69b592", "#c0504d", "#8064a2", "#e0a030", "#9a9a9a")
_ROW, _BAR, _LEFT, _WIDTH = 14, 11, 170, 560


def picture_of(records: list[dict[str, Any]]) -> str:
    """Return the chart as an SVG; shorter bars are better."""
    systems = [name for name in NAMES if any(record["system"] == name for record in records)]
    best = {(record["work"], record["system"]): max(1e-4, record["seconds_min"]) for record in records}
    low = log10(min(best.values())) - 0.2
    high = log10(max(best.values()))
    parts: list[str] = []
    top = 40 + 16 * len(systems)
    for index, system in enumerate(systems):
        y = 34 + 16 * index
        parts.append(f'<rect x="{_LEFT}" y="{y - 9}" width="10" height="10" fill="{_COLOURS[NAMES.index(system)]}"/>')
        parts.append(f'<text x="{_LEFT + 16}" y="{y}">{escape(system)}</text>')
    for work in sorted({record["work"] for record in records}):
        there = [system for system in systems if (work, system) in best]
        parts.append(f'<text x="{_LEFT - 8}" y="{top + 11}" text-anchor="end">{escape(work)}</text>')
        for system in there:
            seconds = best[work, system]
            length = _WIDTH * (log10(seconds) - low) / max(1e-9, high - low)
            colour = _COLOURS[NAMES.index(system)]
            parts.append(f'<rect x="{_LEFT}" y="{top}" width="{length:.1f}" height="{_BAR}" fill="{colour}"/>')
            parts.append(f'<text x="{_LEFT + length + 5:.1f}" y="{top + 10}" fill="#555">{seconds:.3g} s</text>')
            top += _ROW
        top += 8
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 90}" height="{top + 10}" '
        'font-family="sans-serif" font-size="11">\n<rect width="100%" height="100%" fill="white"/>\n'
        '<text x="10" y="16" font-size="13">Seconds, best round, logarithmic: shorter is better</text>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )
