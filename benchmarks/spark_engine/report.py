"""The records as a Markdown table and as a picture."""

from __future__ import annotations

from html import escape
from math import log10
from typing import Any

from benchmarks.spark_engine.formats.catalogue import NAMES

SYSTEMS = ("ours", "ours, read()", *NAMES[1:])
_COLOURS = dict(zip(SYSTEMS, ("#1b6e53", "#69b592", "#8064a2", "#4f81bd", "#c0504d", "#9a9a9a"), strict=True))
_ROW, _BAR, _LEFT, _WIDTH = 14, 11, 190, 560


def table_of(records: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Return rows of cells, the head first: median seconds by work and system, then bytes and memory of ours."""
    systems = [name for name in SYSTEMS if any(each["system"] == name for each in records)]
    found = {(each["work"], each["system"]): each for each in records}
    releases = {each["system"]: each["spark"] for each in records}
    rows: list[tuple[str, ...]] = [
        (
            "work",
            *(f"{name} (Spark {releases[name]})" if releases[name] else name for name in systems),
            "ours: through Python workers",
            "peak memory, ours / least of the peers",
        )
    ]
    for work in dict.fromkeys(each["work"] for each in records):
        seconds = [f"{found[work, name]['seconds_median']:.3g} s" if (work, name) in found else "" for name in systems]
        ours = found.get((work, "ours"))
        peers = [each["peak_memory_bytes"] for each in records if each["work"] == work and "ours" not in each["system"]]
        memory = "" if ours is None else f"{ours['peak_memory_bytes'] / 2**30:.1f} GiB"
        if ours is not None and peers:
            memory += f" / {min(peers) / 2**30:.1f} GiB"
        rows.append((work, *seconds, "" if ours is None else f"{ours['python_bytes'] / 1e6:,.1f} MB", memory))
    return rows


def markdown_of(records: list[dict[str, Any]]) -> str:
    """Return the table as Markdown, one for each number of rows."""
    parts = []
    for rows in sorted({each["rows"] for each in records}):
        head, *body = table_of([each for each in records if each["rows"] == rows])
        lines = [head, ("---",) * len(head), *body]
        parts.append(f"{rows:,} rows\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines))
    return "\n\n".join(parts)


def picture_of(records: list[dict[str, Any]]) -> str:
    """Return a bar chart of the median seconds as an SVG, on a logarithmic scale; shorter bars are better.

    Of several numbers of rows it shows the smallest.
    """
    fewest = min(each["rows"] for each in records)
    shown = [each for each in records if each["rows"] == fewest]
    systems = [name for name in SYSTEMS if any(each["system"] == name for each in shown)]
    median = {(each["work"], each["system"]): max(1e-4, each["seconds_median"]) for each in shown}
    low, high = log10(min(median.values())) - 0.2, log10(max(median.values()))
    parts: list[str] = []
    for index, system in enumerate(systems):
        y = 34 + 16 * index
        parts.append(f'<rect x="{_LEFT}" y="{y - 9}" width="10" height="10" fill="{_COLOURS[system]}"/>')
        parts.append(f'<text x="{_LEFT + 16}" y="{y}">{escape(system)}</text>')
    top = 40 + 16 * len(systems)
    for work in dict.fromkeys(each["work"] for each in shown):
        parts.append(f'<text x="{_LEFT - 8}" y="{top + 11}" text-anchor="end">{escape(work)}</text>')
        for system in (name for name in systems if (work, name) in median):
            seconds = median[work, system]
            length = _WIDTH * (log10(seconds) - low) / max(1e-9, high - low)
            parts.append(
                f'<rect x="{_LEFT}" y="{top}" width="{length:.1f}" height="{_BAR}" fill="{_COLOURS[system]}"/>'
            )
            parts.append(f'<text x="{_LEFT + length + 5:.1f}" y="{top + 10}" fill="#555">{seconds:.3g} s</text>')
            top += _ROW
        top += 8
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 90}" height="{top + 10}" '
        'font-family="sans-serif" font-size="11">\n<rect width="100%" height="100%" fill="white"/>\n'
        f'<text x="10" y="16" font-size="13">Through Spark, {fewest:,} rows: median seconds, logarithmic; '
        "shorter is better</text>\n" + "\n".join(parts) + "\n</svg>\n"
    )
