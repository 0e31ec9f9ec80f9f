"""Checks of new rows in a sync: each belongs to one table, refuses its rows, and stops no other where it fails."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import pyarrow as pa
import pytest

from storage_lib import Catalog, InvalidInputError, MemoryCatalog
from storage_lib.sync.checks_of_tables import checked_by_table
from storage_lib.sync.sync_database import sync_topics
from storage_lib.sync.synced_table import SyncSettings, TableSync
from storage_lib.sync.topic_rules import TopicRules
from storage_lib.table.sources.row_check import RowCheck
from tests.support.fake_environment import fake_environment
from tests.support.raw_topics import RawTopics
from tests.sync.test_sync_tables import ROW, record, topics_of


def no_tea(rows: pa.Table) -> dict[int, tuple[str | None, str]]:
    """Refuse tea."""
    return {place: ("name", "no tea") for place, name in enumerate(rows["name"].to_pylist()) if name == "tea"}


def fails(rows: pa.Table) -> dict[int, tuple[str | None, str]]:
    """Fail as a function with an error."""
    message = f"no column price2 in {rows.num_rows} rows"
    raise ArithmeticError(message)


def sync(catalog: Catalog, topics: RawTopics, checks: Mapping[str, RowCheck]) -> dict[str, TableSync]:
    options = {
        "kafka.bootstrap.servers": "nowhere:9092",
        "log.format": "debezium-json-schema",
        "source.on-reject": "quarantine",
    }
    settings = SyncSettings(
        options=options,
        table_options={"log.system": "none"},
        rows_per_turn=10,
        skip_expired=False,
        change_tracking=None,
        expect=checked_by_table(checks, "shop"),
    )
    result = sync_topics(catalog, topics, TopicRules(topics=("shop.public.*",), into="shop"), settings, workers=2)
    return {each.table: each for each in result.tables}


def test_rows_that_do_not_pass_are_kept_apart_in_their_table_alone() -> None:
    catalog, cup = MemoryCatalog(environment=fake_environment()), {**ROW, "id": 2, "name": "cup"}
    topics = topics_of(items=[record("c", ROW), record("c", cup)], gifts=[record("c", ROW), record("c", cup)])

    done = sync(catalog, topics, {"shop.items": no_tea})

    assert {name: (each.row_count, each.rejected_count) for name, each in done.items()} == {
        "shop.items": (1, 1),
        "shop.gifts": (2, 0),
    }
    (rejected,) = catalog.load_table("shop.items").inspect.rejected().to_pylist()
    assert (rejected["column"], rejected["reason"], rejected["offset"]) == ("name", "no tea", 0)


def test_a_check_that_fails_stops_its_table_by_name_and_no_other() -> None:
    catalog = MemoryCatalog(environment=fake_environment())

    done = sync(catalog, topics_of(items=[record("c", ROW)], gifts=[record("c", ROW)]), {"shop.items": fails})

    (error,) = done["shop.items"].errors.values()
    assert isinstance(error, InvalidInputError)
    assert "table shop.items: the check of its new rows failed, ArithmeticError: no column price2" in str(error)
    assert (done["shop.gifts"].row_count, dict(done["shop.gifts"].errors)) == (1, {})


def test_a_table_without_a_topic_is_a_warning_and_one_of_another_database_is_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    catalog = MemoryCatalog(environment=fake_environment())

    with caplog.at_level(logging.WARNING):
        sync(catalog, topics_of(items=[record("c", ROW)]), {"shop.item": no_tea})

    assert "no topic becomes table shop.item, whose rows are to be checked" in caplog.text
    with pytest.raises(InvalidInputError, match=r"this sync's tables are in shop, such as shop\.items"):
        checked_by_table({"public.items": no_tea}, "shop")
