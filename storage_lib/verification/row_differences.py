"""Differences between the rows of a table and of its source, value by value, of as many rows as fit into memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

COUNT = "\0count"
TABLE_COUNT = "\0in the table"
SOURCE_COUNT = "\0in the source"
_OF_SOURCE = "\0source "


@dataclass(frozen=True, slots=True)
class RowDifferences:
    """Rows that differ, all with the compared columns and both counts: how often the table and the source have them.

    ``different``: keys that both sides have once with other values; columns named by ``of_source`` have the source's
    values. ``repeated``: keys that a side has more than once, with the key's columns only.
    """

    missing: pl.DataFrame
    extra: pl.DataFrame
    different: pl.DataFrame
    repeated: pl.DataFrame


def of_source(name: str) -> str:
    """Return the name of the column with the source's values."""
    return f"{_OF_SOURCE}{name}"


def without_key(table: pl.DataFrame, source: pl.DataFrame) -> RowDifferences:
    """Compare rows without a key. Both sides have each distinct row once, with its number (``counted``)."""
    columns = [name for name in table.columns if name != COUNT]
    counts = _sums(table.rename({COUNT: TABLE_COUNT}), source.rename({COUNT: SOURCE_COUNT}), columns)
    is_missing = pl.col(TABLE_COUNT) < pl.col(SOURCE_COUNT)
    is_extra = pl.col(TABLE_COUNT) > pl.col(SOURCE_COUNT)
    nothing = counts.clear()
    return RowDifferences(counts.filter(is_missing), counts.filter(is_extra), nothing, nothing)


def counted(rows: pl.DataFrame) -> pl.DataFrame:
    """Return each distinct row once, with its number; counts that the rows have are added."""
    columns = [name for name in rows.columns if name != COUNT]
    number = pl.col(COUNT).sum() if COUNT in rows.columns else pl.len().cast(pl.Int64).alias(COUNT)
    return rows.group_by(columns).agg(number)


def by_key(table: pl.DataFrame, source: pl.DataFrame, key: Sequence[str]) -> RowDifferences:
    """Compare the rows of each key. Null is a key as well."""
    key = [*key]
    values = [name for name in table.columns if name not in key]
    repeated_keys = pl.concat([rows.filter(rows.select(key).is_duplicated()).select(key) for rows in (table, source)])
    repeated = _repeated(table, source, repeated_keys.unique(), key)
    if repeated_keys.height:
        table, source = (rows.join(repeated_keys, on=key, how="anti", nulls_equal=True) for rows in (table, source))
    renamed = source.rename({name: of_source(name) for name in values}).with_columns(
        pl.lit(1, pl.Int64).alias(SOURCE_COUNT)
    )
    joined = (
        table.with_columns(pl.lit(1, pl.Int64).alias(TABLE_COUNT))
        .join(renamed, on=key, how="full", coalesce=True, nulls_equal=True)
        .with_columns(pl.col(TABLE_COUNT, SOURCE_COUNT).fill_null(0))
    )
    is_missing, is_extra = pl.col(TABLE_COUNT) == 0, pl.col(SOURCE_COUNT) == 0
    differs = pl.any_horizontal(
        pl.lit(value=False), *(pl.col(name).ne_missing(pl.col(of_source(name))) for name in values)
    )
    own = [*key, *values, TABLE_COUNT, SOURCE_COUNT]
    missing = joined.filter(is_missing).drop(values).rename({of_source(name): name for name in values})
    return RowDifferences(
        missing=missing.select(own),
        extra=joined.filter(is_extra).select(own),
        different=joined.filter(~is_missing & ~is_extra & differs),
        repeated=repeated,
    )


def changed_columns(different: pl.DataFrame) -> dict[str, int]:
    """Return the number of rows of ``different`` whose values differ, for each column that differs."""
    values = [name for name in different.columns if of_source(name) in different.columns]
    counts = different.select(pl.col(name).ne_missing(pl.col(of_source(name))).sum() for name in values)
    return {name: int(counts[name][0]) for name in values if counts[name][0]}


def _repeated(table: pl.DataFrame, source: pl.DataFrame, keys: pl.DataFrame, key: list[str]) -> pl.DataFrame:
    """Return those of the keys whose rows are not the same on both sides."""
    of_table, of_source_ = (counted(side.join(keys, on=key, how="semi", nulls_equal=True)) for side in (table, source))
    counts = _sums(of_table.rename({COUNT: TABLE_COUNT}), of_source_.rename({COUNT: SOURCE_COUNT}), table.columns)
    differing = counts.filter(pl.col(TABLE_COUNT) != pl.col(SOURCE_COUNT)).select(key).unique()
    of_keys = counts.group_by(key).agg(pl.col(TABLE_COUNT, SOURCE_COUNT).sum())
    return of_keys.join(differing, on=key, how="semi", nulls_equal=True)


def _sums(table: pl.DataFrame, source: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Return each distinct row of both sides with its numbers."""
    both = pl.concat([table, source], how="diagonal")
    return both.group_by(columns).agg(pl.col(TABLE_COUNT, SOURCE_COUNT).sum())
