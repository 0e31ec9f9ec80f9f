"""Splits final rows into a load and three upserts, which lead to them only if newer rows replace older ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

_GROUPS = 10


def commits_of(final: pa.Table, key: Sequence[str]) -> Iterator[pa.Table]:
    """Yield the rows of four commits. Three tenths of the final rows are in an upsert.

    A tenth is outdated in the load and right in the first upsert; a tenth is missing in the load and comes with the
    second upsert; a tenth is outdated in the load and in the first upsert, and right in the third.
    """
    outdated = _outdated(final, key)
    group = np.arange(final.num_rows) % _GROUPS
    kept = final.filter(pa.array(group > 2))
    yield pa.concat_tables([kept, outdated.filter(pa.array((group == 0) | (group == 2)))])
    yield pa.concat_tables([final.filter(pa.array(group == 0)), outdated.filter(pa.array(group == 2))])
    yield final.filter(pa.array(group == 1))
    yield final.filter(pa.array(group == 2))


def _outdated(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """Return rows with the same keys and the other columns of the next row."""
    following = rows.take(pa.array(np.roll(np.arange(rows.num_rows), -1)))
    columns = [rows[name] if name in key else following[name] for name in rows.column_names]
    return pa.Table.from_arrays(columns, schema=rows.schema)


def with_plain_strings(rows: pa.Table) -> pa.Table:
    """Return the rows with ``string`` instead of ``string_view``, which many functions of Arrow do not accept."""
    fields = [field.with_type(pa.string()) if pa.types.is_string_view(field.type) else field for field in rows.schema]
    return rows.cast(pa.schema(fields))
