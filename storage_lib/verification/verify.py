"""``verify``: compares a table with its source, and names the keys that differ."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from storage_lib.errors import InvalidInputError
from storage_lib.progress.operation import operation, report_to
from storage_lib.progress.progress import ProgressOption
from storage_lib.schema.encoding.moment import Moment
from storage_lib.table.dynamic_table import DynamicTable
from storage_lib.verification.column_kind import ColumnKind, common_form, refused_column
from storage_lib.verification.compared_rows import ComparedRows
from storage_lib.verification.comparison import Comparison
from storage_lib.verification.named_differences import NamedDifferences
from storage_lib.verification.source_side import opened_source
from storage_lib.verification.table_side import TableSide
from storage_lib.verification.verification import DifferenceKind, Verification

_NAMED = 20
_MEMORY = 256 << 20


def verify(
    table: DynamicTable,
    against: DynamicTable | str | None = None,
    *,
    relation: str | None = None,
    query: str | None = None,
    key: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    snapshot_id: int | None = None,
    tag: str | None = None,
    timestamp: Moment | None = None,
    limit: int = _NAMED,
    memory: int = _MEMORY,
    progress: ProgressOption = None,
) -> Verification:
    """Compare the rows of a table with those of its source: exact numbers of differences, and the first by name.

    ``against`` is another table (its newest snapshot), ``postgresql://user@host/database`` (there a ``query``, or the
    table ``relation``, by default that with the table's name in the search path), or the path of a Parquet file or
    folder. Without it, ``query`` is one of DuckDB. The table is read at ``snapshot_id``, ``tag`` or ``timestamp``, by
    default at its newest snapshot; PostgreSQL in one transaction. Rows are matched by ``key``, by default the primary
    key; without one, equal rows are counted. ``columns`` (default: all, which both sides must have) are compared,
    except ``exclude``.

    ``limit`` differences of each kind are named. About ``memory`` bytes of rows are compared at a time; sides that are
    equal are read once, and ranges of the key that differ are read again. ``progress`` counts the rows read.

    Raises ``InvalidInputError`` for columns that can't be compared, ``NotFoundError``, and ``UnavailableError``.
    """
    if limit < 0 or memory < 1:
        message = f"table {table.name}: limit is {limit} and memory {memory}; give 0 or more, and 1 or more"
        raise InvalidInputError(message)
    with ExitStack() as ending, report_to(progress), operation("verify", table.name, total=None, unit="rows") as steps:
        ours = TableSide(table, snapshot_id=snapshot_id, tag=tag, timestamp=timestamp)
        source = opened_source(table.name, against, relation=relation, query=query)
        ending.callback(source.close)
        wanted_key = tuple(ours.primary_key if key is None else key)
        forms = _forms(ours, source, wanted_key, columns, exclude)
        found = NamedDifferences(wanted_key, forms, limit)
        comparison = Comparison(
            table=ours, source=source, forms=forms, key=wanted_key, memory=memory, found=found, steps=steps
        )
        comparison.run()
    table_rows, source_rows = comparison.row_counts
    return Verification(
        table=ours.name,
        table_position=ours.position,
        source=source.name,
        source_position=source.position,
        key=wanted_key,
        compared={name: form.value for name, form in forms.items()},
        table_rows=table_rows,
        source_rows=source_rows,
        missing=found.counts[DifferenceKind.MISSING],
        extra=found.counts[DifferenceKind.EXTRA],
        different=found.counts[DifferenceKind.DIFFERENT],
        repeated=found.counts[DifferenceKind.REPEATED],
        columns=dict(found.columns),
        ranges=comparison.range_count,
        differences=tuple(found.named),
    )


def _forms(
    table: ComparedRows,
    source: ComparedRows,
    key: Sequence[str],
    columns: Sequence[str] | None,
    exclude: Sequence[str],
) -> dict[str, ColumnKind]:
    """Return the form of each column to compare, the key's first."""
    every = [name for name in {**table.kinds, **source.kinds} if name not in exclude]
    wanted = {*(every if columns is None else columns), *key} - {*exclude}
    for name in exclude:
        if name in key:
            message = f"column {name} of the key can't be excluded"
            raise InvalidInputError(message)
    for name in sorted(wanted):
        for side, other in ((table, source), (source, table)):
            if name not in side.kinds:
                message = (
                    f"{side.name} has no column {name!r}{f', which {other.name} has' if name in other.kinds else ''}; "
                    f"its columns are {', '.join(side.kinds)}. Choose what to compare with columns (--columns) or "
                    f"exclude (--exclude {name}), or rename it by a query"
                )
                raise InvalidInputError(message)
    ordered = [*key, *(name for name in every if name in wanted and name not in key)]
    if not ordered:
        message = f"{table.name} and {source.name}: there is no column to compare"
        raise InvalidInputError(message)
    return {name: _form(table, source, name) for name in ordered}


def _form(table: ComparedRows, source: ComparedRows, name: str) -> ColumnKind:
    kinds = []
    for side in (table, source):
        kind = side.kinds[name]
        if kind is None:
            raise refused_column(name, side.name, "values of its type have no common form")
        kinds.append(kind)
    form = common_form(*kinds)
    if form is None:
        why = f"its values are of kind {kinds[0].value}, and those of {source.name} of kind {kinds[1].value}"
        raise refused_column(name, table.name, why)
    return form
