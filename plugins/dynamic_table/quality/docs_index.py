"""List of a table's validations, newest first; replaces Great Expectations' own list, which needs scripts."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from dynamic_table.quality.data_docs import DataDocs

__all__ = ["STYLE", "docs_index"]

STYLE = Path(__file__).with_name("data_docs.css")
RUN_TIME = "%Y%m%dT%H%M%S.%fZ"
RESULT = {
    True: '<span class="text-success">met</span>',
    False: '<span class="text-danger">not met</span>',
    None: "unknown",
}


def docs_index(docs: DataDocs) -> str:
    """Return the HTML page; its links are relative to the site."""
    pages = sorted(docs.site.glob("validations/**/*.html"), key=lambda page: page.parent.name, reverse=True)
    rows = "".join(_row(docs, page) for page in pages)
    name = escape(docs.table)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{name}: validations</title>'
        f"<style>{STYLE.read_text(encoding='utf-8')}</style></head><body><h4>Validations of {name}</h4>"
        "<table><thead><tr><th>Snapshot</th><th>Validated</th><th>Expectations</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></body></html>"
    )


def _row(docs: DataDocs, page: Path) -> str:
    relative = page.relative_to(docs.site)
    snapshot, moment = page.parts[-3], page.parts[-2]
    try:
        when = f"{datetime.strptime(moment, RUN_TIME).replace(tzinfo=UTC):%Y-%m-%d %H:%M:%S} UTC"
    except ValueError:
        when = moment
    link = f'<a href="{escape(quote(str(relative)))}">{escape(snapshot)}</a>'
    return f"<tr><td>{link}</td><td>{escape(when)}</td><td>{RESULT[_is_met(docs, relative)]}</td></tr>"


def _is_met(docs: DataDocs, page: Path) -> bool | None:
    """Return whether the page's validation succeeded; None if its result can't be read."""
    try:
        result = json.loads((docs.site.parents[1] / page.with_suffix(".json")).read_text(encoding="utf-8"))
        return bool(result["success"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
