"""The records as rows of a table and as a picture."""

from __future__ import annotations

from typing import Any

from benchmarks.peers.bars import bars


def table_of(records: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Return rows of cells, the head first."""
    rows: list[tuple[str, ...]] = [("scale factor", "query", "rows", "ours", "plain parquet", "ratio")]
    for each in records:
        seconds = [f"{each[name]:.3g} s" for name in ("ours_seconds", "plain_seconds")]
        rows.append((f"{each['scale']:g}", each["query"], f"{each['rows']:,}", *seconds, f"{each['ratio']:.2f}"))
    return rows


def markdown_of(records: list[dict[str, Any]]) -> str:
    """Return the table as Markdown."""
    head, *body = table_of(records)
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ("---",) * len(head), *body])


def picture_of(records: list[dict[str, Any]]) -> str:
    """Return a bar chart of the largest scale factor as an SVG."""
    scale = max(each["scale"] for each in records)
    shown = [each for each in records if each["scale"] == scale and each["query"] != "all"]
    figures = {}
    for each in shown:
        figures[f"{each['query']} ours"] = 1000 * each["ours_seconds"]
        figures[f"{each['query']} plain parquet"] = 1000 * each["plain_seconds"]
    return bars(f"TPC-H, scale factor {scale:g}, in milliseconds: shorter is better", figures)
