"""The definition of a materialized table as options, and the texts of a freshness."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.materialized_table import (
    Freshness,
    MaterializedTableDefinition,
    RefreshMode,
    RefreshStatus,
    TargetLag,
    parse_freshness,
)
from storage_lib.schema.options.table_options import TableOptions
from storage_lib.schema.options.value_settings import differing

DEFINITION = MaterializedTableDefinition(query="SELECT 1 AS one", database="shop", sources=("shop.a", "shop.b"))


@pytest.mark.parametrize("freshness", [None, timedelta(seconds=90), timedelta(days=2), TargetLag.DOWNSTREAM])
@pytest.mark.parametrize("mode", RefreshMode)
@pytest.mark.parametrize("status", RefreshStatus)
def test_options_store_a_definition(freshness: Freshness | None, mode: RefreshMode, status: RefreshStatus) -> None:
    given = MaterializedTableDefinition(
        query="SELECT a.id, 'x=y, z' AS v FROM a -- a comment",
        database="shop",
        sources=("shop.a",),
        freshness=freshness,
        refresh_mode=mode,
        status=status,
    )

    assert TableOptions.parse(given.to_options()).definition == given


def test_the_options_have_the_words_of_flink() -> None:
    definition = MaterializedTableDefinition(
        query="SELECT 1 AS one",
        database="shop",
        sources=(),
        freshness=timedelta(minutes=3),
        refresh_mode=RefreshMode.INCREMENTAL,
    )

    assert definition.to_options() == {
        "materialized-table.definition-query": "SELECT 1 AS one",
        "materialized-table.definition-database": "shop",
        "materialized-table.interval-freshness": "3",
        "materialized-table.interval-freshness.time-unit": "MINUTE",
        "materialized-table.logical-refresh-mode": "CONTINUOUS",
        "materialized-table.refresh-mode": "CONTINUOUS",
        "materialized-table.refresh-status": "ACTIVATED",
    }


def test_an_ordinary_table_has_no_definition() -> None:
    assert TableOptions.parse({"bucket": "2"}).definition is None


def test_a_table_that_flink_is_creating_counts_as_activated() -> None:
    options = {**DEFINITION.to_options(), "materialized-table.refresh-status": "INITIALIZING"}

    definition = TableOptions.parse(options).definition

    assert definition is not None
    assert definition.status is RefreshStatus.ACTIVATED


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("materialized-table.logical-refresh-mode", "sometimes"),
        ("materialized-table.refresh-status", "asleep"),
        ("materialized-table.interval-freshness", "soon"),
        ("materialized-table.interval-freshness.time-unit", "FORTNIGHT"),
    ],
)
def test_an_invalid_value_is_refused_with_its_option(key: str, value: str) -> None:
    with pytest.raises(InvalidInputError, match=key):
        TableOptions.parse({**DEFINITION.to_options(), key: value})


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        (timedelta(seconds=1), 1),
        ("INTERVAL '5' MINUTE", 300),
        ("interval 2 hours", 7_200),
        ("90 seconds", 90),
        ("1 DAY", 86_400),
        ("PT5M", 300),
        ("P1DT2H3M4S", 93_784),
    ],
)
def test_a_freshness_is_a_duration_or_text(given: timedelta | str, seconds: int) -> None:
    assert parse_freshness(given) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "given", ["", "soon", "5", "PT", "P", "-1 MINUTE", "0 SECOND", timedelta(0), timedelta(0, 0, 1)]
)
def test_another_freshness_is_refused(given: timedelta | str) -> None:
    with pytest.raises(InvalidInputError, match="invalid freshness"):
        parse_freshness(given)


@pytest.mark.parametrize(
    "settings", [(), (("spark.sql.ansi.enabled", "false"), ("spark.sql.session.timeZone", "Europe/Berlin"))]
)
def test_options_store_the_settings_of_a_query(settings: tuple[tuple[str, str], ...]) -> None:
    given = replace(DEFINITION, settings=settings)

    assert TableOptions.parse(given.to_options()).definition == given


@pytest.mark.parametrize(
    "text", ["", "[]", '{"spark.sql.ansi.enabled": true}', '{"spark.driver.extraJavaOptions": "x"}']
)
def test_only_settings_of_values_can_be_stored(text: str) -> None:
    with pytest.raises(InvalidInputError, match="definition-settings"):
        TableOptions.parse({**DEFINITION.to_options(), "materialized-table.definition-settings": text})


def test_only_unusual_settings_and_the_time_zone_are_stored() -> None:
    given = {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "TRUE", "spark.app.name": "x"}

    assert differing(given) == (("spark.sql.session.timeZone", "UTC"),)
