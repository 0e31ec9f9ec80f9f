"""Pages of validations show values and names of tables as text: they have the elements that harmless texts have."""

from __future__ import annotations

import random
import re
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest

from dynamic_table.quality.data_docs import DataDocs
from dynamic_table.quality.data_quality import check_expectations

# Great Expectations imports deprecated names
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

EVIL = "</span><style>body{display:none}</style><a href=//evil onclick='x'>[met](//evil)</a>\"><!--"


class Elements(HTMLParser):
    """Elements of a page with the names of their attributes, and its comments."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, ...]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, *(name for name, _ in attrs)))

    def handle_comment(self, data: str) -> None:
        self.found.append(("comment", data[:20]))


def pages_of(folder: Path, column: str, value: str) -> list[list[tuple[str, ...]]]:
    docs = DataDocs(root=folder, table="db.t")
    rows = pa.table({column: [value, "x", None]})
    column_of = {"column": column}
    expectations = [
        {"type": "expect_column_values_to_be_in_set", "kwargs": {**column_of, "value_set": ["x", f"{value}y"]}},
        {"type": "expect_column_values_to_be_unique", "kwargs": {**column_of, "mostly": 0.5}},
        {"type": "expect_column_distinct_values_to_equal_set", "kwargs": {**column_of, "value_set": [value, "z"]}},
        {"type": "expect_column_values_to_match_regex", "kwargs": {**column_of, "regex": re.escape(value)}},
        {"type": "expect_column_to_exist", "kwargs": {"column": f"{column}2"}},
        {"type": "expect_column_most_common_value_to_be_in_set", "kwargs": {**column_of, "value_set": [value, "z"]}},
        {"type": "expect_table_columns_to_match_set", "kwargs": {"column_set": [column, f"{column}3"]}},
    ]
    check_expectations(rows, expectations, docs=docs, run_name="snapshot-1")
    found = sorted(docs.site.rglob("*.html"))
    assert len(found) == 3
    return [Elements(page.read_text()).found for page in found]


def test_no_value_and_no_name_of_a_column_adds_an_element(tmp_path: Path) -> None:
    evil = pages_of(tmp_path / "a", f"c{EVIL}", EVIL)
    harmless = pages_of(tmp_path / "b", "c" + "-" * len(EVIL), "-" * len(EVIL))

    assert evil == harmless


def test_texts_of_random_markup_are_escaped_wherever_they_are() -> None:
    from dynamic_table.quality.escaped_pages import ICON, ICONS, escaped

    chance = random.Random(5)  # noqa: S311  repeatable
    signs = ("<b>", "</td>", "&lt;", "'", '"', "$v", "${v}", "\n", "*x*", "[a](//b)", "`", "<!--", "]]>", *ICONS, "a")

    def text() -> str:
        return "".join(chance.choices(signs, k=chance.randint(1, 4)))

    def document(depth: int) -> object:
        if depth == 0 or chance.random() < 0.3:
            return chance.choice([text(), 3, None, 1.5, True])
        if chance.random() < 0.5:
            return [document(depth - 1) for _ in range(3)]
        return {chance.choice([text(), "template", ICON]): document(depth - 1) for _ in range(3)}

    def texts(part: object, key: object = None) -> list[str]:
        if isinstance(part, dict):
            return [each for name, inner in part.items() for each in (name, *texts(inner, name))]
        if isinstance(part, list):
            return [each for inner in part for each in texts(inner)]
        return [part] if isinstance(part, str) and not (key == ICON and part in ICONS) else []

    for _ in range(200):
        for each in texts(escaped(document(4))):
            assert not set(each) & set("<>\"'"), each


def test_markdown_is_shown_as_it_is() -> None:
    from dynamic_table.quality.escaped_pages import EscapedPageView

    assert EscapedPageView().render_markdown("[a](//b)") == "[a](//b)"
