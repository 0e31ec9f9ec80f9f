"""Collects differences: the number of each kind, and the first of each by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from storage_lib.verification.column_kind import ColumnKind
from storage_lib.verification.row_differences import (
    SOURCE_COUNT,
    TABLE_COUNT,
    RowDifferences,
    changed_columns,
    of_source,
)
from storage_lib.verification.value_kind import ValueKind
from storage_lib.verification.verification import DifferenceKind, RowDifference

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INFINITE = (1 << 63) - 1


class NamedDifferences:
    """Names at most ``limit`` differences of each kind; ``key`` is empty for rows without one."""

    def __init__(self, key: tuple[str, ...], forms: Mapping[str, ColumnKind], limit: int) -> None:
        self.counts: Counter[DifferenceKind] = Counter()
        self.columns: Counter[str] = Counter()
        self.named: list[RowDifference] = []
        self._key = key or tuple(forms)
        self._has_key = bool(key)
        self._forms = forms
        self._limit = limit

    def add(self, found: RowDifferences) -> None:
        """Count differences, and name those that come first in the order of the key."""
        for kind, rows in (
            (DifferenceKind.MISSING, found.missing),
            (DifferenceKind.EXTRA, found.extra),
            (DifferenceKind.DIFFERENT, found.different),
            (DifferenceKind.REPEATED, found.repeated),
        ):
            if not rows.height:
                continue
            left = self._limit - sum(each.kind is kind for each in self.named)
            self.counts[kind] += rows.height if self._has_key else _surplus(rows)
            if left > 0:
                first = rows.sort([*self._key], nulls_last=False).head(left)
                self.named += [self._named(kind, row) for row in first.iter_rows(named=True)]
        self.columns.update(changed_columns(found.different))

    def add_repeated(self, key: Mapping[str, Any], table_count: int, source_count: int) -> None:
        """Count one key that has too many rows to be compared one by one."""
        self.counts[DifferenceKind.REPEATED] += 1
        row = {**key, TABLE_COUNT: table_count, SOURCE_COUNT: source_count}
        if sum(each.kind is DifferenceKind.REPEATED for each in self.named) < self._limit:
            self.named.append(self._named(DifferenceKind.REPEATED, row))

    def _named(self, kind: DifferenceKind, row: Mapping[str, Any]) -> RowDifference:
        is_different = kind is DifferenceKind.DIFFERENT
        changed = [
            name
            for name in self._forms
            if is_different and name not in self._key and _differ(row[name], row[of_source(name)])
        ]
        return RowDifference(
            kind=kind,
            key={name: shown_value(row[name], self._forms[name]) for name in self._key},
            columns=tuple(changed),
            table_values=self._shown({name: row[name] for name in changed}) if is_different else None,
            source_values=self._shown({name: row[of_source(name)] for name in changed}) if is_different else None,
            table_count=row[TABLE_COUNT],
            source_count=row[SOURCE_COUNT],
        )

    def _shown(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: shown_value(value, self._forms[name]) for name, value in values.items()}


def shown_value(value: Any, form: ColumnKind) -> Any:
    """Return a value as people read it: dates and times as text, bytes as hexadecimal digits."""
    if value is None:
        return None
    if form is ValueKind.BYTES:
        return value.hex()
    if form not in (ValueKind.DATE, ValueKind.TIME, ValueKind.TIMESTAMP):
        return value
    if abs(value) == _INFINITE:
        return "infinity" if value > 0 else "-infinity"
    try:
        moment = _EPOCH + (timedelta(days=value) if form is ValueKind.DATE else timedelta(microseconds=value))
    except OverflowError:
        return f"{value} {'days' if form is ValueKind.DATE else 'microseconds'} since 1970"
    text = moment.replace(tzinfo=None).isoformat(sep=" ")
    return {ValueKind.DATE: text[:10], ValueKind.TIME: text[11:]}.get(form, text)


def _surplus(rows: pl.DataFrame) -> int:
    return int((rows[TABLE_COUNT] - rows[SOURCE_COUNT]).abs().sum())


def _differ(first: Any, second: Any) -> bool:
    return first is not second and first != second and not (first != first and second != second)  # noqa: PLR0124  NaN
