"""Other engines and this library read and write the same tables alternately; every row is compared after every step.

`docs/compatibility.md` is generated from these results (``seen.py``).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.seen import LIVES_OF_TABLES, PAGE, REMEDY, engines_with, live, load, page, versions
from tests.support.deep_tests import each_value_once, thinned
from tests.support.flink import Flink
from tests.support.other_readers import needs_pypaimon
from tests.support.paimon_core import PaimonCore

LIKE_OTHERS = (
    "CHAR, VARCHAR and VARBINARY, ORC",
    "aggregation, removing",
    "append-only, every scalar and nested type, Avro",
    "append-only, every scalar and nested type, ORC",
    "partial-update, removing",
)
"""Tables that only `make deep` tests here: their formats are those of other tables, their merges those of random lives
in tests/table/changelog/test_changelog_producers.py."""


def lived_in(*lives: str) -> pytest.MarkDecorator:
    """Return the lives of the given kinds; of most tables the first life, of every kind one, are not deep."""
    of = [each for each in each_value_once(LIVES_OF_TABLES) if each.values[1] in lives]
    of = thinned(of, keep=lambda each: each.values[0] not in LIKE_OTHERS)
    return pytest.mark.parametrize(("name", "life"), of, ids=[", ".join(each.values) for each in of])


@needs_pypaimon
@lived_in("made by us", "made by Java", "made by pypaimon")
def test_all_engines_see_the_same_rows_after_every_step(
    name: str, life: str, paimon_core: PaimonCore, tmp_path: Path
) -> None:
    seen = live(name, life, engines_with(paimon_core, {}), tmp_path)

    assert seen == load()["tables"][name][life], REMEDY


@lived_in("made by Flink")
def test_both_flinks_see_the_same_rows_after_every_step(
    name: str, life: str, paimon_core: PaimonCore, flink_1_20: Flink, flink_2_0: Flink, tmp_path: Path
) -> None:
    seen = live(name, life, engines_with(paimon_core, {"flink 1.20": flink_1_20, "flink 2.0": flink_2_0}), tmp_path)

    assert seen == load()["tables"][name][life], REMEDY


def test_every_life_of_every_table_has_been_seen_by_the_engines_that_are_pinned() -> None:
    seen = load()

    assert [(name, life) for name, lives in seen["tables"].items() for life in lives] == LIVES_OF_TABLES, REMEDY
    assert seen["versions"] == versions(), REMEDY


def test_the_page_on_compatibility_says_what_was_seen() -> None:
    assert PAGE.read_text() == page(load()), REMEDY
