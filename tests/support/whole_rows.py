"""Complete partial rows with nulls for ``append``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from storage_lib import DynamicTable


def whole_rows(table: DynamicTable, columns: Mapping[str, Sequence[Any] | pa.Array]) -> pa.Table:
    """Return a table of ``columns`` by name, of equal lengths, with nulls in each other column of ``table``."""
    given = pa.table(dict(columns))
    for field in table.arrow_schema:
        if field.name not in given.schema.names:
            given = given.append_column(field, pa.nulls(given.num_rows, field.type))
    return given
